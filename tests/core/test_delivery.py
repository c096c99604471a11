from __future__ import annotations

import pytest

from fila.core import rows
from fila.core.command import Ack, Consume, Hold
from fila.core.effect import EVENT_DELIVERED
from fila.core.entry import ATTEMPTS, BODY, ENQUEUED_NS
from fila.core.rejection import INVALID_CONFIG_VALUE, Rejection
from fila.core.settings import Settings
from tests.core.turn import MS, SECOND, Turns

# --- credit


def test_a_consumer_gets_no_more_than_its_prefetch() -> None:
    turns = Turns()
    turns.create("q")
    ids = turns.enqueue("q", count=10)
    assert turns.consume("q", prefetch=4).ids() == ids[:4]
    assert turns.turn().ids() == []


def test_an_ack_returns_its_credit() -> None:
    turns = Turns()
    turns.create("q")
    ids = turns.enqueue("q", count=10)
    turns.consume("q", prefetch=4)
    assert turns.ack("q", ids[1:3]).ids() == ids[4:6]


def test_a_nack_and_an_expiry_return_their_credit() -> None:
    turns = Turns()
    turns.create("q")
    ids = turns.enqueue("q", count=4)
    turns.consume("q", prefetch=1)
    assert turns.nack("q", ids[:1]).ids() == [ids[1]]
    assert turns.wait(30 * SECOND).ids() == [ids[2]]


def test_the_default_prefetch_is_in_the_settings() -> None:
    turns = Turns(Settings(prefetch_default=3))
    turns.create("q")
    turns.enqueue("q", count=10)
    assert len(turns.consume("q").ids()) == 3


@pytest.mark.parametrize("prefetch", [-1, 65_536])
def test_a_prefetch_out_of_bounds_is_refused_with_the_bounds(prefetch: int) -> None:
    turns = Turns()
    turns.create("q")
    (reply,) = turns.turn(Consume("q", "c", 1, prefetch)).replies
    assert isinstance(reply, Rejection)
    assert reply.code == INVALID_CONFIG_VALUE
    assert "1 to 65535" in reply.message


def test_credit_in_bytes_stops_a_consumer_after_the_message_that_uses_it_up() -> None:
    turns = Turns()
    turns.create("q")
    ids = turns.enqueue("q", count=5, body_bytes=100)
    assert turns.consume("q", prefetch_bytes=250).ids() == ids[:3]
    # 300 of 250 bytes are out: one ack brings the account to 50 bytes, and one message more.
    assert turns.ack("q", ids[:1]).ids() == [ids[3]]


def test_a_message_larger_than_the_credit_in_bytes_is_delivered_alone() -> None:
    turns = Turns()
    turns.create("q")
    ids = turns.enqueue("q", count=2, body_bytes=10_000)
    assert turns.consume("q", prefetch_bytes=10).ids() == ids[:1]
    assert turns.ack("q", ids[:1]).ids() == ids[1:]


def test_bodies_that_were_left_to_the_store_cost_their_bytes_too() -> None:
    turns = Turns(Settings(window_bytes_total=1))
    turns.create("q")
    ids = turns.enqueue("q", count=5, body_bytes=100)
    assert turns.consume("q", prefetch_bytes=250).ids() == ids[:3]


# --- held consumers


def test_a_held_consumer_gets_nothing_until_it_is_resumed() -> None:
    turns = Turns()
    turns.create("q")
    turns.consume("q", "slow")
    assert turns.turn(Hold("q", "slow")).replies == [1]
    ids = turns.enqueue("q", count=3)
    assert turns.queue("q").leased == {}
    assert turns.turn(Hold("q", "slow", held=False)).ids() == ids


def test_credit_that_returns_to_a_held_consumer_brings_it_nothing() -> None:
    turns = Turns()
    turns.create("q")
    ids = turns.enqueue("q", count=3)
    turns.consume("q", "slow", prefetch=1)
    turns.turn(Hold("q", "slow"))
    assert turns.ack("q", ids[:1]).ids() == []
    assert turns.turn(Hold("q", "slow", held=False)).ids() == [ids[1]]


