"""Where the time went: scripted scenarios with the exact split of each wait (delivery.py)."""

from __future__ import annotations

from fila.core.command import Ack, Consume, Hold, Lease, PauseQueue, ResumeQueue
from fila.core.effect import EVENT_DELIVERED
from fila.core.settings import Settings
from fila.core.verdict import FailureVerdict
from fila.core.waits import Waits
from tests.core.turn import MS, SECOND, Outcome, Turns

ONE_AT_A_TIME = Settings(pass_messages=1)


def parts(
    retry: int = 0,
    throttled: int = 0,
    no_consumer: int = 0,
    own: int = 0,
    turn: int = 0,
    busy_own: int = 0,
    busy_others: int = 0,
) -> Waits:
    return Waits(retry, throttled, no_consumer, own, turn, 0, busy_own, busy_others)


def queue(settings: Settings | None = None) -> Turns:
    turns = Turns(settings, journal=True)
    turns.create("q", visibility_ms=3_600_000)
    return turns


def slowly(turns: Turns, passes: int) -> list[tuple[bytes, Waits]]:
    """One message a second to a consumer with credit to spare: keys and waits in order."""
    found: list[tuple[bytes, Waits]] = []
    for _ in range(passes):
        outcome, _ = turns.one_pass()
        found += zip(outcome.keys(), outcome.waits(), strict=True)
        turns.now += SECOND
    return found


def adds_up(outcome: Outcome) -> None:
    for event in outcome.events:
        if event.event == EVENT_DELIVERED:
            assert event.waits is not None
            assert sum(event.waits) == event.ts_ns - event.since_ns
            assert min(event.waits) >= 0, event.waits


# --- nobody there


def test_a_message_delivered_at_once_waited_for_nothing() -> None:
    turns = queue()
    turns.consume("q")
    assert turns.turn(turns.messages("q")).waits() == [parts()]


def test_time_without_a_consumer_is_time_without_a_consumer() -> None:
    turns = queue()
    turns.enqueue("q", b"a", count=2)
    turns.wait(7 * SECOND)
    turns.enqueue("q", b"b")
    turns.wait(2 * SECOND)
    outcome = turns.consume("q")
    assert outcome.keys() == [b"a", b"b", b"a"]
    waited = [9 * SECOND, 2 * SECOND, 9 * SECOND]
    assert outcome.waits() == [parts(no_consumer=ns) for ns in waited]
    adds_up(outcome)


def test_time_without_credit_is_time_in_which_consumers_were_busy() -> None:
    turns = queue()
    ids = turns.enqueue("q", count=2)
    turns.consume("q", prefetch=1)
    turns.wait(5 * SECOND)
    assert turns.ack("q", ids[:1]).waits() == [parts(busy_own=5 * SECOND)]


def test_only_the_time_of_the_message_itself_counts() -> None:
    turns = queue()
    turns.wait(100 * SECOND)
    turns.enqueue("q")
    turns.wait(3 * SECOND)
    assert turns.consume("q").waits() == [parts(no_consumer=3 * SECOND)]


# --- an empty bucket


def test_time_a_bucket_was_short_is_throttled() -> None:
    turns = queue()
    turns.limit("t", 1, 1)
    turns.consume("q")
    turns.enqueue("q", throttle=(b"t",))
    turns.enqueue("q", throttle=(b"t",))
    outcome = turns.wait(SECOND)
    assert outcome.waits() == [parts(throttled=SECOND)]
    adds_up(outcome)


def test_the_whole_line_behind_a_bucket_is_throttled() -> None:
    turns = queue()
    turns.limit("t", 1, 1)
    turns.consume("q")
    turns.enqueue("q", count=3, throttle=(b"t",))
    outcome = turns.wait(3 * SECOND)
    assert [waits.throttled for waits in outcome.waits()] == [SECOND, 2 * SECOND]
    adds_up(outcome)


