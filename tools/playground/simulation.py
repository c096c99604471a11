"""The playground of the documentation: the broker's own core, in simulated time.

Runs in the browser (Pyodide) and in tests. Owns time, arrivals and workers; who is delivered when
is decided by `fila.core.turn.Turn` over a store in memory, as in the broker. The same messages go
to two brokers: one knows tenants, weights and limits, the other gives every message the same key,
which is first in, first out.
"""

from __future__ import annotations

import heapq
import json
import random
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from fila.core.command import Ack, Consume, CreateQueue, Enqueue, SetConfig
from fila.core.effect import Delivery
from fila.core.effects import Effects
from fila.core.entry import message_id
from fila.core.load import load
from fila.core.policy import Defaults
from fila.core.row_batch import RowBatch
from fila.core.settings import Settings
from fila.core.turn import Turn
from fila.core.verdict import DEFAULT_ASSIGNMENT, Assignment
from fila.storage.memory import MemoryStore

MS: Final = 1_000_000
SECOND: Final = 1_000_000_000
START: Final = 1_700_000_000 * SECOND
QUEUE: Final = "playground"
TENANTS_MAX: Final = 6
RATE_MAX: Final = 500.0  # messages per second of one tenant, and of the workers
BACKLOG_MAX: Final = 20_000  # of one tenant; a page is not a disk
LEASE_MS: Final = 3_600_000  # no lease runs out: workers always finish


class Broker:
    """One machine with its turns; its committer and outlet, too: everything is safe at once."""

    def __init__(self, workers: int, work_ns: int) -> None:
        self._store = MemoryStore()
        self._turn = Turn(
            load(self._store, Settings(visibility_ms_max=LEASE_MS), START), Defaults(), self, self
        )
        self._work_ns = work_ns
        self._now = START
        self._ends: list[tuple[int, int, bytes]] = []  # when a worker is done, with what
        self._count = 0
        self._sent: dict[bytes, tuple[int, int]] = {}  # tenant, time
        self.waits_ms: dict[int, list[float]] = {}  # of what was delivered since they were taken
        self.pending: dict[int, int] = {}
        self._turn.begin(START)
        self._turn.apply(CreateQueue(QUEUE, visibility_ms=LEASE_MS))
        self._turn.apply(Consume(QUEUE, "workers", 1, workers))
        self._turn.end()

    def set_work(self, work_ns: int) -> None:
        self._work_ns = work_ns

    def limit(self, tenant: int, rate: float) -> None:
        """At most so many messages per second; 0 lifts the limit."""
        self._turn.begin(self._now)
        value = f"{rate:g},{max(2.0, rate / 2):g}" if rate else ""
        self._turn.apply(SetConfig(f"throttle.{throttle_key(tenant).decode()}", value))
        self._turn.end()

    def arrive(self, at: int, tenant: int, id: bytes, assignment: Assignment) -> None:
        self.until(at)
        self._sent[id] = (tenant, at)
        self.pending[tenant] = self.pending.get(tenant, 0) + 1
        self._turn.begin(at)
        self._turn.apply(Enqueue(QUEUE, [id], [b"."], [assignment]))
        self._turn.end()

    def until(self, now: int) -> None:
        """Let time pass: workers finish, buckets fill, each at its moment."""
        while True:
            due = self._turn.due_ns()
            ends = self._ends[0][0] if self._ends else 0
            at = min(due, ends) if due and ends else due or ends
            if not at or at > now:
                break
            self._now = max(self._now, at)
            self._turn.begin(self._now)
            while self._ends and self._ends[0][0] <= self._now:
                self._turn.apply(Ack(QUEUE, [heapq.heappop(self._ends)[2]]))
            self._turn.end()
        self._now = max(self._now, now)

    def commit(self, batches: list[RowBatch], committed: Callable[[], None]) -> None:
        self._store.write(batches)
        committed()

    def leaving(self, effects: Effects, calls: list[Callable[[], None]]) -> Callable[[], None]:
        return partial(self._delivered, effects.deliveries)

    def _delivered(self, deliveries: list[Delivery]) -> None:
        now = self._turn.machine.state.now
        for delivery in deliveries:
            for entry in delivery.entries:
                id = message_id(entry)
                tenant, sent = self._sent.pop(id)
                self.pending[tenant] -= 1
                self.waits_ms.setdefault(tenant, []).append((now - sent) / MS)
                self._count += 1
                heapq.heappush(self._ends, (now + self._work_ns, self._count, id))


