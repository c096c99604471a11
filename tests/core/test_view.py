"""The view returns values: what they say, and that they stay as they were."""

from __future__ import annotations

import pytest

from fila.core.command import Consume, Hold, PauseKey, PauseQueue, SetConfig
from fila.core.figures import KEY_DELAYED, KEY_IDLE, KEY_PAUSED, KEY_READY, KEY_THROTTLED
from fila.core.measuring import measure
from fila.core.rejection import QUEUE_NOT_FOUND, Rejection
from fila.core.settings import Settings

from .turn import SECOND, Turns


def test_a_queue_is_told_in_figures_that_do_not_move_with_it() -> None:
    turns = Turns()
    turns.create("q")
    turns.enqueue("q", b"a", 3)
    before = turns.machine.view.queue("q")
    assert before is not None
    assert (before.pending, before.leased, before.keys_pending, before.active_keys) == (3, 0, 1, 1)
    assert before.dlq == "q.dlq" and before.measured is None
    outcome = turns.consume("q", "c", prefetch=2)
    for delivery in outcome.deliveries:
        measure(delivery)
    after = turns.machine.view.queue("q")
    assert after is not None and after.measured is not None
    assert (after.pending, after.leased, after.consumers) == (1, 2, 1)
    assert (after.counts.enqueued, after.counts.delivered, after.measured.waits[0]) == (3, 2, 2)
    assert before.pending == 3 and before.counts.delivered == 0
    assert turns.machine.view.queue("nowhere") is None


def test_the_state_of_a_key_is_the_first_thing_that_keeps_it_from_going() -> None:
    turns = Turns()
    turns.create("q")
    turns.turn(SetConfig("throttle.t", "0.1,1"))
    turns.enqueue("q", b"ready", 1)
    turns.enqueue("q", b"short", 3, throttle=(b"t",))
    turns.enqueue("q", b"paused", 1)
    turns.turn(PauseKey("q", b"paused"))
    view = turns.machine.view
    names = [b"ready", b"short", b"paused", b"unknown"]
    assert [key.state for key in view.keys("q", names)] == [KEY_READY, KEY_READY, KEY_PAUSED]
    turns.consume("q", "c")
    ready, short, paused = view.keys("q", names)
    assert (ready.state, short.state, paused.state) == (KEY_IDLE, KEY_THROTTLED, KEY_PAUSED)
    assert (ready.leased, short.leased, short.throttled) == (1, 1, 2)
    assert view.throttled(view.all_bucket_names()) == {"q": 2}
    assert view.bucket_names("q", view.key_names("q")) == [b"t"]
    assert view.bucket_names("q", [b"short"]) == [b"t"]
    assert view.bucket_names("q", [b"ready"]) == []
    bucket = view.buckets([b"t", b"none"])[b"t"]
    assert (bucket.waiting_lanes, bucket.waiting_messages, bucket.passed) == (1, 2, 1)


def test_looking_at_a_bucket_leaves_it_alone() -> None:
    turns = Turns()
    turns.turn(SetConfig("throttle.t", "1,10"))
    kept = turns.machine.state.buckets[b"t"]
    kept.tokens = 0.0
    turns.machine.advance(kept.at_ns + 3 * SECOND)
    at_ns = kept.at_ns
    assert turns.machine.view.buckets()[b"t"].tokens == pytest.approx(3.0)
    assert (kept.tokens, kept.at_ns) == (0.0, at_ns)


def test_consumers_and_pauses_are_told() -> None:
    turns = Turns()
    turns.create("q")
    turns.turn(Consume("q", "one", 1, 5), Consume("q", "two", 2, 7), Hold("q", "two"))
    view = turns.machine.view
    found = view.consumers("q", 10)
    assert [(one.id, one.connection, one.credit, one.held) for one in found] == [
        ("one", 1, 5, False),
        ("two", 2, 7, True),
    ]
    assert len(view.consumers("q", 1)) == 1 and view.consumers("nowhere", 1) == []
    assert view.pause_of("q", None) is None
    turns.turn(PauseQueue("q", "for a reason", "ops"), PauseKey("q", b"k", "", "ops"))
    pause = view.pause_of("q", None)
    assert pause is not None and pause.reason == "for a reason"
    assert view.pause_of("q", b"k") is not None and view.pause_of("q", b"other") is None


def test_config_is_seen_as_it_stands_and_cannot_be_written() -> None:
    turns = Turns()
    config = turns.machine.view.config
    turns.turn(SetConfig("feature", "on"))
    assert config["feature"] == "on"
    with pytest.raises(TypeError):
        config["feature"] = "off"  # type: ignore[index]


def test_a_queue_that_is_not_there_cannot_be_browsed_or_listed() -> None:
    view = Turns().machine.view
    for found in (view.browse("nowhere", None, 1), view.open_batches("nowhere", 1, 1)):
        assert isinstance(found, Rejection) and found.code == QUEUE_NOT_FOUND


def test_a_key_that_was_forgotten_while_idle_comes_back_with_another_number() -> None:
    turns = Turns(Settings(idle_lanes=1))
    turns.create("q")
    turns.enqueue("q", b"late", delay_ms=1_000)
    first = turns.machine.view.key("q", b"late")
    assert first is not None and first.state == KEY_DELAYED
    turns.wait(SECOND)
    turns.drain("q")
    turns.ack("q", turns.enqueue("q", b"other"))
    assert turns.machine.view.key("q", b"late") is None
    turns.enqueue("q", b"late")
    again = turns.machine.view.key("q", b"late")
    assert again is not None and again.number != first.number
