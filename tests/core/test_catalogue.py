from __future__ import annotations

import pytest

from fila.core import rows
from fila.core.catalogue import name_fault
from fila.core.command import Ack, Consume, CreateQueue, DeleteQueue, SetConfig, StoreAuth
from fila.core.rejection import (
    INVALID_CONFIG_VALUE,
    QUEUE_ALREADY_EXISTS,
    QUEUE_NOT_FOUND,
    Rejection,
)
from fila.core.settings import Settings
from tests.core.turn import DEAD_LETTER, SECOND, Turns


def refusal(turns: Turns, command: CreateQueue | DeleteQueue | SetConfig | Consume) -> Rejection:
    (reply,) = turns.turn(command).replies
    assert isinstance(reply, Rejection)
    return reply


# --- create


def test_creating_a_queue_creates_its_dead_letter_queue() -> None:
    turns = Turns()
    turns.create("orders")
    assert set(turns.machine.state.queues) == {"orders", "orders.dlq"}


def test_a_dead_letter_queue_has_none_of_its_own() -> None:
    turns = Turns()
    turns.create("orders.dlq")
    assert set(turns.machine.state.queues) == {"orders.dlq"}


def test_a_queue_and_its_dead_letters_are_one_log_group() -> None:
    turns = Turns()
    turns.create("a")
    turns.create("b")
    assert turns.queue("a").group is turns.queue("a.dlq").group
    assert turns.queue("a").group is not turns.queue("b").group


def test_a_queue_that_exists_is_refused_and_named() -> None:
    turns = Turns()
    turns.create("orders")
    reply = refusal(turns, CreateQueue("orders"))
    assert reply.code == QUEUE_ALREADY_EXISTS
    assert '"orders" already exists' in reply.message


def test_the_scripts_and_the_visibility_timeout_are_kept() -> None:
    turns = Turns()
    turns.turn(CreateQueue("q", "enqueue script", "failure script", 5_000))
    turns = turns.restart()
    queue = turns.queue("q")
    assert (queue.on_enqueue, queue.on_failure) == ("enqueue script", "failure script")
    assert queue.visibility_ms == turns.queue("q.dlq").visibility_ms == 5_000
    assert turns.queue("q.dlq").on_enqueue is None


# --- names


@pytest.mark.parametrize("name", ["a", "ä" * 127, "x" * 255, "orders/eu west:1 🐟", " "])
def test_any_text_without_control_characters_is_a_name(name: str) -> None:
    assert name_fault(name, 255) is None
    turns = Turns()
    turns.create(name)
    assert name in turns.restart().machine.state.queues


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "it is empty"),
        ("x" * 256, "it has 256 bytes; the longest has 255"),
        ("ä" * 128, "it has 256 bytes; the longest has 255"),
        ("a\nb", "control character"),
        ("a\0", "control character"),
        ("a\x7f", "control character"),
        ("a\x85", "control character"),
        ("a\ud800", "not valid UTF-8"),
    ],
)
def test_a_bad_name_is_refused_with_the_reason(name: str, reason: str) -> None:
    reply = refusal(Turns(), CreateQueue(name))
    assert reply.code == INVALID_CONFIG_VALUE
    assert reason in reply.message


def test_the_longest_name_still_gets_a_dead_letter_queue() -> None:
    turns = Turns()
    turns.create("x" * 255)
    (id,) = turns.enqueue("x" * 255)
    turns.consume("x" * 255)
    turns.nack("x" * 255, [id], DEAD_LETTER)
    assert turns.queue("x" * 255 + ".dlq").pending == 1


# --- visibility


def test_a_visibility_timeout_of_zero_means_the_default() -> None:
    turns = Turns()
    turns.create("q")
    assert turns.queue("q").visibility_ms == 30_000


@pytest.mark.parametrize("ms", [1, 999, -1])
def test_a_visibility_timeout_below_a_second_is_refused(ms: int) -> None:
    reply = refusal(Turns(), CreateQueue("q", visibility_ms=ms))
    assert reply.code == INVALID_CONFIG_VALUE
    assert "too short" in reply.message
    assert "0 for the default or at least 1000 ms" in reply.message


def test_a_visibility_timeout_of_a_second_and_of_a_week_are_taken() -> None:
    turns = Turns()
    turns.create("short", visibility_ms=1_000)
    turns.create("long", visibility_ms=7 * 24 * 3600 * 1000)
    queues = turns.machine.state.queues
    assert queues["short"].visibility_ms == 1_000
    assert queues["long"].visibility_ms == 7 * 24 * 3600 * 1000


def test_a_visibility_timeout_beyond_a_week_is_refused() -> None:
    reply = refusal(Turns(), CreateQueue("q", visibility_ms=7 * 24 * 3600 * 1000 + 1))
    assert "too long" in reply.message


