"""Queues whose settings change while they work: asked for, and followed in the books."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from fila.core import rejection
from fila.core.applies import Reply
from fila.core.command import UpdateQueue
from fila.core.effect import EVENT_QUEUE_UPDATED
from fila.core.rejection import Rejection
from fila.core.rows import STATE
from fila.core.version_rows import read_version, version_number
from fila.storage.memory import MemoryStore

from . import events, pauses, reclassify, rooms
from .books import Books
from .model import MS, Queue
from .turn import Violation, same

if TYPE_CHECKING:
    from .world import World

PROMISE = "updates"
HOOKS = {
    "hook_timeout_ms": "timeout_ms",
    "hook_memory_limit_bytes": "memory_limit_bytes",
    "fail_mode": "fail_mode",
}
VALUES = {
    "on_enqueue": ("", "a", "b"),
    "on_failure": ("", "a"),
    "visibility_timeout_ms": ("", "1000", "2500", "20000", "999", "soon"),
    "max_attempts": ("", "0", "1", "3", "10000000000"),
    "max_in_flight_per_key": ("", "0", "1", "2", "6", "few", "1000001"),
    "hook_timeout_ms": ("", "5"),
    "fail_mode": ("", "reject", "last-good"),
}
_ALL = 1 << 62


class Updates:
    """What operators change. They have a dice of their own: what others do stays the same."""

    def __init__(self, often: float, seed: int) -> None:
        self._rng = Random(f"updates {seed}")
        self._often = often

    def wanted(self) -> bool:
        return self._often > 0 and self._rng.random() < self._often

    def ask(self, world: World, queues: list[str]) -> None:
        rng = self._rng
        name = rng.choice([*queues, *[f"{queue}.dlq" for queue in queues]])
        named = rng.sample(sorted(VALUES), rng.randint(0, 3))
        settings = {one: rng.choice(VALUES[one]) for one in named}
        if rng.random() < 0.03:
            settings["colour"] = "red"
        if rng.random() < 0.1:
            settings["cost"] = rng.choice(("", "messages", "bytes"))
        found = world.machine.state.queues.get(name)
        version = found.version if found is not None else 1
        expected = rng.choice((0, 0, version, max(version - 1, 0)))
        back = rng.choice((0, 0, 0, rng.randint(1, version + 1)))
        world.apply(UpdateQueue(name, settings, expected, back, rng.choice(("", "why")), "ops"))


def present(queue: Queue, books: Books) -> dict[str, str]:
    """Its settings now, all of them."""
    name = queue.name
    limits = {one: books.config.get(f"lua:{name}:{field}", "") for one, field in HOOKS.items()}
    return {**queue.settings, **limits}


def update_queue(books: Books, command: UpdateQueue, reply: Reply, asked: object) -> None:
    queue = pauses.find(books, command.queue, reply)
    if queue is None:
        return
    version = max(queue.versions)
    if command.expected_version and command.expected_version != version:
        books.met["update refused: another came first"] += 1
        _refused(reply, rejection.VERSION_CONFLICT)
        return
    settings = present(queue, books)
    if command.from_version and command.from_version != version:
        if command.from_version not in queue.versions:
            _refused(reply, rejection.INVALID_CONFIG_VALUE)
            return
        books.met["version brought back"] += 1
        settings = queue.versions[command.from_version]
    settings = {**settings, **command.settings}
    if "colour" in settings or not _fits(books, queue, settings):
        _refused(reply, rejection.INVALID_CONFIG_VALUE)
        return
    default = str(books.settings.visibility_ms_default)
    settings["visibility_timeout_ms"] = settings["visibility_timeout_ms"] or default
    settings["max_attempts"] = settings["max_attempts"] or "0"
    settings["cost"] = queue.settings["cost"]
    settings["message_ttl_ms"] = settings["message_ttl_ms"] or "0"
    settings["expired"] = settings["expired"] or _unsaid(queue)
    settings["max_in_flight_per_key"] = settings["max_in_flight_per_key"] or "0"
    settings["overflow"] = settings["overflow"] or "reject"
    for one in rooms.LIMITS:
        settings[one] = settings[one] or "0"
    if settings == present(queue, books):
        same("reply to UpdateQueue", reply, version)
        return
    if queue.reclassifying:
        books.met["queue updated while it was reclassified"] += 1
        reclassify.begin_again(queue)
    books.met["queue updated"] += 1
    books.met["queue updated while it held leases"] += bool(queue.leases)
    same("reply to UpdateQueue", reply, version + 1)
    if version == 1:
        queue.versions[1] = present(queue, books)
    queue.versions[version + 1] = settings
    queue.versions.pop(version + 1 - books.settings.versions_kept, None)
    for one, field in HOOKS.items():
        books.config.pop(f"lua:{queue.name}:{field}", None)
        if settings[one]:
            books.config[f"lua:{queue.name}:{field}"] = settings[one]
    queue.settings = {one: text for one, text in settings.items() if one not in HOOKS}
    queue.visibility_ns = int(settings["visibility_timeout_ms"]) * MS
    queue.max_attempts = int(settings["max_attempts"])
    queue.ttl_ms = int(settings["message_ttl_ms"])
    if not queue.weighed_since and (settings["max_bytes"], settings["key_max_bytes"]) != ("0", "0"):
        queue.weighed_since = books.now
    queue.drops_expired = settings["expired"] == "drop"
    books.limit_in_flight(queue, int(settings["max_in_flight_per_key"]))
    if books.journal:
        events.expect_plain(books.events, EVENT_QUEUE_UPDATED, queue.name)


def check_present(books: Books, world_settings: dict[str, str], queue: Queue) -> None:
    """What the machine says a queue is told to be."""
    if world_settings != present(queue, books):
        raise Violation(PROMISE, f"{queue.name} is {world_settings}")


def check_stored(books: Books, store: MemoryStore, numbers: dict[int, str]) -> None:
    """The versions that are kept, of all queues that were ever changed, and nothing else."""
    stored: dict[str, dict[int, dict[str, str]]] = {}
    for key, value in store.scan(STATE, b"v", b"w", _ALL, _ALL):
        name = numbers.get(int.from_bytes(key[1:5], "big"))
        if name is None:
            raise Violation(PROMISE, "a version is stored of a queue that is gone")
        texts = {one: text for one, text in read_version(value).settings.items() if text}
        stored.setdefault(name, {})[version_number(key)] = texts
    kept = {
        name: {
            number: {one: text for one, text in settings.items() if text}
            for number, settings in queue.versions.items()
        }
        for name, queue in books.queues.items()
        if max(queue.versions) > 1
    }
    same(PROMISE, stored, kept)


def _fits(books: Books, queue: Queue, settings: dict[str, str]) -> bool:
    if settings["cost"] not in ("", queue.settings["cost"]):
        books.met["update refused: another cost"] += 1
        return False
    limits = books.settings
    numbers = ("visibility_timeout_ms", "max_attempts", "max_in_flight_per_key")
    texts = [settings[one] or "0" for one in numbers]
    ttl_ms = settings["message_ttl_ms"] or "0"
    if not ttl_ms.isdigit() or int(ttl_ms) > limits.ttl_ms_max:
        return False
    if settings["expired"] not in ("", "drop", _unsaid(queue)):
        return False
    room = [settings[one] or "0" for one in rooms.LIMITS]
    if not all(one.isdigit() for one in room):
        return False
    overflow = settings["overflow"] or "reject"
    if overflow not in ("reject", "drop-oldest"):
        return False
    if queue.name.endswith(".dlq") and (set(room) != {"0"} or overflow != "reject"):
        return False
    if not all(text.isdigit() for text in texts):
        return False
    visibility_ms = int(texts[0]) or limits.visibility_ms_default
    attempts = int(texts[1])
    if int(texts[2]) > limits.in_flight_max:
        return False
    in_bounds = limits.visibility_ms_min <= visibility_ms <= limits.visibility_ms_max
    has_dlq = not queue.name.endswith(".dlq")
    return in_bounds and attempts <= limits.max_attempts_max and (has_dlq or not attempts)


def _unsaid(queue: Queue) -> str:
    """What becomes of expired messages unless somebody says something else."""
    return "drop" if queue.name.endswith(".dlq") else "dead-letter"


def _refused(reply: Reply, code: int) -> None:
    if not isinstance(reply, Rejection) or reply.code != code:
        raise Violation(PROMISE, f"{reply!r}, should be refused with {code:#04x}")
