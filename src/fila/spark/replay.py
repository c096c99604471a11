"""A queue run again: the broker's own core over a recorded trace, with settings of one's choice.

Owns time in the replay: messages arrive when they did, each is held as long as it was and ends as
it did (typically long, and well, where the record does not say). Who is delivered when is decided
by `fila.core`, turn by turn as in the broker. Nothing here decides anything about order.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from fila.core import rows
from fila.core.command import Ack, Command, Consume, CreateQueue, Enqueue, Leave, Nack, SetConfig
from fila.core.effect import Delivery
from fila.core.effects import Effects
from fila.core.entry import message_id
from fila.core.load import load
from fila.core.policy import Defaults
from fila.core.reader import Reader
from fila.core.row_batch import DELETE, FAMILY_MASK, RowBatch
from fila.core.settings import Settings
from fila.core.turn import Turn
from fila.core.verdict import FailureVerdict
from fila.spark.trace import NS_PER_US, Step, Trace

# Leases end as recorded, so none may run out by itself.
_FOR_EVER_MS: Final = 10**12
# Nothing is paged: the whole backlog of the trace is in memory anyway.
_NO_LIMIT: Final = 1 << 60
_LAST: Final = 1 << 60  # after everything recorded of the same moment


class Changes(NamedTuple):
    """What is to be different from the record."""

    weights: dict[str, int] = {}  # noqa: RUF012  never changed
    rates: dict[str, str] = {}  # noqa: RUF012  throttle key → "rate,burst"; "" lifts the limit
    quantum: int = 0  # 0: as recorded
    consumers: int = 0  # 0: as recorded


def replay(trace: Trace, quantum: int = 1, changes: Changes | None = None) -> dict[str, list[int]]:
    """The waits of every delivery by key, in microseconds."""
    changes = changes or Changes()
    settings = Settings(
        quantum=changes.quantum or quantum,
        visibility_ms_max=_FOR_EVER_MS,
        window_messages=_NO_LIMIT,
        window_bytes_total=_NO_LIMIT,
    )
    steps = _changed(trace, changes)
    if not steps:
        return {}
    return _Replay(trace, steps, settings).run()


class _Replay:
    """One run: the turn's committer and its outlet, too. A turn is safe at once."""

    def __init__(self, trace: Trace, steps: list[Step], settings: Settings) -> None:
        self._trace = trace
        self._rows = _Rows()
        self._now = steps[0].at_us * NS_PER_US
        machine = load(self._rows, settings, self._now)
        self._turn = Turn(machine, Defaults(), self, self)
        self._turn.apply(CreateQueue(trace.queue, visibility_ms=_FOR_EVER_MS))
        self._heap = [(step.at_us * NS_PER_US, step.seq, at) for at, step in enumerate(steps)]
        self._commands: list[Command] = [step.command for step in steps]
        heapq.heapify(self._heap)
        self._seen: dict[bytes, int] = {}
        self._waits: dict[str, list[int]] = {}

    def run(self) -> dict[str, list[int]]:
        turn, heap = self._turn, self._heap
        end = (self._trace.end_us + 1) * NS_PER_US
        while True:
            wake = turn.due_ns()
            at = heap[0][0] if heap else 0
            now = min(at, wake) if at and wake else at or wake
            if not now or now >= end:
                return self._waits
            self._now = now
            turn.begin(now)
            # What a delivery pass has not got to yet goes before what follows from its first part.
            while not turn.more and heap and heap[0][0] <= now:
                turn.apply(self._commands[heapq.heappop(heap)[2]])
            turn.end()

    def commit(self, batches: list[RowBatch], committed: Callable[[], None]) -> None:
        self._rows.write(batches)
        committed()

    def leaving(self, effects: Effects, calls: list[Callable[[], None]]) -> Callable[[], None]:
        return partial(self._delivered, effects.deliveries)

    def _delivered(self, deliveries: list[Delivery]) -> None:
        """Note the waits; each delivery sets the time of its own end."""
        for delivery in deliveries:
            for entry, lane, wait in zip(
                delivery.entries, delivery.lanes, delivery.waits, strict=True
            ):
                if lane.queue.name == self._trace.queue:
                    key = lane.key.name.decode()
                    self._waits.setdefault(key, []).append(sum(wait) // NS_PER_US)
                    self._will_end(message_id(entry))

    def _will_end(self, id: bytes) -> None:
        """The message is held as long as it was, and ends as it did."""
        trace = self._trace
        nth = self._seen.get(id, 0)
        self._seen[id] = nth + 1
        recorded = trace.outcomes.get(id, [])
        command: Command = Ack(trace.queue, [id])
        seq = _LAST
        if nth < len(recorded) and recorded[nth].kind:
            outcome = recorded[nth]
            seq = outcome.seq
            if outcome.kind != "acked":
                retried = outcome.retried or outcome.kind == "released"
                verdict = FailureVerdict(not retried, outcome.delay_ms)
                command = Nack(trace.queue, [id], [outcome.kind], [verdict])
        ends_at = self._now + trace.held_of(id, nth) * NS_PER_US
        heapq.heappush(self._heap, (ends_at, seq, len(self._commands)))
        self._commands.append(command)


def _changed(trace: Trace, changes: Changes) -> list[Step]:
    """The steps with other weights, rates and consumers."""
    steps: list[Step] = []
    first = trace.steps[0].at_us if trace.steps else 0
    for key, value in changes.rates.items():
        steps.append(Step(first, -3, SetConfig(f"throttle.{key}", value)))
    joins = [step for step in trace.steps if isinstance(step.command, Consume)]
    if changes.consumers and joins:
        prefetch = max(step.command.prefetch for step in joins)  # type: ignore[union-attr]
        for number in range(changes.consumers):
            consumer = Consume(trace.queue, f"replayed-{number}", number + 1, prefetch)
            steps.append(Step(joins[0].at_us, joins[0].seq, consumer))
    for step in trace.steps:
        command = step.command
        if isinstance(command, SetConfig) and _throttle_key(command.key) in changes.rates:
            continue
        if isinstance(command, Consume | Leave) and changes.consumers and joins:
            continue
        if isinstance(command, Enqueue) and changes.weights:
            assignment = command.assignments[0]
            weight = changes.weights.get(assignment.fairness_key.decode(), assignment.weight)
            command = command._replace(assignments=[assignment._replace(weight=weight)])
        steps.append(step._replace(command=command))
    return sorted(steps, key=lambda step: step[:2])


def _throttle_key(setting: str) -> str:
    if setting.startswith("throttle."):
        return setting.removeprefix("throttle.")
    return setting.removeprefix("throttle:").rpartition(":")[0]


class _Rows:
    """The stored messages, as far as the core reads them back."""

    def __init__(self) -> None:
        self._messages: dict[bytes, bytes] = {}

    def snapshot(self) -> Reader:
        raise NotImplementedError("a replay is not browsed")

    def get(self, family: int, key: bytes) -> bytes | None:
        return self._messages.get(key) if family == rows.MESSAGES else None

    def get_many(self, family: int, keys: list[bytes]) -> list[bytes | None]:
        return [self.get(family, key) for key in keys]

    def scan(
        self, family: int, start: bytes, end: bytes, rows_max: int, bytes_max: int
    ) -> list[tuple[bytes, bytes]]:
        # Asked at the start, when there is nothing yet; windows without limit page nothing in.
        assert family != rows.MESSAGES or not self._messages, "a replay pages nothing in"
        return []

    def write(self, batches: list[RowBatch]) -> None:
        messages = self._messages
        for batch in batches:
            for code, key, value in batch.ops:
                if code & FAMILY_MASK == rows.MESSAGES:
                    if code & ~FAMILY_MASK == DELETE:
                        messages.pop(key, None)
                    else:
                        messages[key] = value