def test_more_attempts_than_a_queue_may_allow_are_refused() -> None:
    assert "1000000" in refusal(Turns(), CreateQueue("q", max_attempts=1_000_001)).message
    assert Turns().turn(CreateQueue("q", max_attempts=1_000_000)).replies == [None]


def test_a_refused_queue_leaves_nothing_behind() -> None:
    turns = Turns()
    outcome = turns.turn(CreateQueue("q", visibility_ms=5), CreateQueue(""))
    assert outcome.batches == []
    assert turns.machine.state.queues == {}


def test_the_number_of_queues_is_bounded() -> None:
    turns = Turns(Settings(queues_max=4))
    turns.create("a")
    turns.create("b")
    reply = refusal(turns, CreateQueue("c"))
    assert "4 queues already, the limit" in reply.message


# --- delete


def test_an_unknown_queue_cannot_be_deleted() -> None:
    assert refusal(Turns(), DeleteQueue("q")).code == QUEUE_NOT_FOUND


def test_an_unknown_queue_cannot_be_consumed() -> None:
    assert refusal(Turns(), Consume("q", "c", 1)).code == QUEUE_NOT_FOUND


def full_queue() -> Turns:
    """Pending, leased, delayed, parked and dead-lettered messages in one queue, and a neighbour."""
    turns = Turns(Settings(window_messages=4, page_messages=2))
    turns.create("q")
    turns.create("neighbour")
    turns.limit("t", 0, 1)
    turns.enqueue("neighbour", count=3, throttle=(b"t",))
    ids = turns.enqueue("q", b"a", count=9)
    turns.enqueue("q", b"b", count=5, throttle=(b"t",))
    turns.enqueue("q", b"a", delay_ms=10_000)
    turns.consume("q", "c", prefetch=4)
    turns.nack("q", ids[:1], DEAD_LETTER)
    return turns


def test_deleting_a_queue_removes_everything_of_it_from_the_store() -> None:
    turns = full_queue()
    turns.delete("q")
    neighbour = rows.queue_prefix(turns.queue("neighbour").number)
    assert {key[:4] for key, _ in turns.rows(rows.MESSAGES)} == {neighbour}
    assert turns.rows(rows.LEASES) == []
    assert {key for key, _ in turns.rows(rows.QUEUES)} == {b"neighbour", b"neighbour.dlq"}
    assert {key[1:5] for key, _ in turns.rows(rows.STATE, b"l")} == {neighbour}
    group = turns.queue("neighbour").group.number
    assert {key[1:5] for key, _ in turns.rows(rows.STATE, b"g")} == {
        rows.queue_prefix(0),
        rows.queue_prefix(group),
    }


def test_deleting_a_queue_removes_everything_of_it_from_memory() -> None:
    turns = full_queue()
    turns.delete("q")
    state = turns.machine.state
    assert set(state.queues) == {"neighbour", "neighbour.dlq"}
    assert state.windows.bytes == sum(
        lane.window_bytes
        for key in state.queues["neighbour"].keys.values()
        for lane in key.lanes.values()
    )
    assert {lane.queue.name for lanes in state.lanes_of_throttle.values() for lane in lanes} == {
        "neighbour"
    }
    assert all(lane.queue.name == "neighbour" for lane in state.idle)
    assert turns.wait(100 * SECOND).deliveries == []
    assert turns.machine.next_deadline() == 0


def test_deleting_a_queue_in_the_turn_of_its_last_changes_leaves_nothing() -> None:
    turns = full_queue()
    held = list(turns.queue("q").leased)
    turns.turn(turns.messages("q", b"new", count=9), Ack("q", held[:1], 1), DeleteQueue("q"))
    neighbour = rows.queue_prefix(turns.queue("neighbour").number)
    assert {key[:4] for key, _ in turns.rows(rows.MESSAGES)} == {neighbour}
    assert turns.restart().queue("neighbour").pending == 3


def test_deleting_a_queue_ends_its_consumers() -> None:
    turns = full_queue()
    turns.consume("q.dlq", "d", connection=3)
    assert {one.consumer.id for one in turns.delete("q").ended} == {"c", "d"}


def test_a_deleted_queue_is_unknown_at_once() -> None:
    turns = full_queue()
    held = list(turns.queue("q").leased)
    turns.delete("q")
    (reply,) = turns.turn(Ack("q", held, 1)).replies
    assert isinstance(reply, Rejection)
    assert reply.code == QUEUE_NOT_FOUND


def test_a_queue_made_again_under_its_old_name_is_empty() -> None:
    turns = full_queue()
    turns.turn(DeleteQueue("q"), CreateQueue("q"))
    assert turns.queue("q").pending == 0
    assert turns.consume("q", "new").ids() == []
    ids = turns.enqueue("q", b"a", count=2)
    turns = turns.restart()
    assert turns.queue("q").pending == 0
    assert list(turns.queue("q").leased) == ids


