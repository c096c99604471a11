from __future__ import annotations

from typing import Any

import pytest

from fila.core import rows
from fila.core.command import (
    Ack,
    AckBatch,
    Consume,
    DeleteQueue,
    ExpireBatch,
    ExtendBatch,
    Lease,
    Nack,
    Release,
    ReleaseBatch,
    Withdraw,
)
from fila.core.effect import BatchLeased
from fila.core.entry import ATTEMPTS, message_id
from fila.core.lease import stream_of
from fila.core.rejection import (
    BATCH_NOT_FOUND,
    INVALID_CONFIG_VALUE,
    MESSAGE_NOT_FOUND,
    OK,
    QUEUE_NOT_FOUND,
    Rejection,
    queue_not_found,
)
from fila.core.settings import Settings
from fila.core.verdict import RETRY_NOW
from tests.core.turn import DEAD_LETTER, MS, SECOND, Turns


def ask(name: str = "s/0", count: int = 100, request: int = 1, **more: Any) -> Lease:
    return Lease("q", name, request, count, **more)


def got(leased: list[BatchLeased]) -> list[list[bytes]]:
    return [[message_id(entry) for entry in one.entries] for one in leased]


def filled(count: int = 3, settings: Settings | None = None) -> tuple[Turns, list[bytes]]:
    """A queue with `count` messages, all leased as the batch s/0."""
    turns = Turns(settings)
    turns.create("q")
    ids = turns.enqueue("q", count=count)
    assert got(turns.turn(ask(count=count)).batches_leased) == [ids]
    return turns, ids


def clean(turns: Turns) -> None:
    """Nothing is left of any batch, in memory or in the store."""
    assert turns.queue("q").lease_batches == {}
    assert turns.queue("q").leases == {}
    assert turns.rows(rows.LEASES) == []
    assert turns.rows(rows.STATE, rows.OPEN_BATCH_PREFIX) == []
    assert turns.machine.state.filling == turns.machine.state.patient == {}


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("s/0", ("s", 0)),
        ("s/17/shard-2", ("s", 17)),
        ("a b/007", ("a b", 7)),
        ("s", None),
        ("s/", None),
        ("s/x/1", None),
        ("s/-1", None),
        ("s/²", None),
        ("/3", ("", 3)),
    ],
)
def test_a_name_tells_its_stream_and_number(name: str, place: tuple[str, int] | None) -> None:
    assert stream_of(name) == place


def test_the_same_name_gives_the_same_messages_until_they_are_acked() -> None:
    turns, ids = filled()
    turns.enqueue("q", count=2)
    (again,) = turns.turn(ask(request=2)).batches_leased
    assert again.request == 2
    assert again.again
    assert got([again]) == [ids]
    assert turns.turn(AckBatch("q", "s/0")).replies == [(1, 3, 0)]
    clean(turns)
    (later,) = turns.turn(ask(request=3)).batches_leased
    assert not later.again
    assert len(later.entries) == 2


def test_membership_survives_a_restart() -> None:
    turns, ids = filled(700)  # more than one lease
    turns = turns.restart()
    assert len(turns.queue("q").lease_batches["s/0"].leases) == 2
    assert turns.queue("q").leases == {}
    (again,) = turns.turn(ask()).batches_leased
    assert again.again
    assert got([again]) == [ids]
    assert turns.turn(AckBatch("q", "s/0")).replies == [(0, 512, 2)]
    assert turns.turn(AckBatch("q", "s/0", None, 2)).replies == [(1, 188, 0)]
    clean(turns)
    assert turns.rows(rows.MESSAGES) == []
    assert turns.restart().queue("q").lease_batches == {}


def test_a_batch_that_ran_out_counts_no_attempt_and_keeps_its_place() -> None:
    turns, ids = filled()
    newer = turns.enqueue("q")
    turns.wait(30 * SECOND)
    clean(turns)
    assert turns.queue("q").counters.released == 3
    outcome = turns.consume("q")
    assert outcome.ids() == ids + newer
    assert [entry[ATTEMPTS] for entry in outcome.entries()] == [0, 0, 0, 0]


