"""What happened to one queue, as input for running it again: arrivals, consumers, outcomes.

Owns the reading of a queue's events as a trace. What the scheduler decided (who was delivered when)
is left out: that is what a replay decides again. What it could not know is kept: when messages
arrived, how long each was held and how that ended.
"""

from __future__ import annotations

from statistics import median
from typing import Any, Final, NamedTuple
from uuid import UUID

from fila.core.command import Command, Consume, Enqueue, Leave, SetConfig
from fila.core.verdict import Assignment

NS_PER_US: Final = 1_000
_US_PER_MS: Final = 1_000
_ARRIVALS: Final = ("enqueued", "redriven", "dead_lettered")
_ENDINGS: Final = ("acked", "nacked", "expired", "released")
# The columns a trace is made of.
COLUMNS: Final = (
    "queue", "epoch", "seq", "ts", "event", "message_id", "fairness_key", "weight",
    "throttle_keys", "since", "ready_at", "consumer", "credit_delta", "payload_bytes",
)  # fmt: skip


class Outcome:
    """How one delivery of a message ended; a message has one per delivery."""

    __slots__ = ("delay_ms", "delivered_us", "held_us", "kind", "retried", "seq")

    def __init__(self, delivered_us: int) -> None:
        self.delivered_us = delivered_us
        self.held_us = -1  # still held when the record ends
        self.kind = ""
        self.retried = False
        self.delay_ms = 0
        self.seq = 0


class Step(NamedTuple):
    """Something from outside, at its time and in its order within it."""

    at_us: int
    seq: int
    command: Command


class Trace(NamedTuple):
    queue: str
    steps: list[Step]
    outcomes: dict[bytes, list[Outcome]]
    waits_us: dict[str, list[int]]  # recorded, by key
    end_us: int  # when the record ends
    held_us: int  # how long a message was typically held

    def held_of(self, id: bytes, nth: int) -> int:
        """How long the nth delivery of a message is held, as far as the record says."""
        recorded = self.outcomes.get(id, [])
        if nth >= len(recorded):
            return self.held_us
        outcome = recorded[nth]
        if outcome.held_us >= 0:
            return outcome.held_us
        # Still held when the record ends: at least until then.
        return max(self.held_us, self.end_us - outcome.delivered_us)


class Setting(NamedTuple):
    """A runtime setting as it was changed."""

    at_us: int
    key: str
    value: str


def trace_of(queue: str, table: Any, settings: list[Setting]) -> Trace:
    """The trace of one queue from its events, an Arrow table in any order."""
    steps = [Step(one.at_us, -2, SetConfig(one.key, one.value)) for one in settings]
    outcomes: dict[bytes, list[Outcome]] = {}
    waits: dict[str, list[int]] = {}
    known: set[bytes] = set()
    bodies: dict[int, bytes] = {}
    joined: dict[str, None] = {}
    connection = 0
    epoch = None
    end_us = 0
    for order, row in enumerate(_rows(table)):
        at_us, event = row.ts, row.event
        end_us = max(end_us, at_us)
        if row.epoch != epoch:
            # A restart ends every consumer without a word.
            steps += [Step(at_us, order, Leave(queue, one)) for one in joined]
            joined = {}
            epoch = row.epoch
        id = UUID(row.message_id).bytes if row.message_id else b""
        if event in _ARRIVALS:
            known.add(id)
            steps.append(Step(at_us, order, _arrival(queue, id, row, bodies, _delay_ms(row))))
        elif event == "delivered":
            if id not in known:  # stored before the record begins
                known.add(id)
                steps.append(Step(row.since, -1, _arrival(queue, id, row, bodies, 0)))
            outcomes.setdefault(id, []).append(Outcome(at_us))
            waits.setdefault(row.fairness_key, []).append(at_us - row.since)
        elif event in _ENDINGS and id in outcomes:
            outcome = outcomes[id][-1]
            outcome.kind = event
            outcome.held_us = at_us - outcome.delivered_us
            outcome.seq = order
        elif event == "requeued" and id in outcomes:
            outcomes[id][-1].retried = True
            outcomes[id][-1].delay_ms = _delay_ms(row)
        elif event == "consumer_joined":
            connection += 1
            joined[row.consumer] = None
            join = Consume(queue, row.consumer, connection, row.credit_delta)
            steps.append(Step(at_us, order, join))
        elif event == "consumer_left" and row.consumer in joined:
            del joined[row.consumer]
            steps.append(Step(at_us, order, Leave(queue, row.consumer)))
    held = [one.held_us for every in outcomes.values() for one in every if one.held_us >= 0]
    typical_us = round(median(held)) if held else 0
    steps.sort(key=lambda one: one[:2])
    return Trace(queue, steps, outcomes, waits, end_us, typical_us)


class _Row(NamedTuple):
    """One event; times in whole microseconds."""

    ts: int
    event: str
    epoch: int
    message_id: str | None
    fairness_key: str
    weight: int
    throttle_keys: list[str] | None
    since: int
    ready_at: int
    consumer: str
    credit_delta: int
    payload_bytes: int


def _rows(table: Any) -> list[_Row]:
    """Rows in the order they happened."""
    ordered = table.sort_by([("epoch", "ascending"), ("seq", "ascending")])
    columns = []
    for name in _Row._fields:
        column = ordered[name]
        if name in ("ts", "since", "ready_at"):
            column = column.cast("int64").fill_null(0)
        columns.append(column.to_pylist())
    return [_Row._make(values) for values in zip(*columns, strict=True)]


def _delay_ms(row: _Row) -> int:
    return max(0, row.ready_at - row.ts) // _US_PER_MS


def _arrival(queue: str, id: bytes, row: _Row, bodies: dict[int, bytes], delay_ms: int) -> Enqueue:
    size = row.payload_bytes or 1
    body = bodies.setdefault(size, bytes(size))
    keys = tuple(one.encode() for one in row.throttle_keys or ())
    assignment = Assignment(row.fairness_key.encode(), row.weight, keys)
    return Enqueue(queue, [id], [body], [assignment], [delay_ms])
