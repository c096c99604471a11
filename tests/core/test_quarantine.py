"""A queue whose rows cannot be read is set apart; the others do not notice."""

from __future__ import annotations

import pytest

from fila.core import key_rows, quarantining, rows
from fila.core.command import (
    Ack,
    Command,
    Consume,
    CreateQueue,
    DeleteQueue,
    Lease,
    Nack,
    PauseQueue,
    SetConfig,
)
from fila.core.reader import StoreDamagedError
from fila.core.rejection import STORAGE_ERROR, Rejection
from fila.core.row_batch import DELETE, PUT, RowBatch
from fila.core.settings import Settings
from fila.core.verdict import RETRY_NOW
from tests.core.old_groups import in_two_groups
from tests.core.turn import DEAD_LETTER, SECOND, Turns

PAGES = Settings(window_messages=4, page_messages=4)


def two_queues(settings: Settings | None = None) -> Turns:
    """`bad` will be damaged, `good` must not notice: they share a bucket."""
    turns = Turns(settings)
    turns.limit("t", 1_000, 1_000)
    for name in ("bad", "good"):
        turns.create(name, visibility_ms=60_000)
        turns.enqueue(name, b"a", count=12, throttle=(b"t",))
        turns.enqueue(name, b"b", count=3, delay_ms=5_000)
        ids = turns.consume(name, prefetch=4).ids()
        turns.nack(name, ids[:1], DEAD_LETTER)
        turns.turn(Lease(name, "s/0", 1, 2, 1 << 20, 60_000, 0, False))
        turns.leave(name)
    return turns


def of_queue(turns: Turns, family: int, prefix: bytes = b"", queue: str = "bad") -> list[bytes]:
    start = prefix + rows.queue_prefix(turns.queue(queue).number)
    return [key for key, _ in turns.rows(family, start)]


def contents(turns: Turns) -> list[dict[bytes, bytes]]:
    return [dict(turns.rows(family)) for family in range(len(rows.FAMILIES))]


def refusal(reply: object) -> Rejection:
    assert isinstance(reply, Rejection), reply
    assert reply.code == STORAGE_ERROR
    return reply


ROWS = [
    (rows.STATE, rows.LANE_PREFIX),
    (rows.STATE, rows.OPEN_BATCH_PREFIX),
    (rows.LEASES, b""),
]


@pytest.mark.parametrize(("family", "prefix"), ROWS)
def test_a_group_with_an_unreadable_row_is_set_apart_and_the_others_are_served(
    family: int, prefix: bytes
) -> None:
    turns = two_queues()
    turns.store.unreadable.add((family, of_queue(turns, family, prefix)[-1]))
    again = turns.restart()
    assert set(again.machine.view.quarantined) == {"bad", "bad.dlq"}
    assert again.machine.view.queue_names() == ["good", "good.dlq"]
    why = refusal(again.turn(Consume("bad", "c", 1, 10)).replies[0])
    assert f"cannot read {rows.FAMILIES[family]}: damaged" in why.message
    assert "--salvage" in why.message
    assert len(again.consume("good", prefetch=100).ids()) == 5


@pytest.mark.parametrize("kind", [b"l", b"g", b"o"])
def test_a_row_that_does_not_parse_sets_its_group_apart_as_well(kind: bytes) -> None:
    turns = two_queues()
    if kind == b"g":
        number = turns.queue("bad").group.number
        key = turns.rows(rows.STATE, kind + rows.queue_prefix(number))[0][0]
    else:
        key = of_queue(turns, rows.STATE, kind)[0]
    turns.store.write([RowBatch(0, 0, [(PUT | rows.STATE, key, b"\x09" + b"\0" * 80)])])
    again = turns.restart()
    assert set(again.machine.view.quarantined) == {"bad", "bad.dlq"}
    assert "version 9" in again.machine.view.quarantined["bad"].cause


def test_a_queue_whose_own_record_cannot_be_read_is_set_apart_by_its_name() -> None:
    turns = two_queues()
    turns.store.write([RowBatch(0, 0, [(PUT | rows.QUEUES, b"bad", b"\x07" + b"\0" * 40)])])
    again = turns.restart()
    assert set(again.machine.view.quarantined) == {"bad", "bad.dlq"}
    assert "version 7" in again.machine.view.quarantined["bad"].cause
    why = refusal(again.turn(DeleteQueue("bad")).replies[0])
    assert "cannot be deleted" in why.message
    assert len(again.consume("good", prefetch=100).ids()) == 5


