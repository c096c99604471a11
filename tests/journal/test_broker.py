"""The journal of a real broker: replaying it gives the broker's own counts, kills included."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

from fila.journal import reader
from tests.e2e.process import Broker

BY_TENANT = 'function on_enqueue(m) return { fairness_key = m.headers["tenant"] } end'
BY_ATTEMPTS = """function on_failure(m)
  if m.attempts >= 2 then return { action = "dlq" } end
  return { action = "retry" }
end"""
SETTINGS = {
    "journal.enabled": "true",
    "journal.flush_interval_ms": 20,
    "journal.seal_interval_ms": 300,
    "journal.messages": "true",
}


def test_the_journal_rebuilds_every_count_after_kills(tmp_path: Path) -> None:
    rng = random.Random(5)
    broker = Broker(tmp_path / "data", SETTINGS)
    with broker.start():
        with broker.peer() as peer:
            peer.create_queue("jobs", on_enqueue=BY_TENANT, on_failure=BY_ATTEMPTS)
        for _ in range(4):
            _some_traffic(broker, rng)
            broker.restart()  # kill -9
        _some_traffic(broker, rng)
        with broker.peer() as peer:
            stats = {name: peer.stats(name) for name in ("jobs", "jobs.dlq")}
        assert broker.stop() == 0
    pending, leased = _replay(tmp_path / "data" / "journal")
    for name, found in stats.items():
        keys = {one.key: one.pending for one in found.fairness_keys}
        assert {key: n for (queue, key), n in pending.items() if queue == name and n} == keys
        assert sum(n for (queue, _), n in leased.items() if queue == name) == found.in_flight


def test_totals_equal_what_the_clients_saw(tmp_path: Path) -> None:
    broker = Broker(tmp_path / "data", SETTINGS)
    with broker.start():
        with broker.peer() as peer:
            peer.create_queue("jobs", on_enqueue=BY_TENANT)
            for at in range(30):
                peer.enqueue("jobs", b"x", headers={"tenant": f"t{at % 3}"})
            stream = peer.consume("jobs")
            got = peer.take(stream, 30)
            peer.ack("jobs", *[one.id for one in got[:20]])
            peer.nack("jobs", *[one.id for one in got[20:25]])
            peer.take(stream, 5)
        assert broker.stop() == 0
    root = tmp_path / "data" / "journal"
    counts = reader.totals(root).counts
    assert counts[("jobs", "enqueued")] == 30
    assert counts[("jobs", "delivered")] == 35
    assert counts[("jobs", "acked")] == 20
    assert counts[("jobs", "nacked")] == 5
    assert counts[("jobs", "requeued")] == 5
    assert len(reader.sealed_parts(root, "messages")) >= 1
    assert len(reader.sealed_parts(root, "config")) >= 1


def _some_traffic(broker: Broker, rng: random.Random) -> None:
    """A burst of enqueues, deliveries, acks and nacks; some leases are left open."""
    with broker.peer() as peer:
        for _ in range(rng.randint(3, 8)):
            tenant = rng.choice(["a", "b", "c"])
            peer.enqueue("jobs", *[b"x"] * rng.randint(1, 20), headers={"tenant": tenant})
        stream = peer.consume("jobs", prefetch=rng.randint(5, 40))
        for _ in range(rng.randint(1, 4)):
            got = peer.take(stream, 1) + peer.waiting(stream)
            ids = [one.id for one in got]
            rng.shuffle(ids)
            third = len(ids) // 3
            if third:
                peer.ack("jobs", *ids[:third])
                peer.nack("jobs", *ids[third : 2 * third], error="no")
        peer.ping()
        peer.reset()


def _replay(root: Path) -> tuple[Counter[tuple[str, str]], Counter[tuple[str, str]]]:
    """Pending and leased messages per queue and key: the last run's snapshot, then its events."""
    rows = [row for table in reader.events(root) for row in table.to_pylist()]
    last = max(row["epoch"] for row in rows)
    pending: Counter[tuple[str, str]] = Counter()
    leased: Counter[tuple[str, str]] = Counter()
    for row in sorted((one for one in rows if one["epoch"] == last), key=lambda one: one["seq"]):
        key = (row["queue"], row["fairness_key"])
        event = row["event"]
        if event == "snapshot" and row["seq"] < 100 and key not in pending:
            pending[key], leased[key] = row["key_pending"], row["key_leased"]
        elif event in ("enqueued", "requeued", "dead_lettered", "redriven", "released"):
            pending[key] += 1
            if event == "redriven":
                pending[(row["source_queue"], row["fairness_key"])] -= 1
            if event == "released":
                leased[key] -= 1
        elif event == "delivered":
            pending[key] -= 1
            leased[key] += 1
        elif event in ("acked", "nacked", "expired"):
            leased[key] -= 1
    return pending, leased
