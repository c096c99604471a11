"""Messages that expire: what makes them so, and when they are gone, followed in the books."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from fila.core.aging_rows import at_ms, message_key
from fila.core.applies import Reply
from fila.core.command import Age, UpdateQueue
from fila.core.effect import EVENT_PURGED
from fila.core.rows import STATE
from fila.storage.memory import MemoryStore

from . import events, fair
from .model import MS, Key, Message, Queue, dead_body
from .turn import Violation, same

if TYPE_CHECKING:
    from .books import Books
    from .world import World

PROMISE = "time to live"
_ALL = 1 << 62
_TTLS = ("1", "3", "40", "500", "20000", "0", "soon")


class Ages:
    """Who sets times to live. They have a dice of their own: what others do stays the same."""

    def __init__(self, often: float, seed: int) -> None:
        self._rng = Random(f"ages {seed}")
        self._often = often

    def wanted(self) -> bool:
        return self._often > 0 and self._rng.random() < self._often / 5

    def ask(self, world: World, queues: list[str]) -> None:
        rng = self._rng
        name = rng.choice([*queues, *[f"{queue}.dlq" for queue in queues]])
        settings = {
            "message_ttl_ms": rng.choice(("", "", "0", "2", "30", "900", "1" * 15, "soon")),
            "expired": rng.choice(("", "drop", "dead-letter", "burn", "drop", "")),
        }
        del settings[rng.choice(sorted(settings))]
        world.apply(UpdateQueue(name, settings, who="ops"))

    def dress(self, world: World, body: bytes) -> bytes:
        """A producer may say of a message how long it lives."""
        rng = self._rng
        if not self._often or rng.random() > self._often:
            return body
        now_ms = world.clock_ns // MS
        headers = [(b"tenant", b"a"), (b"fila.ttl_ms", rng.choice(_TTLS).encode())]
        if rng.random() < 0.3:
            at = now_ms + rng.choice((-5, 0, 1, 60, 900))
            headers.append((b"fila.expires_at_ms", b"%d" % at))
        rng.shuffle(headers)
        return _joined(headers[: rng.randint(1, 3)], body)


def stamp(books: Books, queue: Queue, message: Message, body: bytes) -> None:
    """What a queue stores of a message that was sent to it."""
    now_ms = -(-books.now // MS)
    wishes = [now_ms + queue.ttl_ms] if queue.ttl_ms else []
    headers, payload = _parted(body)
    for name, value in headers:
        if value.isdigit() and int(value):
            if name == b"fila.ttl_ms":
                wishes.append(now_ms + int(value))
            elif name == b"fila.expires_at_ms":
                wishes.append(int(value))
    named = any(name == b"fila.expires_at_ms" for name, _ in headers)
    kept = [one for one in headers if one[0] != b"fila.expires_at_ms"]
    message.sent = _joined(kept, payload) if named else body
    live(message, min(wishes, default=0))
    books.met["messages that expire"] += bool(wishes)


def live(message: Message, expires_ms: int) -> None:
    """The body as it was sent, or as a dead letter has it, with the time it expires."""
    message.expires_ns = expires_ms * MS
    message.body = message.sent
    _say(message, expires_ms)


def bury(books: Books, dlq: Queue, message: Message, body: bytes) -> None:
    """A dead letter: of its time only the dead-letter queue says something."""
    expires_ms = -(-books.now // MS) + dlq.ttl_ms if dlq.ttl_ms else 0
    message.body = body
    message.expires_ns = expires_ms * MS
    _say(message, expires_ms)


def follow(books: Books, command: Age, reply: Reply) -> None:
    queue = books.queues[command.queue]
    count = 0
    for row, _ in command.rows:
        id, time_ns = message_key(row)[-16:], at_ms(row) * MS
        if time_ns > books.now:
            raise Violation(PROMISE, f"{id.hex()[-6:]} goes {time_ns - books.now} ns early")
        message = books.messages.get(id)
        if message is None or message.lease is not None or message.expires_ns != time_ns:
            books.met["a purged message's time came"] += 1
            continue
        if queue.apart and count == reply:
            break  # it could not be read
        count += 1
        _give_up(books, queue, message)
    same("reply to Age", reply, count)
    queue.counted["aged_out"] += count


def _give_up(books: Books, queue: Queue, message: Message) -> None:
    lane = message.lane
    if lane.key.queue is not queue:
        raise Violation(PROMISE, f"{message.id.hex()[-6:]} is not in {queue.name}")
    books.met["expired behind others"] += bool(lane.line) and lane.line[0] is not message
    books.remove(message)
    books.refresh(lane)
    dlq = books.dlq_of(queue) if not queue.drops_expired else None
    if dlq is None:
        books.met["expired and dropped"] += 1
        del books.messages[message.id]
        books.gone[message.id] = "expired"
        if books.journal:
            event = events.expect_plain(books.events, EVENT_PURGED, queue.name)
            seen = (event.fairness_key, event.key_pending, event.reason)
            same("dropped event", seen, (lane.key.name, lane.key.pending, "messages=1"))
        return
    queue.counted["dead_lettered"] += 1
    books.met["expired dead letters"] += 1
    error = "time to live ran out"
    body = dead_body(message, "expired", error, books.now, queue.name)
    bury(books, dlq, message, body)
    target = books.lane(dlq, lane.key.name, lane.throttle_keys)
    books.tell_weight(target.key, message.weight)
    books.store(message, target, 0)
    if books.journal:
        kind = events.EVENT_DEAD_LETTERED
        events.expect(books.events, kind, message, error=error, source=queue.name)


def passed_over(books: Books, key: Key) -> bool:
    """Whether delivery may pass over the key: something of it should be gone."""
    if not books.expired_left:
        return False
    return any(
        0 < one.expires_ns <= books.now
        for lane in key.lanes.values()
        for one in lane.line + lane.timed
    )


def check_left(books: Books, bounded: bool) -> None:
    """Nothing that is expired waits on, but for what a turn had no room for (`bounded`) or what
    came back with this very turn. What does makes its lane's turns unsure."""
    books.expired_left = False
    for message in books.messages.values():
        if message.lease is None and 0 < message.expires_ns <= books.now:
            lane = message.lane
            if (
                not (bounded or lane.key.queue.loading)
                and message.since_ns < books.now
                and not lane.key.queue.absent
            ):
                raise Violation(PROMISE, f"{message.id.hex()[-6:]} waits past its time")
            books.met["expired messages left for the next turn"] += 1
            books.expired_left = True
            lane.key.steady_since = -abs(lane.key.steady_since) - 1
            lane.key.stands = False
            lane.key.stood += 1
            for other in lane.key.lanes.values():
                if other.sure:
                    fair.becomes_unsure(other)