def test_a_catalogue_that_cannot_be_read_refuses_to_load_and_says_so() -> None:
    turns = two_queues()
    turns.store.write([RowBatch(0, 0, [(PUT | rows.STATE, b"bt", b"\x07" + b"\0" * 16)])])
    with pytest.raises(StoreDamagedError, match=r"catalogue .* version 7"):
        turns.restart()


@pytest.mark.parametrize(("family", "prefix"), ROWS)
def test_nothing_of_a_quarantined_group_stays_in_memory(family: int, prefix: bytes) -> None:
    """Wherever loading broke off: the shared parts are as if the queue had never been there."""
    turns = two_queues()
    turns.store.unreadable.add((family, of_queue(turns, family, prefix)[-1]))
    state = turns.restart().machine.state
    lanes = {
        lane for queue in state.queues.values() for key in queue.keys.values()
        for lane in key.lanes.values()
    }  # fmt: skip
    assert set(state.lanes_of_throttle.get(b"t", ())) <= lanes
    assert set(state.idle) <= lanes
    assert {lane for bucket in state.buckets.values() for lane in bucket.waiters} <= lanes
    assert state.windows.bytes == sum(lane.window_bytes for lane in lanes)
    assert all(queue.name in ("good", "good.dlq") for queue in state.touched)
    assert state.ended == []
    assert state.batches_leased == []


