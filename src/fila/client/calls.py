"""The administrative calls: what is sent, what comes back, what it means when it fails.

Owns one `Call` per operation, shared by both shells. Never touches sockets or state.
"""

import json
from collections.abc import Callable, Iterable
from typing import Any, Generic, NamedTuple, TypeVar

from fila.client.errors import FilaError, from_code
from fila.wire import bodies as b
from fila.wire import errors as codes
from fila.wire.bodies import (
    ApiKeySummary,
    FairnessKeyStats,
    Permission,
    QueueSummary,
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


def create_queue(
    name: str, on_enqueue: str | None, on_failure: str | None, visibility_timeout_ms: int
) -> Call[str]:
    body = b.CreateQueue(name, on_enqueue, on_failure, visibility_timeout_ms)
    return Call(
        f'create queue "{name}"', body, b.CreateQueueResult, lambda r: r.queue_id, f'queue "{name}"'
    )


def delete_queue(queue: str) -> Call[None]:
    return Call(
        f'delete queue "{queue}"',
        b.DeleteQueue(queue),
        b.DeleteQueueResult,
        lambda r: None,
        f'queue "{queue}"',
    )


def list_queues() -> Call[QueueList]:
    def parse(reply: b.ListQueuesResult) -> QueueList:
        queues = QueueList(reply.queues)
        queues.cluster_node_count = reply.cluster_node_count
        return queues

    return Call("list queues", b.ListQueues(), b.ListQueuesResult, parse, repeatable=True)


def get_stats(queue: str) -> Call[QueueStats]:
    return Call(
        f'stats of queue "{queue}"',
        b.GetStats(queue),
        b.GetStatsResult,
        lambda r: QueueStats(*r[1:]),
        f'queue "{queue}"',
        repeatable=True,
    )


def set_config(key: str, value: str | None) -> Call[None]:
    return Call(
        f'set config "{key}"',
        b.SetConfig(key, value or ""),
        b.SetConfigResult,
        lambda r: None,
        f'config key "{key}"',
    )


def get_config(key: str) -> Call[str | None]:
    return Call(
        f'get config "{key}"',
        b.GetConfig(key),
        b.GetConfigResult,
        lambda r: r.value or None,
        f'config key "{key}"',
        repeatable=True,
    )


def list_config(prefix: str) -> Call[dict[str, str]]:
    return Call(
        "list config",
        b.ListConfig(prefix),
        b.ListConfigResult,
        lambda r: {entry.key: entry.value for entry in r.entries},
        repeatable=True,
    )


def redrive(dlq_queue: str, count: int) -> Call[int]:
    return Call(
        f'redrive "{dlq_queue}"',
        b.Redrive(dlq_queue, count),
        b.RedriveResult,
        lambda r: r.redriven,
        f'queue "{dlq_queue}"',
    )


def explain(
    queue: str, key: str | None, message_id: str | None, keys_max: int
) -> Call[dict[str, Any]]:
    def parse(reply: b.ExplainResult) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(reply.document)
        return found

    return Call(
        f'explain queue "{queue}"' if queue else "queues in short",
        b.Explain(queue, key, message_id or "", keys_max),
        b.ExplainResult,
        parse,
        f'queue "{queue}"',
        repeatable=True,
    )


def pause_queue(queue: str, reason: str) -> Call[None]:
    what = f'pause queue "{queue}"'
    body = b.PauseQueue(queue, reason)
    return Call(what, body, b.PauseQueueResult, lambda r: None, f'queue "{queue}"')


def resume_queue(queue: str) -> Call[None]:
    what = f'resume queue "{queue}"'
    body = b.ResumeQueue(queue)
    return Call(what, body, b.ResumeQueueResult, lambda r: None, f'queue "{queue}"')


def pause_key(queue: str, key: str, reason: str) -> Call[None]:
    what = f'pause key "{key}" of queue "{queue}"'
    body = b.PauseKey(queue, key, reason)
    return Call(what, body, b.PauseKeyResult, lambda r: None, f'queue "{queue}"')


def resume_key(queue: str, key: str) -> Call[None]:
    what = f'resume key "{key}" of queue "{queue}"'
    body = b.ResumeKey(queue, key)
    return Call(what, body, b.ResumeKeyResult, lambda r: None, f'queue "{queue}"')


def purge(queue: str, key: str | None) -> Call[int]:
    what = f'purge queue "{queue}"'
    body = b.Purge(queue, key)
    return Call(what, body, b.PurgeResult, lambda r: r.purged, f'queue "{queue}"')


def create_api_key(name: str, expires_at_ms: int, is_superadmin: bool) -> Call[ApiKey]:
    return Call(
        f'create API key "{name}"',
        b.CreateApiKey(name, expires_at_ms, is_superadmin),
        b.CreateApiKeyResult,
        lambda r: ApiKey(r.key_id, r.key, r.is_superadmin),
        f'API key "{name}"',
    )


def revoke_api_key(key_id: str) -> Call[None]:
    return Call(
        f'revoke API key "{key_id}"',
        b.RevokeApiKey(key_id),
        b.RevokeApiKeyResult,
        lambda r: None,
        f'API key "{key_id}"',
    )


def list_api_keys() -> Call[list[ApiKeySummary]]:
    return Call(
        "list API keys",
        b.ListApiKeys(),
        b.ListApiKeysResult,
        lambda r: list(r.keys),
        repeatable=True,
    )


def set_acl(key_id: str, permissions: Iterable[tuple[str, str]]) -> Call[None]:
    granted = tuple([Permission(kind, pattern) for kind, pattern in permissions])
    return Call(
        f'set ACL of API key "{key_id}"',
        b.SetAcl(key_id, granted),
        b.SetAclResult,
        lambda r: None,
        f'API key "{key_id}"',
    )


def get_acl(key_id: str) -> Call[Acl]:
    return Call(
        f'ACL of API key "{key_id}"',
        b.GetAcl(key_id),
        b.GetAclResult,
        lambda r: Acl(r.key_id, r.is_superadmin, r.permissions),
        f'API key "{key_id}"',
        repeatable=True,
    )