def test_a_batch_that_counts_attempts_asks_the_failure_hook() -> None:
    turns = Turns()
    turns.create("q")
    turns.enqueue("q", count=2)
    turns.turn(ask(count_attempt=True))
    turns.policy.on_failure_says = DEAD_LETTER
    turns.wait(30 * SECOND)
    clean(turns)
    assert turns.queue("q.dlq").pending == 2
    turns = Turns()
    turns.create("q")
    turns.enqueue("q", count=2)
    turns.turn(ask(count_attempt=True, visibility_ms=5_000))
    turns = turns.restart()
    turns.wait(5 * SECOND)
    clean(turns)
    assert [entry[ATTEMPTS] for entry in turns.consume("q").entries()] == [1, 1]


def test_a_batch_has_its_own_time_and_may_be_extended() -> None:
    turns, ids = filled()
    turns.enqueue("q")
    turns.turn(ask("s/1", visibility_ms=2_000, request=2))
    assert turns.turn(ExtendBatch("q", "s/0", 60_000)).replies == [(1, 3)]
    turns.wait(2 * SECOND)
    assert list(turns.queue("q").lease_batches) == ["s/0"]
    turns = turns.restart()
    turns.wait(57 * SECOND)
    assert list(turns.queue("q").lease_batches) == ["s/0"]
    turns.wait(1 * SECOND)
    clean(turns)
    assert turns.consume("q").ids()[:3] == ids


def test_an_extension_also_rescues_a_batch_whose_time_is_just_up() -> None:
    turns, _ = filled()
    turns.now += 30 * SECOND
    turns.machine.advance(turns.now)  # noticed, not yet ended
    assert turns.machine.apply(ExtendBatch("q", "s/0", 1_000)) == (1, 3)
    assert turns.machine.due_batch() is None
    turns.turn()
    turns.wait(SECOND)
    clean(turns)


def test_releasing_a_batch_puts_its_messages_back_in_front() -> None:
    turns, ids = filled()
    newer = turns.enqueue("q")
    assert turns.turn(ReleaseBatch("q", "s/0")).replies == [(1, 3, 0)]
    clean(turns)
    assert turns.consume("q").ids() == ids + newer


def test_a_stream_is_acked_below_a_number_only() -> None:
    turns = Turns()
    turns.create("q")
    turns.enqueue("q", count=6)
    for request, name in enumerate(("s/0", "s/1/a", "s/1/b", "s/2", "t/0", "s"), 1):
        turns.turn(ask(name, 1, request))
    assert turns.turn(AckBatch("q", "s", 2)).replies == [(3, 3, 0)]
    assert list(turns.queue("q").lease_batches) == ["s/2", "t/0", "s"]
    assert turns.turn(AckBatch("q", "s", 2)).replies == [(0, 0, 0)]
    assert turns.turn(ReleaseBatch("q", "s", 2**64 - 1)).replies == [(1, 1, 0)]
    assert turns.turn(AckBatch("q", "s")).replies == [(1, 1, 0)]  # the batch of exactly this name
    (reply,) = turns.turn(AckBatch("q", "s/0")).replies
    assert isinstance(reply, Rejection)
    assert reply.code == BATCH_NOT_FOUND


def test_only_an_open_batch_is_given_when_no_messages_are_asked_for() -> None:
    turns, ids = filled()
    assert got(turns.turn(ask(count=0, request=2)).batches_leased) == [ids]
    (reply,) = turns.turn(ask("s/1", 0)).replies
    assert isinstance(reply, Rejection)
    assert reply.code == BATCH_NOT_FOUND