def next_ns(books: Books) -> int:
    """When the next pending message expires; 0: none does."""
    times = [
        one.expires_ns
        for one in books.messages.values()
        if one.lease is None and one.expires_ns and not one.lane.key.queue.absent
    ]
    return min(times, default=0)


def check_stored(books: Books, store: MemoryStore) -> None:
    """Of every message that waits and expires there is a row, and of none that is leased."""
    stored = {}
    for row, _ in store.scan(STATE, b"t", b"u", _ALL, _ALL):
        stored[message_key(row)[-16:], at_ms(row) * MS] = row
    for message in books.messages.values():
        place = (message.id, message.expires_ns)
        row = stored.pop(place, b"")
        waits = message.lease is None and message.expires_ns > 0
        if waits != (row != b""):
            raise Violation(PROMISE, f"{message.id.hex()[-6:]}: its row is {row!r}")
    left = {id for id, _ in stored if books.gone.get(id) != "purged"}
    if left:
        raise Violation(PROMISE, f"rows of {len(left)} messages are left behind")


def _say(message: Message, expires_ms: int) -> None:
    if expires_ms:
        body = message.body
        count = int.from_bytes(body[:2], "big") + 1
        told = [(b"fila.expires_at_ms", b"%d" % expires_ms)]
        message.body = count.to_bytes(2, "big") + _joined(told, b"")[2:] + body[2:]


def _joined(headers: list[tuple[bytes, bytes]], payload: bytes) -> bytes:
    texts = [text for pair in headers for text in pair]
    count = len(headers).to_bytes(2, "big")
    return count + b"".join([len(one).to_bytes(2, "big") + one for one in texts]) + payload


def _parted(body: bytes) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """The headers of a body that was dressed, and what follows them."""
    if body[:1] != b"\0":
        return [], body
    at = 2
    texts = []
    for _ in range(2 * body[1]):
        size = int.from_bytes(body[at : at + 2], "big")
        texts.append(body[at + 2 : at + 2 + size])
        at += 2 + size
    return list(zip(texts[::2], texts[1::2], strict=True)), body[at:]
