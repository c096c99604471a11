"""When will a message sent now be delivered? Asked under saturation, then waited for."""

from __future__ import annotations

import heapq

import pytest

from fila.core.outlook import GROWING, SHRINKING, Outlook, outlook
from tests.core.turn import MS, SECOND, START, Outcome, Turns

STEP = 100 * MS


class Load:
    """Tenants that send at a pace, and consumers that take so long for each message."""

    def __init__(self, consumers: int, takes_ns: int, prefetch: int = 1) -> None:
        self.turns = Turns()
        self.turns.create("q", visibility_ms=3_600_000)
        self.takes_ns = takes_ns
        self.prefetch = prefetch
        self.free_ns: dict[str, int] = {}
        self.work: list[tuple[int, str, bytes]] = []
        self.delivered: dict[bytes, int] = {}
        self.tenants: dict[bytes, tuple[float, int]] = {}
        self.owed: dict[bytes, float] = {}
        for number in range(consumers):
            self.join(f"c{number}")

    def join(self, name: str) -> None:
        self.free_ns[name] = self.turns.now
        self._take(self.turns.consume("q", name, prefetch=self.prefetch))

    def _take(self, outcome: Outcome) -> None:
        for delivery in outcome.deliveries:
            name = delivery.consumer.id
            for entry in delivery.entries:
                self.delivered[entry[0][20:]] = self.turns.now
                start = max(self.free_ns[name], self.turns.now)
                self.free_ns[name] = start + self.takes_ns
                heapq.heappush(self.work, (start + self.takes_ns, name, entry[0][20:]))

    def run(self, seconds: float) -> None:
        until = self.turns.now + int(seconds * SECOND)
        while self.turns.now < until:
            for key, (pace, weight) in self.tenants.items():
                self.owed[key] = self.owed.get(key, 0.0) + pace * STEP / SECOND
                count = int(self.owed[key])
                if count:
                    self.owed[key] -= count
                    self._take(self.turns.turn(
                        self.turns.messages("q", key, count=count, weight=weight)
                    ))  # fmt: skip
            end = self.turns.now + STEP
            while self.work and self.work[0][0] <= end:
                at, _, id = heapq.heappop(self.work)
                self._take(self.turns.wait(max(at - self.turns.now, 0)))
                self._take(self.turns.ack("q", [id]))
            self._take(self.turns.wait(max(end - self.turns.now, 0)))

    def ask(self, key: bytes) -> Outlook:
        queue = self.turns.queue("q")
        return outlook(self.turns.machine.state, queue, queue.keys[key])

    def wait_for(self, key: bytes) -> int:
        """Send one now. How long until it is delivered?"""
        sent = self.turns.now
        command = self.turns.messages("q", key, weight=self.tenants[key][1])
        (id,) = command.ids
        self._take(self.turns.turn(command))
        while id not in self.delivered:
            self.run(0.5)
            assert self.turns.now - sent < 3_600 * SECOND
        return self.delivered[id] - sent


def near(eta_ns: int | None, took_ns: int) -> None:
    assert eta_ns is not None
    assert took_ns / 1.5 <= eta_ns + STEP and eta_ns <= took_ns * 1.5 + STEP, (eta_ns, took_ns)


def test_capacity_is_named_and_a_message_sent_now_goes_when_it_said() -> None:
    """As a tenant asks: consumers take 40/s, its share is 16/s, it sends 24/s, thousands wait."""
    load = Load(consumers=4, takes_ns=100 * MS)
    load.tenants = {b"acme": (24.0, 2), b"other": (30.0, 3)}
    load.run(30)
    found = load.ask(b"acme")
    assert found.capacity == pytest.approx(40, rel=0.1)
    assert found.share == pytest.approx(16, rel=0.15)
    assert found.sends == pytest.approx(24, rel=0.15)
    assert found.trend == GROWING
    assert found.pending == pytest.approx((24 - 16) * 30, rel=0.2)
    near(found.eta_ns, load.wait_for(b"acme"))