def test_an_empty_queue_answers_at_once_and_opens_nothing() -> None:
    turns = Turns()
    turns.create("q")
    (leased,) = turns.turn(ask()).batches_leased
    assert leased.entries == []
    clean(turns)
    assert not turns.queue("q").ready


def test_a_request_that_waits_is_answered_by_the_first_message() -> None:
    turns = Turns()
    turns.create("q")
    assert turns.turn(ask(wait_ms=5_000)).batches_leased == []
    assert turns.wait(SECOND).batches_leased == []
    command = turns.messages("q", count=2)
    (leased,) = turns.turn(command).batches_leased
    assert got([leased]) == [command.ids]
    assert turns.queue("q").lease_batches["s/0"].expires_ns == turns.now + 30_000 * MS


def test_a_request_that_waited_in_vain_is_answered_with_nothing() -> None:
    turns = Turns()
    turns.create("q")
    turns.turn(ask(wait_ms=5_000))
    assert turns.wait(5 * SECOND - 1).batches_leased == []
    (leased,) = turns.wait(1).batches_leased
    assert leased.entries == []
    clean(turns)
    assert turns.machine.next_deadline() == 0


def test_two_requests_for_a_batch_that_is_filling_get_the_same_messages() -> None:
    turns = Turns()
    turns.create("q")
    turns.turn(ask(wait_ms=5_000), ask(request=2))
    command = turns.messages("q", count=2)
    leased = turns.turn(command).batches_leased
    assert [one.request for one in leased] == [1, 2]
    assert [one.again for one in leased] == [False, True]
    # Their bodies are told once; whoever else waited asks again, when there is room for its answer.
    assert got(leased) == [command.ids, []]
    assert [(one.messages, one.unread) for one in leased] == [(2, False), (2, True)]
    assert got(turns.turn(ask(request=3)).batches_leased) == [command.ids]


def test_batches_that_wait_are_not_looked_at_with_every_turn() -> None:
    turns = Turns()
    turns.create("q")
    turns.create("r")
    turns.turn(ask(wait_ms=5_000), ask("s/1", request=2, wait_ms=1_000))
    state = turns.machine.state
    assert state.filling == {} and len(state.patient) == 2
    turns.enqueue("r")
    assert state.filling == {} and len(state.patient) == 2
    assert [one.request for one in turns.wait(SECOND).batches_leased] == [2]
    (leased,) = turns.turn(turns.messages("q")).batches_leased
    assert (leased.request, leased.messages) == (1, 1)
    assert state.filling == state.patient == {}


def test_a_withdrawn_request_leases_nothing() -> None:
    turns = Turns()
    turns.create("q")
    turns.turn(ask(wait_ms=5_000))
    assert turns.turn(Withdraw("q", "s/0", 1)).replies == [1]
    clean(turns)
    turns.enqueue("q")
    assert turns.queue("q").pending == 1
    assert turns.turn(Withdraw("q", "s/0", 1)).replies == [0]


def test_a_batch_and_a_consumer_share_by_turns() -> None:
    turns = Turns()
    turns.create("q")
    turns.consume("q", "c", prefetch=100)
    turns.turn(ask(count=100, wait_ms=5_000))
    outcome = turns.turn(turns.messages("q", count=40))
    assert len(outcome.ids("c")) == 20
    assert len(outcome.batches_leased[0].entries) == 20


def test_a_batch_takes_turns_of_keys_and_tokens() -> None:
    turns = Turns()
    turns.create("q")
    turns.limit("slow", 1.0, 2.0)
    turns.enqueue("q", b"a", 50)
    turns.enqueue("q", b"b", 50)
    turns.enqueue("q", b"c", 50, throttle=(b"slow",))
    (leased,) = turns.turn(ask(count=22)).batches_leased
    names = [lane.key.name for lane in leased.lanes]
    assert (names.count(b"a"), names.count(b"b"), names.count(b"c")) == (10, 10, 2)