def test_others_get_what_a_held_consumer_does_not() -> None:
    turns = Turns()
    turns.create("q")
    turns.consume("q", "slow")
    turns.consume("q", "quick", connection=2)
    turns.turn(Hold("q", "slow"))
    assert len(turns.turn(turns.messages("q", count=4)).ids("quick")) == 4


def test_holding_twice_or_holding_nobody_changes_nothing() -> None:
    turns = Turns()
    turns.create("q")
    turns.consume("q", "slow")
    turns.turn(Hold("q", "slow"))
    assert turns.turn(Hold("q", "slow"), Hold("q", "nobody")).replies == [0, 0]


def test_a_held_consumer_without_credit_is_not_resumed_into_the_round() -> None:
    turns = Turns()
    turns.create("q")
    turns.enqueue("q", count=3)
    turns.consume("q", "slow", prefetch=1)
    turns.turn(Hold("q", "slow"))
    assert turns.turn(Hold("q", "slow", held=False)).ids() == []
    assert len(turns.queue("q").leased) == 1


# --- several consumers


def test_consumers_take_turns_delivery_by_delivery() -> None:
    turns = Turns(Settings(delivery_messages=2))
    turns.create("q")
    turns.consume("q", "a", prefetch=4)
    turns.consume("q", "b", prefetch=4)
    command = turns.messages("q", count=8)
    outcome = turns.turn(command)
    assert [(d.consumer.id, len(d.entries)) for d in outcome.deliveries] == [
        ("a", 2),
        ("b", 2),
        ("a", 2),
        ("b", 2),
    ]
    assert outcome.ids() == command.ids


def test_with_little_to_hand_out_every_consumer_gets_its_share() -> None:
    turns = Turns()
    turns.create("q")
    for name in ("a", "b", "c"):
        turns.consume("q", name, prefetch=100)
    outcome = turns.turn(turns.messages("q", count=9))
    assert [len(outcome.ids(name)) for name in ("a", "b", "c")] == [3, 3, 3]


def test_the_consumer_that_was_served_last_is_the_last_to_be_served_again() -> None:
    turns = Turns()
    turns.create("q")
    for name in ("a", "b", "c"):
        turns.consume("q", name, prefetch=100)
    got = [turns.turn(turns.messages("q")).deliveries[0].consumer.id for _ in range(6)]
    assert got == ["a", "b", "c", "a", "b", "c"]


def test_a_consumer_without_credit_is_passed_over() -> None:
    turns = Turns()
    turns.create("q")
    turns.consume("q", "full", prefetch=1)
    turns.consume("q", "free", prefetch=100)
    turns.enqueue("q", count=1)
    got = [turns.turn(turns.messages("q")).deliveries[0].consumer.id for _ in range(4)]
    assert got == ["free"] * 4


def test_nobody_gets_what_another_holds() -> None:
    turns = Turns()
    turns.create("q")
    ids = turns.enqueue("q", count=10)
    first = turns.consume("q", "a", prefetch=6).ids()
    second = turns.consume("q", "b", prefetch=6, connection=2).ids()
    assert first == ids[:6]
    assert second == ids[6:]


# --- limits of one delivery and of one pass


def test_one_delivery_is_bounded_in_messages() -> None:
    turns = Turns(Settings(delivery_messages=3))
    turns.create("q")
    turns.enqueue("q", count=7)
    outcome = turns.consume("q", prefetch=100)
    assert [len(delivery.entries) for delivery in outcome.deliveries] == [3, 3, 1]


def test_one_delivery_is_bounded_in_bytes() -> None:
    turns = Turns(Settings(delivery_bytes=250))
    turns.create("q")
    turns.enqueue("q", count=7, body_bytes=100)
    outcome = turns.consume("q", prefetch=100)
    assert [len(delivery.entries) for delivery in outcome.deliveries] == [3, 3, 1]