COMMANDS: list[Command] = [
    Consume("bad", "c", 1, 10),
    Ack("bad", [b"\0" * 16], 1),
    Nack("bad", [b"\0" * 16], [""], [RETRY_NOW], 1),
    PauseQueue("bad", "", ""),
    Lease("bad", "x", 9, 1, 1 << 20, 0, 0, False),
    CreateQueue("bad"),
    CreateQueue("bad.dlq"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda one: type(one).__name__)
def test_whatever_is_asked_of_a_quarantined_queue_is_refused_and_changes_no_row(
    command: Command,
) -> None:
    turns = two_queues()
    turns.store.unreadable.add((rows.LEASES, of_queue(turns, rows.LEASES)[0]))
    again = turns.restart()
    unreadable, again.store.unreadable = again.store.unreadable, set()
    before = contents(again)
    again.store.unreadable = unreadable
    refusal(again.turn(command).replies[0])
    refusal(again.turn(again.messages("bad")).replies[0])
    refusal(again.driven.redrive("bad.dlq", 0, lambda count: None))
    refusal(again.driven.purge("bad", None, "", lambda count: None))
    refusal(again.machine.view.stats_in_steps("bad", 10))
    again.store.unreadable = set()
    assert contents(again) == before


def test_a_quarantined_queue_comes_back_whole_at_a_start_where_it_loads() -> None:
    turns = two_queues()
    expected = turns.restart()
    turns.store.unreadable.add((rows.LEASES, of_queue(turns, rows.LEASES)[0]))
    apart = turns.restart()
    apart.drain("good")
    apart.turn(SetConfig("x", "1"))
    apart.store.unreadable = set()
    again = apart.restart()
    assert again.machine.view.quarantined == {}
    assert again.queue("bad").pending == expected.queue("bad").pending
    assert again.queue("bad").leased.keys() == expected.queue("bad").leased.keys()
    assert again.queue("bad").lease_batches.keys() == {"s/0"}
    assert len(again.drain("bad").ids()) == 5


def test_a_quarantined_queue_can_be_deleted_and_made_again() -> None:
    turns = two_queues()
    turns.store.unreadable.add((rows.LEASES, of_queue(turns, rows.LEASES)[0]))
    again = turns.restart()
    numbers = [one.number for one in again.machine.view.quarantined.values()]
    assert again.delete("bad").replies == [None]
    assert again.machine.view.quarantined == {}
    again.store.unreadable = set()
    for number in numbers:
        for family in (rows.MESSAGES, rows.LEASES):
            assert again.rows(family, rows.queue_prefix(number)) == []
        for kind in (b"l", b"o", b"p", b"g", b"q"):
            assert again.rows(rows.STATE, kind + rows.queue_prefix(number)) == []
    again.create("bad")
    assert again.enqueue("bad", count=2) == again.consume("bad").ids()
    assert again.restart().machine.view.quarantined == {}


def test_its_dead_letter_queue_alone_can_be_deleted_too() -> None:
    turns = two_queues()
    turns.store.unreadable.add((rows.LEASES, of_queue(turns, rows.LEASES)[0]))
    again = turns.restart()
    assert again.delete("bad.dlq").replies == [None]
    assert set(again.machine.view.quarantined) == {"bad"}
    again.store.unreadable = set()
    whole = again.restart()
    assert whole.machine.view.quarantined == {}
    assert whole.queue("bad").pending == turns.queue("bad").pending


def test_a_parent_in_another_group_is_set_apart_with_its_dead_letter_queue() -> None:
    """As an older Fila stored them; a message could be lost on its way otherwise."""
    turns = in_two_groups()
    lane = of_queue(turns, rows.STATE, rows.LANE_PREFIX, "x.dlq")[0]
    turns.store.unreadable.add((rows.STATE, lane))
    again = turns.restart()
    assert set(again.machine.view.quarantined) == {"x", "x.dlq"}
    assert again.machine.view.quarantined["x"].cause == 'queue "x.dlq" is quarantined'


# --- while the broker runs


def test_a_page_that_cannot_be_read_ends_the_queue_but_not_the_turn() -> None:
    turns = two_queues(PAGES)
    outcome = turns.consume("good", "g", prefetch=100)
    last = of_queue(turns, rows.MESSAGES)[-4]  # behind the first page of key a
    turns.store.unreadable.add((rows.MESSAGES, last))
    outcome = turns.turn(Consume("bad", "c", 1, 100), turns.messages("good"))
    assert outcome.replies == [None, None]
    delivered = [one for one in outcome.deliveries if one.consumer.queue.name == "bad"]
    assert sum(len(one.entries) for one in delivered) > 0
    (ended,) = outcome.ended
    assert ended.consumer.id == "c"
    assert "cannot read messages" in refusal(ended.why).message
    assert set(turns.machine.view.quarantined) == {"bad", "bad.dlq"}
    # What was delivered is leased on the disk, as ever.
    turns.store.unreadable = set()
    again = turns.restart()
    assert again.machine.view.quarantined == {}
    leased = {entry[0] for one in delivered for entry in one.entries}
    assert leased <= {found[2] for found in again.queue("bad").leased.values()}


@pytest.mark.parametrize("gone", [1, 5, 12])
def test_a_count_without_its_messages_is_noticed_and_costs_no_other_queue(gone: int) -> None:
    turns = two_queues(PAGES)
    lane = turns.queue("bad").keys[b"a"].lanes[b"t",]
    keys = [key for key, _ in turns.rows(rows.MESSAGES, lane.prefix)]
    leased = {found[2] for found in turns.queue("bad").leased.values()}
    drop = [key for key in keys if key not in leased][-gone:]
    turns.store.write([RowBatch(1, 0, [(DELETE | rows.MESSAGES, key, b"") for key in drop])])
    again = turns.restart()
    assert again.machine.view.quarantined == {}  # a start reads no message
    outcome = again.consume("bad", prefetch=100)
    assert len(outcome.ended) == 1
    assert "counts messages that the store lacks" in again.machine.view.quarantined["bad"].cause
    assert again.enqueue("good")
    later = again.restart()
    assert set(later.machine.view.quarantined) == {"bad", "bad.dlq"}, "the mark has it checked"


def test_who_waits_for_a_lease_batch_of_it_is_told() -> None:
    turns = two_queues(PAGES)
    turns.store.unreadable.add((rows.MESSAGES, of_queue(turns, rows.MESSAGES)[-4]))
    first = turns.turn(Lease("bad", "s/1", 7, 100, 1 << 20, 60_000, 5_000, False))
    assert [one.gone for one in first.batches_leased] == [None], "it has what could be read"
    turns = two_queues(PAGES)
    turns.turn(PauseQueue("bad", "", ""))
    turns.turn(Lease("bad", "s/1", 7, 100, 1 << 20, 60_000, 5_000, False))
    error = StoreDamagedError("damaged", rows.MESSAGES, of_queue(turns, rows.MESSAGES)[0])
    refusal(turns.machine.set_apart(error))
    (told,) = turns.turn().batches_leased
    assert told.request == 7
    refusal(told.gone)


def test_a_redrive_that_meets_the_damage_ends_and_the_queue_is_set_apart() -> None:
    turns = two_queues(PAGES)
    ids = turns.consume("bad", prefetch=6).ids()
    turns.nack("bad", ids, DEAD_LETTER)
    turns.leave("bad")
    again = turns.restart()
    dead = of_queue(again, rows.MESSAGES, queue="bad.dlq")
    again.store.unreadable.add((rows.MESSAGES, dead[0]))
    moved: list[int | Rejection] = []
    assert again.driven.redrive("bad.dlq", 0, moved.append) is None
    again.turn()
    assert [refusal(one).code for one in moved] == [STORAGE_ERROR]
    assert set(again.machine.view.quarantined) == {"bad", "bad.dlq"}


def test_every_redrive_of_a_queue_hears_of_the_damage_that_one_of_them_met() -> None:
    again = two_queues().restart()
    (dead,) = of_queue(again, rows.MESSAGES, queue="bad.dlq")
    again.store.unreadable.add((rows.MESSAGES, dead))
    moved: list[int | Rejection] = []
    assert again.driven.redrive("bad.dlq", 0, moved.append) is None
    assert again.driven.redrive("bad.dlq", 1, moved.append) is None
    again.turn()
    assert [refusal(answer).code for answer in moved] == [STORAGE_ERROR] * 2


def test_damage_that_is_no_single_queues_sets_nothing_apart() -> None:
    turns = two_queues()
    assert turns.machine.set_apart(StoreDamagedError("damaged", rows.STATE, b"ct")) is None
    assert turns.machine.mark_of(StoreDamagedError("damaged")) is None
    turns.turn()
    assert turns.machine.view.quarantined == {}


def test_a_queue_deleted_in_the_turn_that_found_the_damage_leaves_no_mark() -> None:
    turns = two_queues()
    key = of_queue(turns, rows.MESSAGES)[0]
    turns.machine.set_apart(StoreDamagedError("damaged", rows.MESSAGES, key))
    turns.turn(DeleteQueue("bad"))
    assert turns.machine.view.quarantined == {}
    assert turns.rows(rows.STATE, rows.QUARANTINE_PREFIX) == []


# --- marks: what the next start looks at closely


def test_a_marked_group_that_is_sound_is_served_and_the_mark_goes() -> None:
    turns = two_queues()
    key = of_queue(turns, rows.MESSAGES)[0]
    found = turns.machine.mark_of(StoreDamagedError("damaged", rows.MESSAGES, key))
    assert found is not None
    assert found[0] == "bad"
    turns.store.write([RowBatch(0, 0, [found[1]])])
    again = turns.restart()
    assert again.machine.view.quarantined == {}
    assert quarantining.marked(again.store) == {turns.queue("bad").group.number}
    again.turn()
    assert quarantining.marked(again.store) == set()


@pytest.mark.parametrize("what", ["message", "deleted", "stray", "key"])
def test_a_marked_group_is_read_row_by_row(what: str) -> None:
    turns = two_queues()
    turns.turn(turns.messages("bad"))
    key = of_queue(turns, rows.MESSAGES)[0]
    found = turns.machine.mark_of(StoreDamagedError("damaged", rows.MESSAGES, key))
    assert found is not None
    assert found[0] == "bad"
    turns.store.write([RowBatch(0, 0, [found[1]])])
    pending = of_queue(turns, rows.MESSAGES)[-1]
    if what == "message":
        turns.store.unreadable.add((rows.MESSAGES, pending))
    elif what == "deleted":
        turns.store.write([RowBatch(0, 0, [(DELETE | rows.MESSAGES, pending, b"")])])
    elif what == "stray":
        stray = rows.MESSAGE_KEY.pack(turns.queue("bad").number, 99, 1, b"x" * 16)
        row = rows.MESSAGE_HEAD.pack(2, 0, 1, 1, 1, 1, 1, 0, 0)
        turns.store.write([RowBatch(0, 0, [(PUT | rows.MESSAGES, stray, row)])])
    else:
        known = key_rows.KNOWN_KEY_PREFIX + rows.queue_prefix(turns.queue("bad").number) + b"k"
        turns.store.write([RowBatch(0, 0, [(PUT | rows.IDEMPOTENCY, known, b"\x09")])])
    again = turns.restart(after_ns=SECOND)
    assert set(again.machine.view.quarantined) == {"bad", "bad.dlq"}
    again.turn()
    again.store.unreadable = set()
    assert quarantining.marked(again.store) == {turns.queue("bad").group.number}
