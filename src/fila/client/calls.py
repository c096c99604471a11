"""The administrative calls: what is sent, what comes back, what it means when it fails.

Owns the answers' types and one `Call` per operation, shared by both shells. What a call is named in
errors, what it is about and whether it may be repeated comes from the table of operations. Never
touches sockets or state.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from fila.client.errors import FilaError, from_code
from fila.wire import bodies as b
from fila.wire import errors as codes
from fila.wire import layouts, operation
from fila.wire.bodies import (
    ApiKeySummary,
    FairnessKeyStats,
    Permission,
    QueueSummary,
    QueueVersion,
    ThrottleKeyStats,
)

T = TypeVar("T")


class QueueStats(NamedTuple):
    depth: int
    in_flight: int
    active_fairness_keys: int
    active_consumers: int
    quantum: int
    leader_node_id: int
    replication_count: int
    fairness_keys: tuple[FairnessKeyStats, ...]
    throttle_keys: tuple[ThrottleKeyStats, ...]
    cost: str = "messages"  # of a message to its key; or "bytes"


class QueueList(list[QueueSummary]):
    """The queues, and how many nodes the cluster has (1 for a broker that stands alone)."""

    cluster_node_count: int = 0


class ApiKey(NamedTuple):
    """A new key. `key` is the secret and is shown only now."""

    key_id: str
    key: str
    is_superadmin: bool


class Acl(NamedTuple):
    key_id: str
    is_superadmin: bool
    permissions: tuple[Permission, ...]


class QueueSettings(NamedTuple):
    """What a queue is told to be: its settings by name, texts that are empty where there is none;
    which version that is, who made it, when and why."""

    settings: dict[str, str]
    version: int
    at_ms: int
    who: str
    note: str


class Caller(NamedTuple):
    """Who the caller is to the broker, and which release that is."""

    version: str
    form: str  # compiled or pure
    auth: bool  # whether the broker asks for keys
    key_id: str  # empty: the bootstrap key, or no key
    name: str
    expires_at_ms: int  # 0: never
    is_superadmin: bool
    permissions: tuple[Permission, ...]


class BackupList(list[b.Backup]):
    """Backups, the oldest first, and where they lie, as the broker sees it."""

    target: str = ""


class Call(Generic[T]):
    """A request, the type of its result, and how the result becomes the method's answer."""

    __slots__ = ("body", "parse", "repeatable", "reply_type", "subject", "what")

    def __init__(
        self,
        what: str,
        body: tuple[Any, ...],
        reply_type: Any,
        parse: Callable[[Any], T],
        subject: str = "",
        repeatable: bool = False,
    ) -> None:
        self.what = what
        self.body = body
        self.reply_type = reply_type
        self.parse = parse
        self.subject = subject
        self.repeatable = repeatable

    def answer(self, reply: Any) -> T:
        if isinstance(reply, FilaError):
            raise reply
        code = getattr(reply, "code", codes.OK)  # a result with a code per item has none of its own
        if code:
            raise from_code(code, getattr(reply, "message", None), self.subject)
        return self.parse(reply)


def call_of(body: Any, parse: Callable[[Any], T]) -> Call[T]:
    """The call that sends this request of the table; `parse` makes its answer of the result."""
    row = layouts.OPERATIONS[type(body)]
    fields = body._asdict()
    return Call(
        operation.text(row.action, fields),
        body,
        layouts.RESULTS[type(body)],
        parse,
        operation.text(row.subject, fields),
        row.repeatable,
    )


def create_queue(
    name: str,
    on_enqueue: str | None,
    on_failure: str | None,
    visibility_timeout_ms: int,
    max_attempts: int,
    cost: str,
) -> Call[str]:
    fields = (name, on_enqueue, on_failure, visibility_timeout_ms)
    body = b.CreateQueue(*fields, max_attempts or None)
    if cost:
        body = b.CreateQueue(*fields, max_attempts, cost)
    return call_of(body, lambda r: str(r.queue_id))


def update_queue(
    queue: str,
    settings: Mapping[str, str | int],
    expected_version: int,
    from_version: int,
    note: str,
    unrehearsed: bool,
) -> Call[int]:
    texts = {name: str(value) for name, value in settings.items()}
    body = b.UpdateQueue(queue, texts, expected_version, from_version, note, unrehearsed)
    return call_of(body, lambda r: int(r.version))


def get_queue(queue: str, version: int) -> Call[QueueSettings]:
    def parse(reply: b.GetQueueResult) -> QueueSettings:
        settings = {one.key: one.value for one in reply.settings}
        return QueueSettings(settings, reply.version, reply.at_ms, reply.who, reply.note)

    return call_of(b.GetQueue(queue, version), parse)


def list_versions(queue: str) -> Call[list[QueueVersion]]:
    return call_of(b.ListVersions(queue), lambda r: list(r.versions))


