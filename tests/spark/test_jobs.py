"""Delays, latency, funnel and errors against answers known beforehand and the core's own counts."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import functions as fn

from fila.core.effect import EVENT_ACKED, EVENT_DELIVERED, EVENT_EXPIRED, EVENT_NACKED, Event
from fila.core.waits import Waits
from fila.spark.delays import PARTS, delays, served_meanwhile
from fila.spark.errors import errors
from fila.spark.events import read_events
from fila.spark.funnel import funnel, totals
from fila.spark.latency import latency
from tests.core.turn import DEAD_LETTER, MS, SECOND, START, Turns, id_of
from tests.spark.conftest import Journal, write
from tests.spark.test_fairness import Story


def delivered(number: int, key: bytes, at_ms: int, waits: Waits, attempt: int = 0) -> Event:
    at = START + at_ms * MS
    return Event(
        at,
        EVENT_DELIVERED,
        "q",
        id_of(number),
        attempt,
        key,
        1,
        waits=waits,
        since_ns=at - sum(waits),
        ready_ns=at - sum(waits) + waits.retry,
        enqueued_ns=at - sum(waits),
    )


def test_waits_are_split_by_cause_and_the_longest_comes_first(journal: Journal) -> None:
    events = [
        delivered(1, b"slow", 2_000, Waits(0, 900 * MS, 0, 100 * MS, 0)),
        delivered(2, b"slow", 2_000, Waits(0, 0, 0, 0, 500 * MS)),
        delivered(3, b"quick", 2_000, Waits(0, 0, 7 * MS, 0, 3 * MS)),
    ]
    slow, quick = delays(journal(events)).collect()
    assert (slow.fairness_key, slow.deliveries, slow.wait_ms) == ("slow", 2, 1500.0)
    assert (slow.throttled_ms, slow.own_ms, slow.turn_ms) == (900.0, 100.0, 500.0)
    assert (slow.mostly, slow.wait_mean_ms, slow.wait_max_ms) == ("throttled", 750.0, 1000.0)
    assert (quick.fairness_key, quick.mostly) == ("quick", "no_consumer")
    assert [row.fairness_key for row in delays(journal(events), key="quick").collect()] == ["quick"]


def brute_force(events: list[Event]) -> Counter[tuple[str, str]]:
    """Event by event: who waits for a turn, and who is served."""
    waiting: set[str] = set()
    found: Counter[tuple[str, str]] = Counter()
    for event in events:
        key = event.fairness_key.decode()
        if event.event == EVENT_DELIVERED:
            for other in waiting - {key}:
                found[other, key] += 1
        if event.ring_delta:
            (waiting.add if event.ring_delta > 0 else waiting.remove)(key)
    return found


@pytest.fixture(scope="module")
def busy() -> list[Event]:
    """Tenants that come and go within milliseconds, and one that waits for hours at the end."""
    rng = random.Random(3)
    turns = Turns(journal=True)
    turns.create("q")
    outcome = turns.consume("q", prefetch=3)
    events, held = outcome.events, outcome.ids()
    for step in range(300):
        turns.now += rng.randrange(60 * MS)
        count = 40 if step == 10 else rng.randrange(5)
        key = b"noisy" if step == 10 else rng.choice((b"a", b"b", b"c"))
        done, held = held[:2], held[2:]
        for outcome in (turns.turn(turns.messages("q", key, count)), turns.ack("q", done)):
            events += outcome.events
            held += outcome.ids()
    turns.now += 6 * 3_600 * SECOND
    while held:
        outcome = turns.ack("q", held)
        events += outcome.events
        held = outcome.ids()
    return events


def test_who_was_served_while_a_key_waited_is_exact(journal: Journal, busy: list[Event]) -> None:
    found = journal(busy)
    rows = served_meanwhile(found, delays(found), top=10).collect()
    seen = {(row.fairness_key, row.served_key): row.served for row in rows}
    expected = brute_force(busy)
    assert seen == dict(expected)
    assert len(seen) == 12 and max(seen.values()) > 30


def test_a_record_that_begins_in_the_middle_knows_who_waits(
    journal: Journal, busy: list[Event]
) -> None:
    at = len(busy) // 2
    rest = busy[at:]
    waiting = {key for key in (b"a", b"b", b"c", b"noisy")
               if sum(one.ring_delta for one in busy[:at] if one.fairness_key == key)}  # fmt: skip
    found = journal(rest)
    rows = served_meanwhile(found, delays(found), top=10).collect()
    joined = [
        Event(rest[0].ts_ns, "due", "q", fairness_key=key, ring_delta=1) for key in sorted(waiting)
    ]
    assert {(row.fairness_key, row.served_key): row.served for row in rows} == dict(
        brute_force(joined + rest)
    )


def test_a_key_that_did_not_wait_saw_nobody_served(journal: Journal) -> None:
    """Neither in its own second, nor in any."""
    story = Story(noisy=1_000, quick=0)
    for _ in range(20):
        story.now += 10 * MS
        story.deliver(b"noisy", 10)
        story.enqueue(b"quick")
        story.deliver(b"quick")
    found = journal(story.events)
    rows = served_meanwhile(found, delays(found)).collect()
    assert [(row.fairness_key, row.served_key, row.served) for row in rows] == [
        ("noisy", "quick", 20)
    ]


def test_percentiles_are_those_of_the_waits(journal: Journal) -> None:
    events = [
        delivered(n, b"k", 5_000, Waits(0, 0, 0, 0, n * MS), attempt=0) for n in range(1, 101)
    ]
    row = latency(journal(events)).collect()[0]
    assert (row.deliveries, row.wait_mean_ms, row.wait_max_ms) == (100, 50.5, 100.0)
    assert (row.wait_p50_ms, row.wait_p90_ms, row.wait_p99_ms) == (50.0, 90.0, 99.0)
    assert row.age_p50_ms == 50.0


@pytest.fixture(scope="module")
def trouble() -> tuple[list[Event], Turns]:
    """Acks, retries, dead letters, a redrive and an expired lease."""
    turns = Turns(journal=True)
    turns.machine.record_events(True)
    events: list[Event] = []

    def keep(outcome):
        events.extend(outcome.events)
        return outcome

    turns.create("q", visibility_ms=1_000)
    for key in (b"a", b"b"):
        keep(turns.turn(turns.messages("q", key, 20)))
    got = keep(turns.consume("q", prefetch=30)).ids()
    turns.now += 7 * MS
    keep(turns.ack("q", got[:10]))
    keep(turns.nack("q", got[10:14], DEAD_LETTER))
    again = keep(turns.nack("q", got[14:20]))
    assert again.ids()
    keep(turns.redrive("q.dlq", 2))
    keep(turns.wait(2 * SECOND))
    return events, turns


def test_totals_are_the_cores_own_counters(journal: Journal, trouble) -> None:
    events, turns = trouble
    found: Counter[tuple[str, str]] = Counter()
    for row in totals(journal(events)).collect():
        found[row.queue, row.event] += row["count"]
    for name in ("q", "q.dlq"):
        counters = turns.queue(name).counters
        for step in counters.__slots__:
            assert found[name, step] == getattr(counters, step), (name, step)
    assert turns.queue("q").counters.expired > 0


def test_the_funnel_of_one_queue_has_its_dead_letters(spark, tmp_path: Path, trouble) -> None:
    events, turns = trouble
    write(tmp_path, events)
    found = read_events(spark, str(tmp_path), queue="q", moved=True)
    (row,) = funnel(found, by_key=False, queue="q").collect()
    counters = turns.queue("q").counters
    assert (row.queue, row.dead_lettered) == ("q", counters.dead_lettered)
    assert row.redriven == 0
    found = read_events(spark, str(tmp_path), queue="q.dlq", moved=True)
    (row,) = funnel(found, by_key=False, queue="q.dlq").collect()
    assert (row.queue, row.redriven) == ("q.dlq", turns.queue("q.dlq").counters.redriven)


def test_what_was_stored_less_what_was_delivered_is_pending_per_key(journal: Journal, trouble):
    events, turns = trouble
    rows = {(row.queue, row.fairness_key): row for row in funnel(journal(events)).collect()}
    for key in ("a", "b"):
        row = rows["q", key]
        entered = row.enqueued + row.requeued + row.released
        pending = turns.queue("q").keys[key.encode()].pending
        assert entered - row.delivered == pending
        held = row.delivered - row.acked - row.nacked - row.expired - row.released
        lanes = turns.queue("q").keys[key.encode()].lanes.values()
        assert held == sum(lane.leased for lane in lanes)
    by_queue = {row.queue: row for row in funnel(journal(events), by_key=False).collect()}
    assert by_queue["q"].acked_percent == round(
        100 * by_queue["q"].acked / by_queue["q"].delivered, 2
    )


def test_the_five_parts_add_up_to_the_wait_to_the_microsecond(journal: Journal, trouble) -> None:
    events, _ = trouble
    parts = sum((fn.col(f"wait_{part}_us") for part in PARTS), fn.lit(0))
    wait = fn.unix_micros("ts") - fn.unix_micros("since")
    rows = journal(events).where("event = 'delivered'").select((parts - wait).alias("off"))
    assert {row.off for row in rows.collect()} == {0}


def test_errors_that_differ_in_numbers_and_ids_are_one_kind(journal: Journal) -> None:
    texts = [
        "timeout after 250 ms calling 10.0.0.7",
        "Timeout after 31 ms calling 10.0.0.12",
        'no such user "ann" (0198f0a2-7c1e-7000-8000-0123456789ab)',
        'no such user "bob" (0198f0a2-7c1e-7000-8000-ba9876543210)',
        "timeout after 9 ms calling 10.0.0.7",
    ]
    events = [
        Event(START + n, EVENT_NACKED, "q", id_of(n), 1, b"k", 1, error=text)
        for n, text in enumerate(texts)
    ]
    events.append(Event(START + 9, EVENT_EXPIRED, "q", id_of(9), 3, b"z", 1, error="timed out"))
    events.append(Event(START + 10, EVENT_ACKED, "q", id_of(9), 3, b"z", 1))
    rows = errors(journal(events)).collect()
    assert [(row.kind, row.failures, row.messages) for row in rows] == [
        ("timeout after <n> ms calling <n>", 3, 3),
        ("no such user <text> (<id>)", 2, 2),
        ("timed out", 1, 1),
    ]
    assert rows[0].latest == texts[4]
    assert len({row.fingerprint for row in rows}) == 3


def test_the_latest_error_is_that_of_the_newest_run(spark, tmp_path: Path) -> None:
    """Numbers of events begin again with every run."""
    for epoch, day, text in ((1, 0, "timeout after 1 ms"), (2, 1, "timeout after 2 ms")):
        at = START + day * 86_400 * SECOND
        first = [] if epoch == 2 else [Event(at, EVENT_ACKED, "q")] * 50
        failed = Event(at + MS, EVENT_NACKED, "q", id_of(1), 1, b"k", 1, error=text)
        write(tmp_path, [*first, failed], epoch=epoch)
    (row,) = errors(read_events(spark, str(tmp_path))).collect()
    assert (row.failures, row.latest) == (2, "timeout after 2 ms")


def test_two_brokers_are_told_apart_by_every_report(spark, tmp_path: Path) -> None:
    wait = Waits(0, 0, 0, 0, 5 * MS)
    failed = Event(START, EVENT_NACKED, "q", id_of(2), 1, b"k", 1, error="no")
    for broker, count in (("east", 1), ("west", 3)):
        own = [delivered(n, b"k", 1_000, wait) for n in range(count)]
        write(tmp_path, [*own, failed], broker=broker)
    events = read_events(spark, str(tmp_path))
    for frame, counted in (
        (delays(events), "deliveries"), (latency(events), "deliveries"),
        (funnel(events), "delivered"), (errors(events), "failures"),
    ):  # fmt: skip
        seen = {row.broker: row[counted] for row in frame.collect()}
        assert seen == ({"east": 1, "west": 3} if counted != "failures" else {"east": 1, "west": 1})