def test_a_batch_larger_than_a_pass_takes_several_turns() -> None:
    turns = Turns(Settings(pass_messages=64, delivery_messages=16))
    turns.create("q")
    ids = turns.enqueue("q", count=500)
    outcome = turns.turn(ask(count=300))
    (leased,) = outcome.batches_leased
    # What a turn handed out is not kept until the batch is complete: it is read to be told.
    assert (leased.messages, leased.unread, leased.entries) == (300, True, [])
    assert outcome.ids("batch:s/0") == ids[:300]
    assert got(turns.turn(ask(request=2)).batches_leased) == [ids[:300]]
    turns = turns.restart()
    assert turns.turn(AckBatch("q", "s/0")).replies == [(1, 300, 0)]
    clean(turns)


def test_a_crash_while_a_batch_fills_keeps_what_it_has_under_its_name() -> None:
    turns = Turns(Settings(pass_messages=64, delivery_messages=16))
    turns.create("q")
    ids = turns.enqueue("q", count=500)
    outcome, more = turns.one_pass(ask(count=300))
    assert more
    assert outcome.batches_leased == []
    turns = turns.restart()
    (leased,) = turns.turn(ask(count=300)).batches_leased
    assert leased.again
    assert got([leased]) == [ids[:64]]


def test_bytes_bound_a_batch_but_one_message_always_goes() -> None:
    turns = Turns()
    turns.create("q")
    turns.enqueue("q", count=5, body_bytes=1000)
    assert len(turns.turn(ask(max_bytes=2_500)).batches_leased[0].entries) == 3
    assert len(turns.turn(ask("s/1", max_bytes=1)).batches_leased[0].entries) == 1


def test_a_batch_gets_no_more_bytes_than_the_broker_allows() -> None:
    turns = Turns(Settings(batch_bytes_max=2_500))
    turns.create("q")
    turns.enqueue("q", count=9, body_bytes=1000)
    assert turns.turn(ask(max_bytes=5_000)).batches_leased[0].messages == 3
    assert turns.turn(ask("s/1")).batches_leased[0].messages == 3
    view = turns.machine.view
    assert view.batch_bytes("q", "s/0") == 3_000
    assert view.batch_bytes("q", "none") is None and view.batch_bytes("none", "s/0") is None
    assert turns.restart().machine.view.batch_bytes("q", "s/0") == 3_000


def test_messages_of_a_batch_are_settled_one_by_one_by_anybody() -> None:
    turns, ids = filled(4)
    assert turns.turn(Ack("q", ids[:1], 7)).replies == [[OK]]
    assert turns.turn(Nack("q", ids[1:2], ["no"], [RETRY_NOW], 8)).replies == [[OK]]
    assert turns.turn(Release("q", ids[2:3], 9)).replies == [[OK]]
    turns = turns.restart()
    assert got(turns.turn(ask()).batches_leased) == [ids[3:]]
    turns.ack("q", ids[3:], 9)
    clean(turns)
    outcome = turns.consume("q")
    assert outcome.ids() == [ids[2], ids[1]]
    assert [entry[ATTEMPTS] for entry in outcome.entries()] == [0, 1]


def test_a_deleted_queue_takes_its_batches_along() -> None:
    turns, _ = filled()
    turns.turn(ask("s/1", wait_ms=1_000, request=5))
    outcome = turns.turn(DeleteQueue("q"))
    (told,) = outcome.batches_leased
    assert told.request == 5
    assert told.gone == queue_not_found("q")
    assert turns.rows(rows.STATE, rows.OPEN_BATCH_PREFIX) == []
    assert turns.machine.state.filling == turns.machine.state.patient == {}
    assert turns.machine.next_deadline() == 0