def delete_queue(queue: str) -> Call[None]:
    return call_of(b.DeleteQueue(queue), _nothing)


def list_queues() -> Call[QueueList]:
    def parse(reply: b.ListQueuesResult) -> QueueList:
        queues = QueueList(reply.queues)
        queues.cluster_node_count = reply.cluster_node_count
        return queues

    return call_of(b.ListQueues(), parse)


def get_stats(queue: str) -> Call[QueueStats]:
    def parse(reply: b.GetStatsResult) -> QueueStats:
        return QueueStats(*reply[1:10], reply.cost or "messages")

    return call_of(b.GetStats(queue), parse)


def set_config(key: str, value: str | None) -> Call[None]:
    return call_of(b.SetConfig(key, value or ""), _nothing)


def get_config(key: str) -> Call[str | None]:
    return call_of(b.GetConfig(key), lambda r: r.value or None)


def list_config(prefix: str) -> Call[dict[str, str]]:
    return call_of(b.ListConfig(prefix), lambda r: {entry.key: entry.value for entry in r.entries})


def redrive(dlq_queue: str, count: int) -> Call[int]:
    return call_of(b.Redrive(dlq_queue, count), lambda r: int(r.redriven))


def explain(
    queue: str, key: str | None, message_id: str | None, keys_max: int
) -> Call[dict[str, Any]]:
    def parse(reply: b.ExplainResult) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(reply.document)
        return found

    return call_of(b.Explain(queue, key, message_id or "", keys_max), parse)


def pause_queue(queue: str, reason: str) -> Call[None]:
    return call_of(b.PauseQueue(queue, reason), _nothing)


def resume_queue(queue: str) -> Call[None]:
    return call_of(b.ResumeQueue(queue), _nothing)


def pause_key(queue: str, key: str, reason: str) -> Call[None]:
    return call_of(b.PauseKey(queue, key, reason), _nothing)


def resume_key(queue: str, key: str) -> Call[None]:
    return call_of(b.ResumeKey(queue, key), _nothing)


def set_override(
    queue: str, key: str, settings: Mapping[str, str | float], note: str
) -> Call[None]:
    texts = {name: str(value) for name, value in settings.items()}
    return call_of(b.SetOverride(queue, key, texts, False, note), _nothing)


def clear_override(queue: str, key: str) -> Call[None]:
    return call_of(b.SetOverride(queue, key, {}, True), _nothing)


def list_overrides(queue: str) -> Call[list[dict[str, Any]]]:
    def parse(reply: b.ListOverridesResult) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(reply.document)
        return found

    return call_of(b.ListOverrides(queue), parse)


def reclassify(queue: str, rate: int, dry_run: bool, cancel: bool) -> Call[dict[str, Any]]:
    def parse(reply: b.ReclassifyResult) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(reply.document)
        return found

    return call_of(b.Reclassify(queue, rate, dry_run, cancel), parse)


def get_reclassify(queue: str) -> Call[dict[str, Any]]:
    def parse(reply: b.GetReclassifyResult) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(reply.document)
        return found

    return call_of(b.GetReclassify(queue), parse)


def purge(queue: str, key: str | None) -> Call[int]:
    return call_of(b.Purge(queue, key), lambda r: int(r.purged))


def create_api_key(name: str, expires_at_ms: int, is_superadmin: bool) -> Call[ApiKey]:
    body = b.CreateApiKey(name, expires_at_ms, is_superadmin)
    return call_of(body, lambda r: ApiKey(r.key_id, r.key, r.is_superadmin))


def revoke_api_key(key_id: str) -> Call[None]:
    return call_of(b.RevokeApiKey(key_id), _nothing)


def list_api_keys() -> Call[list[ApiKeySummary]]:
    return call_of(b.ListApiKeys(), lambda r: list(r.keys))


def set_acl(key_id: str, permissions: Iterable[tuple[str, str]]) -> Call[None]:
    granted = tuple([Permission(kind, pattern) for kind, pattern in permissions])
    return call_of(b.SetAcl(key_id, granted), _nothing)


def get_acl(key_id: str) -> Call[Acl]:
    return call_of(b.GetAcl(key_id), lambda r: Acl(r.key_id, r.is_superadmin, r.permissions))


def create_backup() -> Call[str]:
    return call_of(b.CreateBackup(), lambda r: str(r.name))


def list_backups() -> Call[BackupList]:
    def parse(reply: b.ListBackupsResult) -> BackupList:
        backups = BackupList(reply.backups)
        backups.target = reply.target
        return backups

    return call_of(b.ListBackups(), parse)


def who_am_i() -> Call[Caller]:
    return call_of(b.WhoAmI(), lambda r: Caller(*r[1:]))


def _nothing(result: Any) -> None:
    """It is done, and that is all there is to say."""