def test_a_pass_cut_short_says_so_and_the_next_one_goes_on() -> None:
    turns = Turns(Settings(pass_messages=4, delivery_messages=4))
    turns.create("q")
    ids = turns.enqueue("q", count=10)
    outcome, more = turns.one_pass(Consume("q", "c", 1, 100))
    assert (outcome.ids(), more) == (ids[:4], True)
    assert turns.machine.next_deadline() == turns.now
    outcome, more = turns.one_pass()
    assert (outcome.ids(), more) == (ids[4:8], True)
    outcome, more = turns.one_pass()
    assert (outcome.ids(), more) == (ids[8:], False)


def test_a_busy_queue_does_not_keep_another_from_its_pass() -> None:
    turns = Turns(Settings(pass_messages=4))
    for name in ("busy", "quiet"):
        turns.create(name)
        turns.consume(name, name, prefetch=1_000)
    outcome, more = turns.one_pass(turns.messages("busy", count=20), turns.messages("quiet"))
    assert more
    outcome, more = turns.one_pass()
    assert len(outcome.ids("quiet")) == 1


# --- what a delivery says


def test_a_delivery_carries_the_message_as_it_was_enqueued() -> None:
    turns = Turns()
    turns.create("q")
    command = turns.messages("q", b"tenant", weight=7, throttle=(b"x", b"y"), body_bytes=50)
    turns.turn(command)
    enqueued_at = turns.now
    turns.wait(3 * SECOND)
    (delivery,) = turns.consume("q", "worker").deliveries
    (entry,), (lane,) = delivery.entries, delivery.lanes
    assert delivery.consumer.id == "worker"
    assert delivery.leased_ns == turns.now
    assert entry[BODY] == command.bodies[0]
    assert (entry[ATTEMPTS], entry[ENQUEUED_NS]) == (0, enqueued_at)
    assert (lane.key.name, lane.throttle_keys) == (b"tenant", (b"x", b"y"))


def test_one_delivery_writes_one_lease_row_with_its_messages() -> None:
    turns = Turns()
    turns.create("q")
    turns.enqueue("q", b"a", count=3)
    turns.enqueue("q", b"b", count=2)
    turns.consume("q", "worker")
    ((key, value),) = turns.rows(rows.LEASES)
    row = rows.read_lease(value)
    assert key == rows.lease_key(turns.queue("q").number, 1)
    assert row.consumer == "worker"
    assert row.expires_ns == turns.now + 30_000 * MS
    assert [one[16:] for one in row.messages] == list(turns.queue("q").leased)


def test_a_delivery_is_committed_with_the_tokens_that_paid_for_it() -> None:
    turns = Turns()
    turns.create("q")
    turns.limit("t", 1, 5)
    turns.enqueue("q", count=3, throttle=(b"t",))
    outcome = turns.consume("q")
    ops = {(code, key): value for batch in outcome.batches for code, key, value in batch.ops}
    tokens, at_ns = rows.read_bucket(ops[rows.STATE, rows.BUCKET_PREFIX + b"t"])
    assert (tokens, at_ns) == (2.0, turns.now)


# --- tokens


def test_one_token_is_taken_from_each_bucket_of_a_message() -> None:
    turns = Turns()
    turns.create("q")
    turns.limit("x", 0, 10)
    turns.limit("y", 0, 10)
    turns.enqueue("q", count=3, throttle=(b"x", b"y"))
    turns.enqueue("q", count=2, throttle=(b"x",))
    turns.consume("q")
    buckets = turns.machine.state.buckets
    assert (buckets[b"x"].tokens, buckets[b"y"].tokens) == (5.0, 7.0)


def test_if_one_bucket_is_short_no_token_is_taken_from_the_other() -> None:
    turns = Turns()
    turns.create("q")
    turns.limit("x", 0, 10)
    turns.limit("y", 0, 0)
    turns.enqueue("q", count=3, throttle=(b"x", b"y"))
    assert turns.consume("q").ids() == []
    assert turns.machine.state.buckets[b"x"].tokens == 10.0


def test_a_throttle_key_without_a_bucket_is_unlimited() -> None:
    turns = Turns()
    turns.create("q")
    ids = turns.enqueue("q", count=100, throttle=(b"free",))
    assert turns.consume("q", prefetch=100).ids() == ids


