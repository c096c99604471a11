"""What operators say of single keys: asked for, and followed in the books.

Promised: the weight holds from the next visit on and the rate from the next token on, for what
waits already and for what comes; both hold through restarts, end to the nanosecond when their time
is over, and then the key has the weight its newest message said. The rate is a bucket like any
other, so its promise is checked with theirs.
"""

from __future__ import annotations

from itertools import groupby
from random import Random
from typing import TYPE_CHECKING

from fila.core import override, rejection, rows
from fila.core.applies import Reply
from fila.core.command import SetOverride
from fila.core.effect import EVENT_KEY_OVERRIDDEN, EVENT_KEY_OVERRIDE_ENDED
from fila.core.override import Terms
from fila.core.overriding import CLEARED, EXPIRED
from fila.core.rejection import Rejection
from fila.storage.memory import MemoryStore

from . import events, fair, pauses
from .books import Books
from .model import MS, Key, Queue
from .tokens import Bucket
from .turn import Violation, same

if TYPE_CHECKING:
    from .world import World

PROMISE = "overrides"
VALUES = {
    "weight": ("", "1", "3", "7", "50", "0", "-1", "100000000"),
    "rate": ("", "5", "50", "2000", "0", "fast"),
    "burst": ("", "1", "4", "30", "0.5"),
    "expires_in_ms": ("", "1", "40", "900", "60000", "soon"),
}
_ALL = 1 << 62


class Overrides:
    """What operators say of keys. They have a dice of their own: what others do stays the same."""

    def __init__(self, often: float, seed: int) -> None:
        self._rng = Random(f"overrides {seed}")
        self._often = often

    def wanted(self) -> bool:
        return self._often > 0 and self._rng.random() < self._often

    def ask(self, world: World, queues: list[str], keys: list[bytes]) -> None:
        rng = self._rng
        name = rng.choice([*queues, *queues, *[f"{queue}.dlq" for queue in queues]])
        key = keys[int(rng.random() ** 2 * len(keys))]
        clear = rng.random() < 0.15
        named = [] if clear else rng.sample(sorted(VALUES), rng.choice((0, 1, 1, 2, 3)))
        settings = {one: rng.choice(VALUES[one]) for one in named}
        if rng.random() < 0.03:
            settings["colour"] = "red"
        world.apply(SetOverride(name, key, settings, clear, rng.choice(("", "why")), "ops"))


def set_override(books: Books, command: SetOverride, reply: Reply, asked: object) -> None:
    queue = pauses.find(books, command.queue, reply)
    if queue is None:
        return
    key = queue.key(command.fairness_key)
    before = key.override or Terms()
    terms = Terms() if command.clear else _after(books, before, command.settings)
    if terms is None or (command.clear and command.settings):
        books.met["override refused"] += 1
        _refused(reply)
        return
    if not terms.weight and not terms.rate:
        if key.override is None and not command.clear:
            _refused(reply)
            return
        same("reply to SetOverride", reply, 0 if key.override is None else 1)
        if key.override is not None:
            key.override = None
            if books.journal:
                event = events.expect_plain(books.events, EVENT_KEY_OVERRIDE_ENDED, queue.name)
                same("override ended", (event.fairness_key, event.reason), (key.name, CLEARED))
            _hold(books, key)
        return
    if terms == before and not command.note:
        same("reply to SetOverride", reply, 0)
        return
    same("reply to SetOverride", reply, 1)
    books.met["override set"] += 1
    books.met["override of a key that waits"] += bool(key.pending)
    key.override = terms._replace(
        since_ns=books.now, who=command.who, note=command.note or before.note
    )
    if books.journal:
        event = events.expect_plain(books.events, EVENT_KEY_OVERRIDDEN, queue.name)
        same("override told", (event.fairness_key, event.consumer), (key.name, command.who))
    _hold(books, key)