@pytest.mark.parametrize(
    ("consumers", "prefetch", "tenants"),
    [
        (1, 1, {b"a": (40.0, 1)}),
        (3, 1, {b"a": (15.0, 1), b"b": (15.0, 1), b"c": (15.0, 1)}),
        (1, 5, {b"a": (8.0, 1), b"b": (40.0, 5)}),
        (3, 5, {b"a": (2.0, 1), b"b": (50.0, 1)}),  # a keeps to its share
        (3, 1, {b"a": (12.0, 3), **{b"%d" % n: (4.0, 1) for n in range(20)}}),
    ],
    ids=["alone", "equal", "weighted", "modest", "many"],
)
def test_in_steady_state_it_is_within_half_of_what_comes(
    consumers: int, prefetch: int, tenants: dict[bytes, tuple[float, int]]
) -> None:
    load = Load(consumers, takes_ns=50 * MS * consumers, prefetch=prefetch)  # 20 a second in all
    load.tenants = tenants
    load.run(20)
    for _ in range(2):
        found = load.ask(b"a")
        near(found.eta_ns, load.wait_for(b"a"))


def test_a_backlog_that_nothing_is_added_to_shrinks() -> None:
    load = Load(consumers=2, takes_ns=100 * MS)
    load.tenants = {b"a": (50.0, 1), b"b": (50.0, 1)}
    load.run(20)
    load.tenants[b"a"] = (0.0, 1)
    load.run(12)
    found = load.ask(b"a")
    assert found.trend == SHRINKING and found.sends == pytest.approx(0, abs=1)
    near(found.eta_ns, load.wait_for(b"a"))


def test_one_more_consumer_does_what_was_computed() -> None:
    load = Load(consumers=2, takes_ns=100 * MS)
    load.tenants = {b"a": (30.0, 1), b"b": (30.0, 1)}
    load.run(20)
    found = load.ask(b"a")
    load.join("another")
    took_ns = load.wait_for(b"a")
    near(found.more_consumers, took_ns)
    assert found.eta_ns is not None and found.more_consumers == int(found.eta_ns * 2 / 3)


def test_twice_the_weight_does_what_was_computed() -> None:
    load = Load(consumers=2, takes_ns=100 * MS)
    load.tenants = {b"a": (30.0, 1), b"b": (30.0, 1), b"c": (30.0, 1)}
    load.run(20)
    found = load.ask(b"a")
    load.tenants[b"a"] = (30.0, 2)
    near(found.more_weight, load.wait_for(b"a"))


def test_a_higher_limit_does_what_was_computed() -> None:
    turns = Turns()
    turns.create("q", visibility_ms=3_600_000)
    turns.limit("t", 5, 5)
    turns.consume("q", prefetch=1_000)
    turns.enqueue("q", b"a", count=200, throttle=(b"t",))
    turns.wait(20 * SECOND)
    queue = turns.queue("q")
    found = outlook(turns.machine.state, queue, queue.keys[b"a"])
    pending = queue.keys[b"a"].pending
    assert found.share == pytest.approx(5, rel=0.1)
    assert found.eta_ns is not None
    assert found.eta_ns == pytest.approx((pending + 1) / 5 * SECOND, rel=0.1)
    assert found.more_rate == pytest.approx(found.eta_ns / 2, rel=0.1)
    assert found.more_consumers is None and found.more_weight is None


def test_where_another_bucket_never_gets_a_token_no_limit_is_advised() -> None:
    turns = Turns()
    turns.create("q", visibility_ms=3_600_000)
    turns.limit("t", 5, 5)
    turns.limit("u", 0, 1_000)
    turns.consume("q", prefetch=1_000)
    turns.enqueue("q", b"a", count=200, throttle=(b"t", b"u"))
    turns.wait(20 * SECOND)
    queue = turns.queue("q")
    found = outlook(turns.machine.state, queue, queue.keys[b"a"])
    assert found.share == pytest.approx(5, rel=0.1)
    assert found.more_rate is None


def test_where_nothing_goes_there_is_no_estimate() -> None:
    turns = Turns()
    turns.create("q")
    turns.enqueue("q", b"a", count=3)
    queue = turns.queue("q")
    state = turns.machine.state
    assert outlook(state, queue, queue.keys[b"a"])[:2] == (None, "nobody consumes the queue")
    ids = turns.consume("q").ids()
    found = outlook(state, queue, queue.keys[b"a"])
    assert (found.eta_ns, found.pending) == (0, 0)
    assert len(ids) == 3 and turns.now == START
