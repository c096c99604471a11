"""Readings: the value of every instrument now, taken from the pulse and from the parts' own counts.

Called when somebody scrapes or an export is due, never per message. What it gives is plain data, so
another thread may encode and send it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from fila.core.byte_cost import COST_MESSAGES
from fila.core.figures import QueueFigures
from fila.telemetry.commits import MeasuredCommits
from fila.telemetry.instruments import (
    BY_NAME,
    CAUSES,
    OTHER,
    Distribution,
    Instrument,
    label_of,
)
from fila.telemetry.pulse import COUNTERS, Pulse, QueuePulse
from fila.telemetry.shares import Shares

Labels = tuple[str, ...]
Value = float | Distribution
_NS = 1e9
STEP_KEYS: Final = 256  # tracked keys that are read at a time: a few milliseconds
QUEUE_COST: Final = 4  # a queue costs as much as so many of its keys


class Family(NamedTuple):
    instrument: Instrument
    samples: list[tuple[Labels, Value]]


class HookNumbers(Protocol):
    """What one hook of one queue counts."""

    @property
    def executions(self) -> int: ...
    @property
    def errors(self) -> int: ...
    @property
    def timeouts(self) -> int: ...
    @property
    def memory(self) -> int: ...
    @property
    def bypassed(self) -> int: ...
    @property
    def trips(self) -> int: ...
    @property
    def breaker(self) -> str: ...
    @property
    def fail_mode(self) -> str: ...
    @property
    def late(self) -> int: ...
    @property
    def kept_out(self) -> int: ...
    @property
    def quarantines(self) -> int: ...
    @property
    def quarantined(self) -> int: ...
    @property
    def quarantined_keys(self) -> tuple[str, ...]: ...
    @property
    def strangers_kept_out(self) -> bool: ...
    @property
    def busy_ns(self) -> int: ...
    @property
    def durations(self) -> tuple[int, ...]: ...


class JournalNumbers(Protocol):
    @property
    def written(self) -> int: ...
    @property
    def waiting(self) -> int: ...
    @property
    def dropped(self) -> int: ...


class Sources(NamedTuple):
    """Where the numbers come from that the core does not have."""

    hooks: Callable[[str], list[tuple[str, HookNumbers]]]
    commits: MeasuredCommits
    inbound_bytes: Callable[[], int]
    connections: Callable[[], int]
    connections_failed: Mapping[str, int]  # by protocol
    journal: Callable[[], JournalNumbers] | None
    certificate_s: Callable[[], float] | None = None  # until the server's certificate expires
    handshakes_refused: Mapping[str, int] | None = None  # by kind
    # (setting, used, limit, how often it was reached)
    limits: Callable[[], Sequence[tuple[str, int, int, int]]] = tuple
    keys_refused: Callable[[], int] | None = None


class Readings:
    def __init__(self, pulse: Pulse, sources: Sources) -> None:
        self._pulse = pulse
        self._sources = sources
        self._families: dict[str, Family] = {}

    def take(self) -> list[Family]:
        """Every instrument with its samples, in the order of the table."""
        steps = self.taking()
        while True:
            try:
                next(steps)
            except StopIteration as end:
                found: list[Family] = end.value
                return found

    def taking(self) -> Generator[None, None, list[Family]]:
        """The same, some queues at a time, so that other work can be done in between."""
        yield from self._pulse.meeting()
        families = {name: Family(one, []) for name, one in BY_NAME.items()}
        left = STEP_KEYS
        for name, one in list(self._pulse.queues.items()):
            queue = self._pulse.view.queue(name)
            if queue is None:
                continue
            self._families = families  # another exporter may have had its turn
            self._queue(queue, one)
            self._keys(queue, one)
            for hook, numbers in self._sources.hooks(name):
                self._hook(name, hook, numbers)
            left -= QUEUE_COST + len(one.tracked.keys)
            if left <= 0:
                left = STEP_KEYS
                yield
        self._families = families
        for name in self._pulse.view.quarantined:
            self._add("fila.queue.quarantined", (name,), 1)
        names = list(self._pulse.buckets.names)
        for start in range(0, len(names), STEP_KEYS):
            self._families = families
            self._buckets(names[start : start + STEP_KEYS])
            yield
        self._families = families
        self._other_buckets()
        self._broker()
        return list(self._families.values())

    def _add(self, name: str, labels: Labels, value: Value) -> None:
        self._families[name].samples.append((labels, value))

    def _queue(self, queue: QueueFigures, one: QueuePulse) -> None:
        add = self._add
        labels = (queue.name,)
        for counter, count in zip(COUNTERS, queue.counts, strict=True):
            add(f"fila.messages.{counter}", labels, count)
        add("fila.queue.depth", labels, queue.pending)
        add("fila.queue.in_flight", labels, queue.leased)
        add("fila.queue.consumers", labels, queue.consumers)
        add("fila.queue.fairness_keys", labels, queue.keys_pending)
        add("fila.queue.idempotency_keys", labels, queue.known_keys)
        add("fila.queue.throttled", labels, one.throttled)
        add("fila.queue.quarantined", labels, 0)
        settings = self._pulse.view.settings
        quantum = settings.quantum if queue.cost == COST_MESSAGES else settings.quantum_bytes
        rounds = int(queue.clock / quantum)
        add("fila.scheduler.drr.rounds", labels, rounds)
        add("fila.scheduler.drr.active_keys", labels, queue.active_keys)
        add("fila.scheduler.drr.keys_processed", labels, queue.visits)
        add("fila.backpressure.held_consumers", labels, queue.consumers_held)
        measured = queue.measured
        if measured is not None:
            add("fila.throttle.limited", labels, measured.limited)
            latency = Distribution(measured.latency_counts, measured.latency_ns / _NS)
            add("fila.delivery.latency", labels, latency)

    def _keys(self, queue: QueueFigures, one: QueuePulse) -> None:
        add = self._add
        name = queue.name
        shares = Shares(one, queue)
        present = {key.name: key for key in self._pulse.view.keys(name, list(one.tracked.keys))}
        for tracked in one.tracked.keys.values():
            labels = (name, label_of(tracked.name))
            self._waits(labels, tracked.totals)
            key = present.get(tracked.name, tracked.key)
            add("fila.fairness.pending", labels, key.pending)
            ratio = shares.of(key).ratio
            if ratio is not None:
                add("fila.fairness.fair_share_ratio", labels, ratio)
        if any(one.tracked.other):
            self._waits((name, OTHER), one.tracked.other)

    def _waits(self, labels: Labels, totals: list[int]) -> None:
        self._add("fila.fairness.throughput", labels, totals[0])
        for cause, waited_ns in zip(CAUSES, totals[1:], strict=True):
            self._add("fila.fairness.wait", (*labels, cause), waited_ns / _NS)

    def _hook(self, queue: str, hook: str, numbers: HookNumbers) -> None:
        add = self._add
        labels = (queue, hook)
        failed = numbers.errors + numbers.timeouts + numbers.memory
        add("fila.lua.executions", (*labels, "ok"), max(numbers.executions - failed, 0))
        add("fila.lua.executions", (*labels, "failed"), failed)
        add("fila.lua.executions", (*labels, "bypassed"), numbers.bypassed)
        add("fila.lua.executions", (*labels, "quarantined"), numbers.kept_out)
        add("fila.lua.executions", (*labels, "late"), numbers.late)
        add("fila.lua.errors", (*labels, "error"), numbers.errors)
        add("fila.lua.errors", (*labels, "timeout"), numbers.timeouts)
        add("fila.lua.errors", (*labels, "memory"), numbers.memory)
        add("fila.lua.circuit_breaker.activations", labels, numbers.trips)
        add("fila.lua.circuit_breaker.open", labels, int(numbers.breaker != "closed"))
        add("fila.lua.quarantine.activations", labels, numbers.quarantines)
        add("fila.lua.quarantine.keys", labels, numbers.quarantined)
        durations = Distribution(list(numbers.durations), numbers.busy_ns / 1000)
        add("fila.lua.execution_duration_us", labels, durations)

    def _buckets(self, names: list[bytes]) -> None:
        add = self._add
        tracked = self._pulse.buckets.names
        for name, bucket in self._pulse.view.buckets(names).items():
            passed, limited = tracked.get(name, (0, 0))
            label = label_of(name)
            add("fila.throttle.tokens_remaining", (label,), bucket.tokens)
            add("fila.throttle.decisions", (label, "pass"), bucket.passed - passed)
            add("fila.throttle.decisions", (label, "hit"), bucket.limited - limited)

    def _other_buckets(self) -> None:
        add = self._add
        tracked = self._pulse.buckets
        if len(self._pulse.view.all_bucket_names()) > len(tracked.names):
            add("fila.throttle.decisions", (OTHER, "pass"), tracked.other_passed)
            add("fila.throttle.decisions", (OTHER, "hit"), tracked.other_limited)

    def _broker(self) -> None:
        add = self._add
        sources = self._sources
        add("fila.commit.latency", (), sources.commits.latency())
        add("fila.commit.batch_size", (), sources.commits.sizes())
        add("fila.backpressure.inbound_bytes", (), sources.inbound_bytes())
        add("fila.connections.open", (), sources.connections())
        for protocol, count in sources.connections_failed.items():
            add("fila.connections.failed", (protocol,), count)
        for name, used, most, reached in sources.limits():
            add("fila.limit.used", (name,), used)
            add("fila.limit.max", (name,), most)
            add("fila.limit.reached", (name,), reached)
        if sources.keys_refused is not None:
            add("fila.auth.keys_refused", (), sources.keys_refused())
        if sources.certificate_s is not None:
            add("fila.tls.certificate.expires_in", (), sources.certificate_s())
        for kind, count in (sources.handshakes_refused or {}).items():
            add("fila.tls.handshakes.refused", (kind,), count)
        if sources.journal is not None:
            journal = sources.journal()
            add("fila.journal.lag", (), journal.waiting)
            add("fila.journal.written", (), journal.written)
            add("fila.journal.dropped", (), journal.dropped)