@pytest.mark.parametrize(
    "command",
    [
        ask(""),
        ask("a\nb"),
        ask("x" * 256),
        ask(count=65_536),
        ask(visibility_ms=999),
        ask(wait_ms=60_001),
        ask(max_bytes=1 << 30),
    ],
)
def test_a_request_out_of_bounds_is_refused(command: Lease) -> None:
    turns = Turns()
    turns.create("q")
    (reply,) = turns.turn(command).replies
    assert isinstance(reply, Rejection)
    assert reply.code == INVALID_CONFIG_VALUE
    clean(turns)


def test_open_batches_have_a_limit() -> None:
    turns = Turns(Settings(batches_max=1))
    turns.create("q")
    turns.enqueue("q", count=2)
    turns.turn(ask("s/0", 1))
    (reply,) = turns.turn(ask("s/1", 1)).replies
    assert isinstance(reply, Rejection)
    assert reply.code == INVALID_CONFIG_VALUE


def test_every_operation_knows_whether_the_queue_exists() -> None:
    turns = Turns()
    for command in (
        ask(),
        Withdraw("q", "s/0", 1),
        AckBatch("q", "s"),
        ExtendBatch("q", "s"),
        ReleaseBatch("q", "s"),
        Release("q", []),
    ):
        (reply,) = turns.turn(command).replies
        assert isinstance(reply, Rejection)
        assert reply.code == QUEUE_NOT_FOUND


# --- single releases


def test_a_released_message_is_pending_again_in_its_place_also_after_a_restart() -> None:
    turns = Turns()
    turns.create("q")
    ids = turns.enqueue("q", count=4)
    turns.consume("q", "c", prefetch=3)
    turns.leave("q", "c")
    assert turns.turn(Release("q", [ids[1]], 1)).replies == [[OK]]
    turns = turns.restart()
    queue = turns.queue("q")
    assert queue.pending == 2
    assert set(queue.leased) == {ids[0], ids[2]}
    outcome = turns.consume("q", "d")
    assert outcome.ids() == [ids[1], ids[3]]
    assert [entry[ATTEMPTS] for entry in outcome.entries()] == [0, 0]


def test_a_release_gives_credit_back() -> None:
    turns = Turns()
    turns.create("q")
    ids = turns.enqueue("q", count=2)
    assert turns.consume("q", "c", prefetch=1).ids() == ids[:1]
    assert turns.turn(Release("q", ids[:1], 1)).ids() == ids[:1]


def test_only_who_may_acknowledge_may_release() -> None:
    turns = Turns()
    turns.create("q")
    ids = turns.enqueue("q")
    turns.consume("q", "c", connection=1)
    turns.consume("q", "d", connection=2)
    assert turns.turn(Release("q", ids, 2)).replies == [[MESSAGE_NOT_FOUND]]
    assert turns.turn(Release("q", [b"x" * 16], 1)).replies == [[MESSAGE_NOT_FOUND]]


@pytest.mark.parametrize("counts", [False, True])
def test_a_big_batch_runs_out_in_steps_of_a_bounded_size(counts: bool) -> None:
    settings = Settings(delivery_messages=10, batch_step_messages=25)
    turns = Turns(settings)
    turns.create("q")
    ids = turns.enqueue("q", count=100)
    turns.turn(ask(count=100, count_attempt=counts))
    machine = turns.machine
    turns.now += 30 * SECOND
    machine.advance(turns.now)
    ended = []
    while (due := machine.due_batch()) is not None:
        _, name, asked = due
        assert len(asked) <= 30 and bool(asked) == counts
        step = machine.apply(ExpireBatch("q", name, asked, [RETRY_NOW] * len(asked)))
        assert isinstance(step, int)
        ended.append(step)
        assert sum(ended) == 100 or machine.next_deadline() == turns.now
    assert ended == [30, 30, 30, 10]
    drained = turns.drain("q")
    assert drained.ids() == ids
    assert {entry[ATTEMPTS] for entry in drained.entries()} == {int(counts)}
    clean(turns)