def test_a_message_that_came_later_was_throttled_for_less() -> None:
    turns = queue()
    turns.limit("t", 1, 1)
    turns.consume("q")
    turns.enqueue("q", count=2, throttle=(b"t",))
    turns.wait(SECOND // 4)
    turns.enqueue("q", throttle=(b"t",))
    outcome = turns.wait(3 * SECOND)
    assert [waits.throttled for waits in outcome.waits()] == [SECOND, SECOND * 7 // 4]
    adds_up(outcome)


def test_throttled_or_not_while_nobody_had_credit_that_is_the_reason() -> None:
    turns = queue()
    turns.limit("t", 1, 1)
    (first,) = turns.enqueue("q", throttle=(b"t",))
    turns.consume("q", prefetch=1)
    turns.enqueue("q", throttle=(b"t",))
    turns.wait(SECOND // 2)  # no credit, and the bucket is short as well
    assert turns.ack("q", [first]).ids() == []
    outcome = turns.wait(SECOND)
    assert outcome.waits() == [parts(busy_own=SECOND // 2, throttled=SECOND // 2)]
    adds_up(outcome)


def test_a_throttled_tenant_does_not_make_another_wait() -> None:
    turns = queue()
    turns.limit("t", 0, 0)
    turns.consume("q")
    turns.enqueue("q", b"a", count=5, throttle=(b"t",))
    turns.wait(SECOND)
    assert turns.turn(turns.messages("q", b"b")).waits() == [parts()]


# --- a delay


def test_the_delay_of_a_retry_is_the_retry_part() -> None:
    turns = queue()
    (id,) = turns.enqueue("q")
    turns.consume("q")
    turns.wait(4 * SECOND)
    turns.nack("q", [id], FailureVerdict(False, 5_000))
    outcome = turns.wait(5 * SECOND)
    assert outcome.waits() == [parts(retry=5 * SECOND)]
    adds_up(outcome)


def test_a_retry_without_a_delay_starts_its_wait_anew() -> None:
    turns = queue()
    (id,) = turns.enqueue("q")
    turns.wait(4 * SECOND)
    turns.consume("q")
    turns.wait(SECOND)
    assert turns.nack("q", [id]).waits() == [parts()]


def test_a_handed_back_message_starts_its_wait_anew() -> None:
    turns = queue()
    turns.enqueue("q")
    turns.wait(4 * SECOND)
    turns.consume("q", "a")
    turns.wait(SECOND)
    turns.leave("q", "a", release=True)
    turns.wait(2 * SECOND)
    assert turns.consume("q", "b").waits() == [parts(no_consumer=2 * SECOND)]


def test_a_delayed_message_that_is_not_its_lanes_head_counts_as_own_backlog_until_it_is() -> None:
    turns = queue(ONE_AT_A_TIME)
    turns.enqueue("q", count=2)
    turns.enqueue("q", delay_ms=500)
    turns.now += SECOND  # three messages are ready, and a consumer comes
    turns.machine.advance(turns.now)
    turns.machine.apply(Consume("q", "c", 1, 100))
    found = slowly(turns, 3)
    assert found[2] == (b"k", parts(retry=500 * MS, own=1_500 * MS, turn=SECOND))


def test_time_without_a_consumer_during_the_delay_belongs_to_the_delay() -> None:
    turns = queue()
    turns.enqueue("q", delay_ms=10_000)
    turns.wait(15 * SECOND)
    outcome = turns.consume("q")
    assert outcome.waits() == [parts(retry=10 * SECOND, no_consumer=5 * SECOND)]


# --- own backlog and others' turns


def test_a_noisy_neighbour_costs_a_quiet_key_turns() -> None:
    turns = queue(ONE_AT_A_TIME)
    turns.consume("q", prefetch=100)
    turns.machine.advance(turns.now)
    turns.machine.apply(turns.messages("q", b"noisy", count=3))
    turns.machine.apply(turns.messages("q", b"quiet"))
    assert slowly(turns, 4) == [
        (b"noisy", parts()),
        (b"quiet", parts(turn=1 * SECOND)),
        (b"noisy", parts(turn=2 * SECOND)),
        (b"noisy", parts(own=2 * SECOND, turn=1 * SECOND)),
    ]


def test_a_key_alone_waits_for_its_own_backlog() -> None:
    turns = queue(ONE_AT_A_TIME)
    turns.consume("q", prefetch=100)
    turns.machine.advance(turns.now)
    turns.machine.apply(turns.messages("q", b"a", count=4))
    assert slowly(turns, 4) == [
        (b"a", parts()),
        (b"a", parts(turn=1 * SECOND)),
        (b"a", parts(own=1 * SECOND, turn=1 * SECOND)),
        (b"a", parts(own=2 * SECOND, turn=1 * SECOND)),
    ]


def test_a_late_message_behind_a_backlog_waits_for_it() -> None:
    turns = queue(ONE_AT_A_TIME)
    turns.consume("q", prefetch=100)
    turns.machine.advance(turns.now)
    turns.machine.apply(turns.messages("q", b"a", count=3))
    slowly(turns, 1)
    turns.machine.advance(turns.now)
    turns.machine.apply(turns.messages("q", b"a"))
    assert slowly(turns, 3)[2] == (b"a", parts(own=1 * SECOND, turn=1 * SECOND))


def test_two_lanes_of_one_key_are_each_others_own_backlog() -> None:
    turns = queue(ONE_AT_A_TIME)
    turns.limit("t", 100, 100)
    turns.consume("q", prefetch=100)
    turns.machine.advance(turns.now)
    turns.machine.apply(turns.messages("q", b"a", count=2))
    turns.machine.apply(turns.messages("q", b"b", count=1))
    turns.now += 1
    turns.machine.advance(turns.now)
    turns.machine.apply(turns.messages("q", b"a", throttle=(b"t",)))
    assert slowly(turns, 4) == [
        (b"a", parts(turn=1)),
        (b"b", parts(turn=SECOND + 1)),
        # The second of a's first lane headed it from the first delivery on.
        (b"a", parts(own=1, turn=2 * SECOND)),
        # The throttled lane was not the oldest of its key before that.
        (b"a", parts(own=2 * SECOND, turn=1 * SECOND)),
    ]


def test_a_story_of_everything_adds_up() -> None:
    turns = queue(Settings(pass_messages=2, window_messages=2, page_messages=2))
    turns.limit("t", 3, 1)
    for at in range(12):
        throttle = ((), (b"t",), (b"u",))[at % 3]
        turns.enqueue("q", b"k%d" % (at % 4), count=3, weight=1 + at % 3, throttle=throttle)
        turns.wait(130 * MS)
    outcome = turns.consume("q", "c", prefetch=3)
    adds_up(outcome)
    held = outcome.ids()
    for step in range(60):
        turns.wait(70 * MS)
        if held and step % 2:
            id = held.pop(0)
            one = turns.nack("q", [id]) if step % 5 == 1 else turns.turn(Ack("q", [id], 1))
            adds_up(one)
            held += one.ids()
        one = turns.turn()
        adds_up(one)
        held += one.ids()
    assert turns.queue("q").counters.delivered > 20


def test_the_split_goes_on_across_a_restart() -> None:
    turns = queue()
    turns.limit("t", 1, 1)
    turns.consume("q", "c", prefetch=10)
    turns.enqueue("q", count=2, throttle=(b"t",))
    turns.wait(SECOND // 2)
    turns.enqueue("q", b"other")  # stores the clocks of this moment
    turns.enqueue("q", throttle=(b"t",))
    turns = turns.restart(after_ns=SECOND // 4)
    outcome = turns.consume("q", "d", connection=2)
    outcome.extend(turns.wait(3 * SECOND))
    throttled = [
        one for one in outcome.events if one.throttle_keys and one.event == EVENT_DELIVERED
    ]
    first, second = [one.waits for one in throttled]
    # Half a second behind the bucket, a quarter nobody was there, and a quarter behind it again.
    assert first == parts(throttled=SECOND * 3 // 4, no_consumer=SECOND // 4)
    assert second is not None and second.no_consumer == SECOND // 4
    adds_up(outcome)


# --- busy consumers


def busy_queue(prefetch: int) -> Turns:
    """One consumer with so much credit, and enough of two keys to use it up."""
    turns = queue()
    turns.enqueue("q", b"a", count=prefetch * 3 // 4)
    turns.enqueue("q", b"b", count=prefetch // 4)
    assert len(turns.consume("q", prefetch=prefetch).ids()) == prefetch
    return turns


def test_busy_time_is_divided_by_who_holds_what_is_in_flight() -> None:
    turns = busy_queue(4)
    turns.enqueue("q", b"a")
    turns.wait(8 * SECOND)
    held = list(turns.queue("q").leased)
    (waits,) = turns.ack("q", held[:1]).waits()
    assert waits == parts(busy_own=6 * SECOND, busy_others=2 * SECOND)


def test_a_key_without_anything_in_flight_waited_for_others_alone() -> None:
    turns = busy_queue(4)
    turns.wait(SECOND)  # before it came
    turns.enqueue("q", b"c")
    turns.wait(3 * SECOND)
    outcome = turns.ack("q", list(turns.queue("q").leased)[:1])
    assert outcome.waits() == [parts(busy_others=3 * SECOND)]
    adds_up(outcome)


def test_the_division_follows_every_change_of_what_is_in_flight() -> None:
    turns = queue()
    turns.enqueue("q", b"a", count=2)
    turns.consume("q", prefetch=2)
    turns.enqueue("q", b"b", count=3)
    turns.wait(SECOND)  # a and a: others
    first, second = turns.queue("q").leased
    assert turns.ack("q", [first]).keys() == [b"b"]
    turns.wait(SECOND)  # a and b: one half each
    assert turns.ack("q", [second]).keys() == [b"b"]
    turns.wait(SECOND)  # b and b: its own
    (waits,) = turns.ack("q", list(turns.queue("q").leased)[:1]).waits()
    assert waits == parts(busy_own=SECOND + SECOND // 2, busy_others=SECOND + SECOND // 2)


def test_consumers_that_are_held_or_gone_are_none() -> None:
    turns = queue()
    turns.enqueue("q", count=1)
    turns.consume("q", prefetch=1)
    turns.enqueue("q")
    turns.wait(SECOND)
    turns.turn(Hold("q", "c", True))
    turns.wait(SECOND)
    turns.turn(Hold("q", "c", False))
    turns.wait(SECOND)
    turns.leave("q")
    turns.wait(SECOND)
    (waits,) = turns.consume("q", "d", prefetch=1).waits()
    assert waits == parts(no_consumer=2 * SECOND, busy_own=2 * SECOND)


def test_while_a_queue_is_paused_its_consumers_are_not_busy() -> None:
    turns = busy_queue(4)
    turns.enqueue("q", b"c")
    turns.wait(SECOND)
    turns.turn(PauseQueue("q"))
    turns.wait(5 * SECOND)
    turns.turn(ResumeQueue("q"))
    turns.wait(SECOND)
    (waits,) = turns.ack("q", list(turns.queue("q").leased)[:1]).waits()
    assert waits == parts(busy_others=2 * SECOND)._replace(paused=5 * SECOND)


def test_open_batches_hold_slots_like_consumers() -> None:
    turns = queue()
    turns.enqueue("q", b"a", count=2)
    turns.turn(Lease("q", "s/1", 1, max_messages=1))
    turns.wait(4 * SECOND)
    (waits,) = turns.consume("q").waits()
    assert waits == parts(busy_own=4 * SECOND)


def test_what_was_stored_before_a_restart_counts_busy_time_from_then_on() -> None:
    turns = busy_queue(4)
    turns.enqueue("q", b"b", count=2)
    turns.wait(2 * SECOND)
    again = turns.restart(after_ns=SECOND)
    outcome = again.consume("q", prefetch=1)
    assert outcome.waits() == [parts(no_consumer=3 * SECOND)]
    again.wait(5 * SECOND)  # five in flight, two of them of its key
    outcome = again.ack("q", outcome.ids())
    assert outcome.waits() == [
        parts(no_consumer=3 * SECOND, busy_own=2 * SECOND, busy_others=3 * SECOND)
    ]
    adds_up(outcome)


def test_busy_time_of_a_retry_counts_while_it_heads_its_lane() -> None:
    turns = queue()
    (first,) = turns.enqueue("q", b"a")
    turns.consume("q", prefetch=1)
    turns.enqueue("q", b"b")
    turns.nack("q", [first], FailureVerdict(False, 1_000))  # b takes its place
    turns.wait(3 * SECOND)
    outcome = turns.ack("q", list(turns.queue("q").leased))
    assert outcome.waits() == [parts(retry=SECOND, busy_others=2 * SECOND)]
    adds_up(outcome)