def test_a_parked_lane_of_a_deleted_queue_takes_no_token() -> None:
    turns = Turns()
    turns.limit("t", 1, 1)
    for name in ("gone", "stays"):
        turns.create(name)
        turns.enqueue(name, count=3, throttle=(b"t",))
        turns.consume(name, name)
    turns.delete("gone")
    turns.wait(2 * SECOND)
    assert len(turns.queue("stays").leased) == 2


def test_a_dead_letter_queue_made_by_hand_stays_when_its_parent_goes() -> None:
    turns = Turns()
    turns.create("q.dlq")
    turns.create("q")
    turns.delete("q")
    assert set(turns.machine.state.queues) == {"q.dlq"}
    assert set(turns.restart().machine.state.queues) == {"q.dlq"}


def test_a_deleted_dead_letter_queue_is_made_again_when_it_is_needed() -> None:
    turns = Turns()
    turns.create("q", visibility_ms=5_000)
    (id,) = turns.enqueue("q")
    turns.delete("q.dlq")
    turns.consume("q")
    turns.nack("q", [id], DEAD_LETTER)
    turns = turns.restart()
    assert turns.queue("q.dlq").pending == 1
    assert turns.queue("q.dlq").visibility_ms == 5_000
    turns.delete("q")
    assert turns.machine.state.queues == {}


def test_queue_numbers_are_never_used_twice() -> None:
    turns = Turns()
    turns.create("a")
    number = turns.queue("a.dlq").number
    turns.delete("a")
    turns = turns.restart()
    turns.create("b")
    assert turns.queue("b").number > number


# --- config


def test_a_setting_is_kept_and_an_empty_value_removes_it() -> None:
    turns = Turns()
    turns.set("feature", "on")
    turns = turns.restart()
    assert turns.machine.state.config == {"feature": "on"}
    turns.set("feature", "")
    assert turns.restart().machine.state.config == {}


def test_removing_a_setting_that_is_not_set_is_no_mistake() -> None:
    assert Turns().set("nothing", "").replies == [None]


@pytest.mark.parametrize("key", ["", "k" * 1_025])
def test_a_config_key_out_of_bounds_is_refused(key: str) -> None:
    reply = refusal(Turns(), SetConfig(key, "v"))
    assert reply.code == INVALID_CONFIG_VALUE
    assert "1 to 1,024 bytes" in reply.message


def test_a_refused_setting_changes_nothing() -> None:
    turns = Turns()
    turns.limit("t", 5, 5)
    outcome = turns.set("throttle.t", "fast,5")
    assert isinstance(outcome.replies[0], Rejection)
    assert outcome.batches == []
    assert turns.machine.state.config == {"throttle.t": "5,5"}
    assert turns.machine.state.buckets[b"t"].rate == 5.0


def test_the_config_shows_just_what_is_in_force() -> None:
    turns = Turns()
    turns.set("throttle:t:rate", "10")
    turns.set("throttle.t", "1,2")
    assert turns.machine.state.config == {"throttle.t": "1,2"}
    turns = turns.restart()
    assert turns.machine.state.config == {"throttle.t": "1,2"}
    assert (turns.machine.state.buckets[b"t"].rate, turns.machine.state.buckets[b"t"].burst) == (
        1.0,
        2.0,
    )


def test_a_removed_limit_leaves_no_level_behind() -> None:
    turns = Turns()
    turns.limit("t", 1, 5)
    assert len(turns.rows(rows.STATE, b"b")) == 1
    turns.set("throttle.t", "")
    assert turns.rows(rows.STATE, b"b") == []


def test_a_limit_removed_and_set_again_starts_full() -> None:
    turns = Turns()
    turns.create("q")
    turns.limit("t", 0, 2)
    turns.enqueue("q", count=5, throttle=(b"t",))
    turns.consume("q", prefetch=2)
    turns.turn(SetConfig("throttle.t", ""), SetConfig("throttle.t", "0,2"))
    assert turns.machine.state.buckets[b"t"].tokens == 2.0
    assert turns.restart().machine.state.buckets[b"t"].tokens == 2.0


# --- rows of the auth family


def test_an_auth_row_is_kept_and_removed_and_never_shows_in_the_config() -> None:
    turns = Turns()
    assert turns.turn(StoreAuth(b"key-1", b"hash")).replies == [None]
    assert turns.rows(rows.AUTH) == [(b"key-1", b"hash")]
    assert turns.restart().machine.state.config == {}
    turns.turn(StoreAuth(b"key-1", None))
    assert turns.rows(rows.AUTH) == []


def test_a_config_value_that_no_string_of_a_reply_could_hold_is_refused() -> None:
    turns = Turns()
    (refused,) = turns.set("note", "ä" * 32_768).replies
    assert isinstance(refused, Rejection) and "65535 bytes" in refused.message
    assert turns.set("note", "x" * 65_535).replies == [None]
