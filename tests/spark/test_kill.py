"""A broker that is killed while it works: Spark counts what the broker and its clients counted."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import functions as fn

from fila.journal import mark, reader
from fila.spark.events import read_events
from fila.spark.funnel import totals
from fila.spark.gaps import gaps_of
from tests.e2e.peer import Peer
from tests.e2e.process import Broker, wait_until
from tests.journal.test_broker import BY_ATTEMPTS, BY_TENANT

KEYS = ("a", "b", "c")
# Parts are sealed in the middle of it; what is flushed is sure, what is not is counted.
SETTINGS = {
    "journal.enabled": "true",
    "journal.flush_interval_ms": 20,
    "journal.seal_interval_ms": 300,
}


class Run(NamedTuple):
    journal: Path
    counted: list[Counter[tuple[str, str]]]  # (key, event) by run, as the client saw it
    stats: Mapping[str, object]  # of the last run, by queue
    taken: int  # events of the run that was killed in full swing


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Three runs, two of them ended by SIGKILL: one at rest, one in full swing."""
    place = tmp_path_factory.mktemp("killed")
    rng = random.Random(11)
    broker = Broker(place / "data", SETTINGS)
    counted = []
    with broker.start():
        with broker.peer() as peer:
            peer.create_queue("jobs", on_enqueue=BY_TENANT, on_failure=BY_ATTEMPTS)
        counted.append(_work(broker, rng))
        _flushed(broker, place)
        broker.restart()
        counted.append(_work(broker, rng))
        broker.kill()  # whatever was not flushed is lost
        (left,) = mark.left(place / "data" / "journal")
        taken = mark.read(left.path).rows
        broker.start()
        counted.append(_work(broker, rng))
        with broker.peer() as peer:
            stats = {name: peer.stats(name) for name in ("jobs", "jobs.dlq")}
        assert broker.stop() == 0
    return Run(place / "data" / "journal", counted, stats, taken)


def test_a_run_that_was_flushed_before_the_kill_is_whole(spark, killed: Run) -> None:
    by_run = _by_run(spark, killed)
    assert by_run[0] == killed.counted[0]
    assert by_run[2] == killed.counted[2]


def test_what_the_kill_took_is_counted_to_the_event(spark, killed: Run) -> None:
    """Of the run killed in full swing: the events that are there and the gap make up all."""
    found, seen = _by_run(spark, killed)[1], killed.counted[1]
    events = read_events(spark, str(killed.journal))
    second = sorted(row.epoch for row in _epochs(events))[1]
    own = events.where(fn.col("epoch") == second)
    assert own.agg(fn.sum("events")).collect()[0][0] == killed.taken
    gaps = gaps_of(events)
    assert {gap.epoch for gap in gaps} <= {second}
    lost = sum(gap.lost for gap in gaps)
    assert not found - seen
    assert sum((seen - found).values()) <= lost
    assert lost > 0 or found == seen


def test_pending_leased_and_dead_letters_come_out_per_key(spark, killed: Run) -> None:
    """From the last run's first snapshot and the events after it, added up by Spark."""
    events = read_events(spark, str(killed.journal))
    last = max(row.epoch for row in _epochs(events))
    own = events.where(fn.col("epoch") == last)
    first = own.where("event = 'snapshot'").agg(fn.min("ts")).collect()[0][0]
    held = {
        (row.queue, row.fairness_key): Counter(pending=row.key_pending, leased=row.key_leased)
        for row in own.where("event = 'snapshot'").where(fn.col("ts") == first).collect()
    }
    for row in totals(own).collect():
        keep = held.setdefault((row.queue, row.fairness_key), Counter())
        count = row["count"]
        if row.event in ("enqueued", "requeued", "released"):
            keep["pending"] += count
        if row.event == "delivered":
            keep["pending"] -= count
            keep["leased"] += count
        if row.event in ("acked", "nacked", "expired", "released"):
            keep["leased"] -= count
        if row.event == "dead_lettered":  # counted with the queue that gave it up
            dead = held.setdefault((row.queue + ".dlq", row.fairness_key), Counter())
            dead["pending"] += count
    for name, stats in killed.stats.items():
        pending = {key: n["pending"] for (queue, key), n in held.items() if queue == name}
        told = {one.key: one.pending for one in stats.fairness_keys}  # type: ignore[attr-defined]
        assert {key: n for key, n in pending.items() if n} == told
        leased = sum(n["leased"] for (queue, _), n in held.items() if queue == name)
        assert leased == stats.in_flight  # type: ignore[attr-defined]
    assert killed.stats["jobs.dlq"].depth > 0  # type: ignore[attr-defined]


def _work(broker: Broker, rng: random.Random) -> Counter[tuple[str, str]]:
    """Enqueue, receive, ack and fail; what was answered is counted, and some leases are left."""
    seen: Counter[tuple[str, str]] = Counter()
    with broker.peer() as peer:
        for _ in range(30):
            key = rng.choice(KEYS)
            count = rng.randint(1, 20)
            peer.enqueue("jobs", *[b"x"] * count, headers={"tenant": key})
            seen[key, "enqueued"] += count
        stream = peer.consume("jobs", prefetch=100)
        for _ in range(8):
            got = peer.take(stream, 20)
            _settle(peer, got, rng, seen)
        peer.ping()
    return seen


def _settle(peer: Peer, got: list[Any], rng: random.Random, seen: Counter[tuple[str, str]]) -> None:
    rng.shuffle(got)
    good, bad = got[:12], got[12:17]  # three stay leased
    peer.ack("jobs", *[one.id for one in good])
    seen.update((one.fairness_key, "acked") for one in good)
    peer.nack("jobs", *[one.id for one in bad], error="no")
    seen.update((one.fairness_key, "nacked") for one in bad)


def _flushed(broker: Broker, place: Path) -> None:
    """Everything recorded so far is in a file: nothing is taken that is not written."""
    root = place / "data" / "journal"

    def whole() -> bool:
        (left,) = mark.left(root)
        rows = sum(table.num_rows for table in reader.events(root))
        return rows == mark.read(left.path).rows

    wait_until(whole, 10, "the journal to be flushed")


def _by_run(spark, killed: Run) -> list[Counter[tuple[str, str]]]:
    """Spark's totals per key and event of each run, of the kinds a client can count."""
    events = read_events(spark, str(killed.journal))
    found = []
    for epoch in sorted(row.epoch for row in _epochs(events)):
        own: Counter[tuple[str, str]] = Counter()
        for row in totals(events.where(fn.col("epoch") == epoch)).collect():
            if row.event in ("enqueued", "acked", "nacked") and row.queue == "jobs":
                own[row.fairness_key, row.event] += row["count"]
        found.append(own)
    return found


def _epochs(events) -> list[Any]:
    return events.select("epoch").distinct().collect()
