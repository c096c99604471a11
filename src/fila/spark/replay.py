"""A queue run again: the broker's own core over a recorded trace, with settings of one's choice.

Owns time in the replay: messages arrive when they did, each is held as long as it was and ends as
it did (typically long, and well, where the record does not say). Who is delivered when is decided
by `fila.core`, the very code the broker runs. Nothing here decides anything about order.
"""

from __future__ import annotations

import heapq
from typing import Final, NamedTuple

from fila.core import rows
from fila.core.batch import DELETE, FAMILY_MASK, Batch
from fila.core.command import Ack, Command, Consume, CreateQueue, Enqueue, Leave, Nack, SetConfig
from fila.core.load import load
from fila.core.machine import Machine
from fila.core.settings import Settings
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
    store = _Rows()
    settings = Settings(
        quantum=changes.quantum or quantum,
        visibility_ms_max=_FOR_EVER_MS,
        window_messages=_NO_LIMIT,
        window_bytes_total=_NO_LIMIT,
    )
    steps = _changed(trace, changes)
    if not steps:
        return {}
    now = steps[0].at_us * NS_PER_US
    machine = load(store, settings, now)
    machine.apply(CreateQueue(trace.queue, visibility_ms=_FOR_EVER_MS))
    heap = [(step.at_us * NS_PER_US, step.seq, at) for at, step in enumerate(steps)]
    commands: list[Command] = [step.command for step in steps]
    heapq.heapify(heap)
    end = (trace.end_us + 1) * NS_PER_US
    seen: dict[bytes, int] = {}
    waits: dict[str, list[int]] = {}
    while True:
        wake = machine.next_deadline()
        at = heap[0][0] if heap else 0
        now = min(at, wake) if at and wake else at or wake
        if not now or now >= end:
            return waits
        machine.advance(now)
        while heap and heap[0][0] <= now:
            machine.apply(commands[heapq.heappop(heap)[2]])
        _deliver(machine, trace, store, now, heap, commands, seen, waits)


def _deliver(
    machine: Machine,
    trace: Trace,
    store: _Rows,
    now: int,
    heap: list[tuple[int, int, int]],
    commands: list[Command],
    seen: dict[bytes, int],
    waits: dict[str, list[int]],
) -> None:
    """Let go what may go; each delivery sets the time of its own end."""
    more = True
    while more:
        more = machine.deliver()
        effects = machine.take()
        store.write(effects.batches)
        machine.stored()
        for delivery in effects.deliveries:
            for entry, lane, wait in zip(
                delivery.entries, delivery.lanes, delivery.waits, strict=True
            ):
                if lane.queue.name != trace.queue:
                    continue
                waits.setdefault(lane.key.name.decode(), []).append(sum(wait) // NS_PER_US)
                id = entry[0][rows.ID_AT :]
                nth = seen.get(id, 0)
                seen[id] = nth + 1
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
                ends_at = now + trace.held_of(id, nth) * NS_PER_US
                heapq.heappush(heap, (ends_at, seq, len(commands)))
                commands.append(command)


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

    def write(self, batches: list[Batch]) -> None:
        messages = self._messages
        for batch in batches:
            for code, key, value in batch.ops:
                if code & FAMILY_MASK == rows.MESSAGES:
                    if code & ~FAMILY_MASK == DELETE:
                        messages.pop(key, None)
                    else:
                        messages[key] = value
