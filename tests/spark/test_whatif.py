"""What if? The replay is the core itself: as recorded it gives the record."""

from __future__ import annotations

import pytest

from fila.core.command import Ack, SetConfig
from fila.core.effect import EVENT_CONFIG_CHANGED, Event
from fila.core.settings import Settings
from fila.spark.events import read_events
from fila.spark.replay import Changes
from fila.spark.whatif import calibration, whatif
from tests.core.turn import MS, Turns
from tests.spark.conftest import Journal, write


def record(quantum: int = 1) -> list[Event]:
    """Two backlogged tenants, one behind a bucket, one worker that takes 10 ms for ten messages."""
    turns = Turns(Settings(quantum=quantum), journal=True)
    events = [Event(turns.now, EVENT_CONFIG_CHANGED, "", reason=f"scheduler.quantum={quantum}")]
    events += turns.turn(SetConfig("throttle.api", "50,5")).events
    turns.create("q")
    commands = [
        turns.messages("q", b"a", 300), turns.messages("q", b"b", 300),
        turns.messages("q", b"slow", 30, throttle=(b"api",)),
    ]  # fmt: skip
    events += turns.turn(*commands).events
    turns.now += MS
    outcome = turns.consume("q", prefetch=10)
    events += outcome.events
    held = outcome.ids()
    for _ in range(80):
        later = turns.wait(10 * MS)
        events += later.events
        held += later.ids()
        acked = turns.turn(Ack("q", held, 1))
        events += acked.events
        held = acked.ids()
    return events


def means(frame, scenario: str) -> dict[str, float]:
    rows = frame.where(frame.scenario == scenario).collect()
    return {row.fairness_key: row.wait_mean_ms for row in rows}


def test_replayed_as_it_was_the_record_comes_out(journal: Journal) -> None:
    events = journal(record())
    found = whatif(events, events, Changes(weights={"a": 4}))
    row = calibration(found).collect()[0]
    assert row.trusted
    assert row.recorded_deliveries == row.replayed_deliveries
    assert row.apart_ms == pytest.approx(0, abs=1.0)
    recorded, changed = means(found, "recorded"), means(found, "changed")
    assert changed["a"] < 0.8 * recorded["a"]
    assert changed["b"] > 1.1 * recorded["b"]


def test_more_tokens_and_more_consumers_shorten_waits(journal: Journal) -> None:
    events = journal(record())
    freer = whatif(events, events, Changes(rates={"api": ""}))
    assert means(freer, "changed")["slow"] < 0.7 * means(freer, "recorded")["slow"]
    quicker = whatif(events, events, Changes(consumers=3))
    assert means(quicker, "changed")["b"] < 0.7 * means(quicker, "recorded")["b"]


def test_a_record_that_cannot_be_reproduced_is_not_trusted(journal: Journal) -> None:
    """The broker ran with another quantum than it is said to have."""
    events = journal(record(quantum=500))
    found = whatif(events, events, Changes(), quantum=1)
    assert not calibration(found).collect()[0].trusted
    as_recorded = whatif(events, events, Changes())
    assert calibration(as_recorded).collect()[0].trusted


def test_two_brokers_with_a_queue_of_the_same_name_are_replayed_apart(spark, tmp_path) -> None:
    """Each with its own messages, and its own quantum."""
    for broker, quantum in (("east", 1), ("west", 500)):
        write(tmp_path, record(quantum), broker=broker)
    events = read_events(spark, str(tmp_path))
    rows = calibration(whatif(events, events, Changes())).collect()
    assert [(row.broker, row.queue, row.trusted) for row in rows] == [
        ("east", "q", True),
        ("west", "q", True),
    ]