def fall_due(books: Books) -> None:
    """Those whose time is over end, each at its own."""
    due = [
        (key.override.expires_ns, key)
        for queue in books.queues.values()
        if not queue.absent
        for key in queue.keys.values()
        if key.override is not None and 0 < key.override.expires_ns <= books.now
    ]
    due.sort(key=lambda one: one[0])
    for _, some in groupby(due, key=lambda one: one[0]):
        keys = [key for _, key in some]
        books.met["override expired"] += len(keys)
        if books.journal:  # those of one moment in any order
            found = [events.expect_kind(books.events, EVENT_KEY_OVERRIDE_ENDED) for _ in keys]
            told = sorted([(one.queue, one.fairness_key, one.reason) for one in found])
            same("overrides ended", told, sorted([(k.queue.name, k.name, EXPIRED) for k in keys]))
        for key in keys:
            key.override = None
            _hold(books, key)


def next_ns(queue: Queue) -> int:
    """When the first of the queue's ends; 0: none does."""
    ends = [one.override.expires_ns for one in queue.keys.values() if one.override is not None]
    return min([at_ns for at_ns in ends if at_ns], default=0)


def check_live(books: Books, queue: Queue, found: dict[bytes, Terms]) -> None:
    """What the machine says holds."""
    expected = {one.name: one.override for one in queue.keys.values() if one.override is not None}
    if found != expected:
        raise Violation(PROMISE, f"{queue.name} has {found}, should have {expected}")


def check_stored(books: Books, store: MemoryStore, numbers: dict[int, str]) -> None:
    """The rows of those that hold, and no others."""
    terms: dict[tuple[str, bytes], Terms] = {}
    levels = set()
    for row, value in store.scan(rows.STATE, rows.OVERRIDE_PREFIX, b"l", _ALL, _ALL):
        name = numbers.get(rows.owner_of_state(row))
        if name is None:
            raise Violation(PROMISE, "one is stored of a queue that is gone")
        if override.is_level(row):
            levels.add((name, override.key_of(row)))
        else:
            terms[name, override.key_of(row)] = override.read_override(value)
    held = {
        (queue.name, key.name): key.override
        for queue in books.queues.values()
        for key in queue.keys.values()
        if key.override is not None
    }
    same(PROMISE, terms, held)
    same(f"{PROMISE}: levels", levels, {place for place, one in held.items() if one.rate})


def _hold(books: Books, key: Key) -> None:
    """What is said of the key holds from now on."""
    terms = key.override or Terms()
    fair.weight_changes(key, terms.weight or key.told_weight)
    tokens = books.tokens
    limit = terms.limit()
    bucket = tokens.buckets.get(key.own_limit)
    if limit is None:
        if bucket is not None:
            del tokens.buckets[key.own_limit]
    elif bucket is None:
        tokens.buckets[key.own_limit] = Bucket(limit.rate, limit.burst, books.now)
    elif (bucket.rate, bucket.burst) != limit:
        bucket.level = min(bucket.level_at(books.now), limit.burst)
        bucket.at_ns = books.now
        bucket.rate, bucket.burst = limit
        bucket.changes += 1
    if limit is not None and not key.limited:
        key.limited = True
        key.cut_off = True
        key.stands = False
        key.stood += 1
    books.doubt(key.own_limit)
    key.queue.shared = {}


def _after(books: Books, terms: Terms, given: dict[str, str]) -> Terms | None:
    """What would hold; None where it is refused."""
    if given.keys() - set(VALUES):
        return None
    if "weight" in given:
        text = given["weight"]
        if text in ("0", "-1", "100000000"):
            return None
        terms = terms._replace(weight=int(text or "0"))
    if "rate" in given:
        text = given["rate"]
        if text in ("0", "fast"):
            return None
        terms = terms._replace(rate=float(text or "0"))
        if not terms.rate:
            terms = terms._replace(burst=0.0)
    if "burst" in given:
        text = given["burst"]
        if text == "0.5" or (text and not terms.rate):
            return None
        terms = terms._replace(burst=float(text or "0"))
    if "expires_in_ms" in given:
        text = given["expires_in_ms"]
        if text == "soon":
            return None
        terms = terms._replace(expires_ns=books.now + int(text) * MS if text else 0)
    return terms


def _refused(reply: Reply) -> None:
    if not isinstance(reply, Rejection) or reply.code != rejection.INVALID_CONFIG_VALUE:
        raise Violation(PROMISE, f"{reply!r}, should be refused")