def test_a_message_goes_the_moment_its_token_is_there() -> None:
    turns = Turns()
    turns.create("q")
    turns.limit("t", 4, 1)
    ids = turns.enqueue("q", count=3, throttle=(b"t",))
    assert turns.consume("q").ids() == ids[:1]
    assert turns.machine.next_deadline() == turns.now + 250 * MS
    assert turns.wait(250 * MS - 1).ids() == []
    assert turns.wait(1).ids() == [ids[1]]


def test_buckets_are_shared_by_all_queues() -> None:
    turns = Turns()
    turns.limit("t", 0, 3)
    for name in ("q", "r"):
        turns.create(name)
        turns.enqueue(name, count=3, throttle=(b"t",))
    assert len(turns.consume("q").ids()) == 3
    assert turns.consume("r").ids() == []


def test_a_queue_without_consumers_keeps_no_token_from_another() -> None:
    turns = Turns()
    turns.limit("t", 1, 1)
    for name in ("idle", "busy"):
        turns.create(name)
        turns.enqueue(name, count=5, throttle=(b"t",))
    turns.consume("idle", "gone", prefetch=5)
    turns.leave("idle", "gone")  # its lane stays parked on the bucket
    turns.consume("busy", prefetch=5)
    turns.wait(3 * SECOND)
    assert len(turns.queue("busy").leased) == 3


def test_a_token_its_first_waiter_cannot_use_goes_to_the_next() -> None:
    turns = Turns()
    turns.create("q")
    turns.limit("x", 1, 1)
    turns.limit("never", 0, 0)
    turns.enqueue("q", b"a", count=2, throttle=(b"x",))
    turns.enqueue("q", b"b", count=2, throttle=(b"x", b"never"))
    turns.enqueue("q", b"c", count=2, throttle=(b"x",))
    turns.consume("q", prefetch=100)
    turns.wait(3 * SECOND)
    assert sorted(one[1].key.name for one in turns.queue("q").leased.values()) == [
        b"a",
        b"a",
        b"c",
        b"c",
    ]


def test_parked_lanes_cost_a_pass_nothing() -> None:
    turns = Turns()
    turns.create("q")
    turns.limit("t", 0, 0)
    for at in range(50):
        turns.enqueue("q", b"k%d" % at, throttle=(b"t",))
    turns.consume("q", prefetch=100)
    ring = turns.queue("q").ring
    assert (ring.head, ring.keys) == (None, 0)
    assert turns.machine.next_deadline() == 0


# --- events


def test_a_delivered_event_counts_what_is_left_and_who_was_active() -> None:
    turns = Turns(journal=True)
    turns.create("q")
    turns.limit("t", 0, 0)
    turns.enqueue("q", b"a", count=2, weight=3)
    turns.enqueue("q", b"a", count=5, weight=3, throttle=(b"t",))
    turns.enqueue("q", b"b", count=1)
    turns.turn(Consume("q", "warm", 1, 1))
    turns.leave("q", "warm", release=True)
    events = [one for one in turns.consume("q", "w").events if one.event == EVENT_DELIVERED]
    assert [(one.fairness_key, one.key_pending, one.consumer) for one in events] == [
        (b"a", 6, "w"),
        (b"a", 5, "w"),
        (b"b", 0, "w"),
    ]
    assert [one.weight for one in events] == [3, 3, 1]


def test_without_a_listener_no_event_is_made() -> None:
    turns = Turns()
    turns.create("q")
    ids = turns.enqueue("q", count=2)
    assert turns.consume("q").events == []
    assert turns.ack("q", ids).events == []


# --- nothing to do


def test_a_consumer_of_an_empty_queue_gets_the_first_message_in_its_own_turn() -> None:
    turns = Turns()
    turns.create("q")
    turns.consume("q")
    command = turns.messages("q")
    assert turns.turn(command).ids() == command.ids


def test_an_ack_that_frees_credit_and_a_new_message_meet_in_one_turn() -> None:
    turns = Turns()
    turns.create("q")
    ids = turns.enqueue("q")
    turns.consume("q", prefetch=1)
    command = turns.messages("q")
    assert turns.turn(command, Ack("q", ids, 1)).ids() == command.ids