class Playground:
    """Tenants who send, and the two brokers beside each other."""

    def __init__(self, tenants: list[dict[str, Any]], workers: int, per_second: float) -> None:
        self._workers = max(1, min(int(workers), 64))
        work_ns = self._work_ns(per_second)
        self._fair = Broker(self._workers, work_ns)
        self._fifo = Broker(self._workers, work_ns)
        self._tenants: list[dict[str, Any]] = []
        self._random = random.Random(7)
        self._now = START
        self._next_id = 1
        self._arrivals: list[tuple[int, int]] = []
        self.change(tenants, per_second)

    def change(self, tenants: list[dict[str, Any]], per_second: float) -> None:
        """Other loads, weights or limits, from now on."""
        work_ns = self._work_ns(per_second)
        for broker in (self._fair, self._fifo):
            broker.set_work(work_ns)
        before = self._tenants
        self._tenants = [_checked(one) for one in tenants[:TENANTS_MAX]]
        for number, one in enumerate(self._tenants):
            known = before[number] if number < len(before) else None
            if known is None or known["limit"] != one["limit"]:
                self._fair.limit(number, one["limit"])
            if known is None or known["rate"] != one["rate"]:
                self._arrivals = [pair for pair in self._arrivals if pair[1] != number]
                self._plan(number)
        heapq.heapify(self._arrivals)

    def burst(self, number: int, count: int) -> None:
        """So many messages of one tenant at once."""
        for _ in range(min(count, BACKLOG_MAX)):
            self._send(number)

    def advance(self, ms: float) -> dict[str, Any]:
        """Let so much time pass; what happened meanwhile."""
        until = self._now + int(ms * MS)
        while self._arrivals and self._arrivals[0][0] <= until:
            self._now, number = heapq.heappop(self._arrivals)
            if self._fair.pending.get(number, 0) < BACKLOG_MAX:
                self._send(number)
            self._plan(number)
            heapq.heapify(self._arrivals)
        self._now = until
        for broker in (self._fair, self._fifo):
            broker.until(until)
        return {
            "now_ms": (until - START) / MS,
            "fair": self._seen(self._fair),
            "fifo": self._seen(self._fifo),
        }

    def _send(self, number: int) -> None:
        id = self._next_id.to_bytes(16, "big")
        self._next_id += 1
        one = self._tenants[number]
        assignment = Assignment(one["name"].encode(), one["weight"], (throttle_key(number),))
        self._fair.arrive(self._now, number, id, assignment)
        self._fifo.arrive(self._now, number, id, DEFAULT_ASSIGNMENT)

    def _plan(self, number: int) -> None:
        rate = self._tenants[number]["rate"]
        if rate > 0:
            gap = int(self._random.expovariate(rate) * SECOND)
            self._arrivals.append((self._now + gap, number))

    def _seen(self, broker: Broker) -> list[dict[str, float]]:
        waits, broker.waits_ms = broker.waits_ms, {}
        return [
            {
                "delivered": len(waits.get(number, [])),
                "pending": broker.pending.get(number, 0),
                "wait_ms": sum(own) / len(own) if (own := waits.get(number)) else -1.0,
            }
            for number in range(len(self._tenants))
        ]

    def _work_ns(self, per_second: float) -> int:
        return int(self._workers * SECOND / min(max(float(per_second), 1.0), RATE_MAX))


def throttle_key(tenant: int) -> bytes:
    return b"tenant:%d" % tenant


def _checked(one: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": str(one["name"]) or "default",
        "rate": min(max(float(one["rate"]), 0.0), RATE_MAX),
        "weight": min(max(int(one["weight"]), 1), 100),
        "limit": min(max(float(one["limit"]), 0.0), RATE_MAX),
    }


# --- what the page calls: JSON in, JSON out

_page: Playground | None = None


def call(text: str) -> str:
    """One request of the page: `start`, `change`, `burst` or `advance`."""
    global _page
    asked = json.loads(text)
    what = asked.pop("what")
    if what == "start":
        _page = Playground(**asked)
        return "{}"
    assert _page is not None, "start first"
    return json.dumps(getattr(_page, what)(**asked) or {})