def test_a_big_batch_that_is_extended_while_it_runs_out_keeps_the_rest() -> None:
    turns = Turns(Settings(delivery_messages=10, batch_step_messages=25))
    turns.create("q")
    ids = turns.enqueue("q", count=100)
    turns.turn(ask(count=100))
    turns.now += 30 * SECOND
    turns.machine.advance(turns.now)
    assert turns.machine.apply(ExpireBatch("q", "s/0", [], [])) == 30
    assert turns.machine.apply(ExtendBatch("q", "s/0", 5_000)) == (1, 70)
    assert turns.machine.due_batch() is None
    assert got(turns.turn(ask(count=0, request=2)).batches_leased) == [ids[30:]]


def test_a_batch_all_of_whose_messages_are_acked_while_it_is_filled_leaves_no_row() -> None:
    turns = Turns(Settings(pass_messages=1, delivery_messages=1))
    turns.create("q")
    ids = turns.enqueue("q", count=4)
    turns.one_pass(ask(), Consume("q", "c", 1, 10))
    assert len(turns.rows(rows.STATE, rows.OPEN_BATCH_PREFIX)) == 1
    outcome, more = turns.one_pass(Ack("q", ids[:1]))
    assert (outcome.ids("c"), more) == (ids[1:2], True)  # so the batch is still being filled
    assert turns.rows(rows.STATE, rows.OPEN_BATCH_PREFIX) == []
    assert turns.restart().queue("q").lease_batches == {}


def test_an_open_batch_is_told_in_parts_of_so_many_messages() -> None:
    turns = Turns(Settings(tell_messages=5, delivery_messages=2))
    turns.create("q")
    ids = turns.enqueue("q", count=21)
    turns.turn(ask(count=21))
    told: list[list[bytes]] = []
    opened = after = 0
    while not told or after:
        command = ask(count=0, request=2 + len(told))._replace(opened=opened, after=after)
        (part,) = turns.turn(command).batches_leased
        assert (part.again, part.messages) == (True, 21)
        told.append([message_id(entry) for entry in part.entries])
        opened, after = part.opened, part.rest
    assert [len(one) for one in told] == [6, 6, 6, 3]
    assert [id for part in told for id in part] == ids


def test_a_part_is_no_larger_than_so_many_bytes_and_one_lease() -> None:
    turns = Turns(Settings(tell_bytes=300, delivery_messages=1))
    turns.create("q")
    command = turns.messages("q", count=6)
    turns.turn(command._replace(bodies=[b"\0\0" + b"x" * 98] * 6))
    turns.turn(ask(count=6))
    (part,) = turns.turn(ask(request=2)).batches_leased
    assert len(part.entries) == 3 and part.rest


def test_what_was_finished_between_two_parts_is_not_told_any_more() -> None:
    turns = Turns(Settings(tell_messages=2, delivery_messages=2))
    turns.create("q")
    ids = turns.enqueue("q", count=6)
    turns.turn(ask(count=6))
    (part,) = turns.turn(ask(request=2)).batches_leased
    turns.ack("q", ids[2:5])
    command = ask(count=0, request=3)._replace(opened=part.opened, after=part.rest)
    (part,) = turns.turn(command).batches_leased
    assert got([part]) == [ids[5:]] and part.rest == 0


def test_no_part_is_told_of_another_batch_of_the_same_name() -> None:
    turns = Turns(Settings(tell_messages=2, delivery_messages=2))
    turns.create("q")
    turns.enqueue("q", count=6)
    turns.turn(ask(count=6))
    (part,) = turns.turn(ask(request=2)).batches_leased
    turns.turn(ReleaseBatch("q", "s/0"))
    turns.turn(ask(count=6, request=3))
    command = ask(count=0, request=4)._replace(opened=part.opened, after=part.rest)
    (refused,) = turns.turn(command).replies
    assert isinstance(refused, Rejection) and refused.code == BATCH_NOT_FOUND
