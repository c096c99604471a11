"""Settings of a queue that are changed while it works, and the versions they leave behind."""

from __future__ import annotations

import pytest

from fila.core import rows, version_rows
from fila.core.command import Ack, CreateQueue, DeleteQueue, SetConfig, UpdateQueue
from fila.core.reader import StoreDamagedError
from fila.core.rejection import (
    INVALID_CONFIG_VALUE,
    QUEUE_NOT_FOUND,
    VERSION_CONFLICT,
    Rejection,
)
from fila.core.row_batch import PUT_STATE, RowBatch
from fila.core.settings import Settings
from fila.core.version_rows import VersionRow
from fila.core.versions import NAMES, Version
from tests.core.turn import SECOND, Turns, id_of

_ALL = 1 << 62


def update(turns: Turns, queue: str = "q", **settings: str) -> object:
    (reply,) = turns.turn(UpdateQueue(queue, settings, who="ops")).replies
    return reply


def refusal(turns: Turns, command: UpdateQueue) -> Rejection:
    (reply,) = turns.turn(command).replies
    assert isinstance(reply, Rejection)
    return reply


def versions(turns: Turns, queue: str = "q") -> list[Version]:
    found = turns.machine.view.versions(queue)
    assert not isinstance(found, Rejection)
    return found


def stored_versions(turns: Turns) -> int:
    return len(turns.store.scan(rows.STATE, b"v", b"w", _ALL, _ALL))


def test_only_what_is_named_changes() -> None:
    turns = Turns()
    turns.turn(CreateQueue("q", "enqueue", "failure", 5_000, 7))
    assert update(turns, max_attempts="3", on_enqueue="better") == 2
    for again in (turns, turns.restart()):
        queue = again.queue("q")
        seen = (queue.on_enqueue, queue.on_failure, queue.visibility_ms, queue.max_attempts)
        assert seen == ("better", "failure", 5_000, 3)
        assert queue.version == 2


def test_an_empty_text_takes_a_hook_away_and_brings_a_default_back() -> None:
    turns = Turns()
    turns.turn(CreateQueue("q", "enqueue", None, 5_000, 7))
    update(turns, on_enqueue="", visibility_timeout_ms="", max_attempts="")
    queue = turns.restart().queue("q")
    assert (queue.on_enqueue, queue.visibility_ms, queue.max_attempts) == (None, 30_000, 0)


def test_what_is_the_same_already_makes_no_version_and_no_row() -> None:
    turns = Turns()
    turns.turn(CreateQueue("q", "enqueue", None, 5_000))
    assert update(turns, on_enqueue="enqueue", visibility_timeout_ms="5000") == 1
    assert stored_versions(turns) == 0


def test_limits_of_hooks_are_written_to_the_config_with_the_same_batch() -> None:
    turns = Turns()
    turns.create("q")
    outcome = turns.turn(UpdateQueue("q", {"fail_mode": "reject", "hook_timeout_ms": "20"}))
    assert outcome.replies == [2]
    config = {"lua:q:fail_mode": "reject", "lua:q:timeout_ms": "20"}
    assert turns.restart().machine.state.config == config
    update(turns, fail_mode="")
    assert turns.restart().machine.state.config == {"lua:q:timeout_ms": "20"}


def test_a_version_says_when_who_why_and_what_it_was() -> None:
    turns = Turns()
    turns.turn(CreateQueue("q", "one"))
    turns.wait(SECOND)
    turns.turn(UpdateQueue("q", {"on_enqueue": "two"}, note="faster", who="ops"))
    for again in (turns, turns.restart()):
        newest, first = versions(again)
        assert (newest.number, newest.who, newest.note) == (2, "ops", "faster")
        assert newest.at_ns == again.machine.view.now_ns
        assert newest.settings["on_enqueue"] == "two"
        assert (first.number, first.who, first.settings["on_enqueue"]) == (1, "", "one")
        assert set(first.settings) == set(NAMES)


def test_a_queue_that_was_never_changed_has_one_version_and_no_row_of_it() -> None:
    turns = Turns()
    turns.turn(CreateQueue("q", "one"))
    (only,) = versions(turns)
    assert (only.number, only.settings["on_enqueue"]) == (1, "one")
    assert stored_versions(turns) == 0


def test_an_expected_version_that_is_not_there_any_more_is_refused() -> None:
    turns = Turns()
    turns.create("q")
    assert update(turns, max_attempts="3") == 2
    why = refusal(turns, UpdateQueue("q", {"max_attempts": "4"}, expected_version=1))
    assert why.code == VERSION_CONFLICT
    assert "version 2, not 1" in why.message
    assert turns.queue("q").max_attempts == 3
    (reply,) = turns.turn(UpdateQueue("q", {"max_attempts": "4"}, expected_version=2)).replies
    assert reply == 3


def test_an_older_version_comes_back_as_a_new_one() -> None:
    turns = Turns()
    turns.turn(CreateQueue("q", "one", None, 5_000))
    update(turns, on_enqueue="two", fail_mode="reject")
    turns = turns.restart()
    (reply,) = turns.turn(UpdateQueue("q", {"max_attempts": "9"}, from_version=1)).replies
    assert reply == 3
    queue = turns.queue("q")
    assert (queue.on_enqueue, queue.max_attempts) == ("one", 9)
    assert turns.machine.state.config == {}
    assert [one.number for one in versions(turns)] == [3, 2, 1]


def test_a_version_made_in_the_same_turn_can_be_brought_back() -> None:
    turns = Turns()
    turns.turn(CreateQueue("q", "one"))
    outcome = turns.turn(
        UpdateQueue("q", {"on_enqueue": "two"}),
        UpdateQueue("q", {"on_enqueue": "three"}),
        UpdateQueue("q", {}, from_version=2),
    )
    assert outcome.replies == [2, 3, 4]
    assert turns.restart().queue("q").on_enqueue == "two"


def test_so_many_versions_are_kept_and_no_more() -> None:
    turns = Turns(Settings(versions_kept=3))
    turns.create("q")
    for attempts in range(1, 9):
        update(turns, max_attempts=str(attempts))
        assert stored_versions(turns) == min(attempts + 1, 3)
    assert [one.number for one in versions(turns.restart())] == [9, 8, 7]
    why = refusal(turns, UpdateQueue("q", {}, from_version=6))
    assert why.code == INVALID_CONFIG_VALUE
    assert "7 to 9 are" in why.message


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"colour": "red"}, "there is none of this name"),
        ({"visibility_timeout_ms": "999"}, "too short"),
        ({"visibility_timeout_ms": "x"}, "no whole number"),
        ({"visibility_timeout_ms": "９"}, "no whole number"),
        ({"max_attempts": "-1"}, "no whole number"),
        ({"max_attempts": "1000001"}, "too many"),
        ({"fail_mode": "x" * 2_000}, "longer than"),
        ({"cost": "bytes"}, 'was made with "messages" and keeps it'),
        ({"cost": "each"}, 'was made with "messages" and keeps it'),
    ],
)
def test_a_value_that_cannot_be_changes_nothing(settings: dict[str, str], says: str) -> None:
    turns = Turns()
    turns.create("q")
    why = refusal(turns, UpdateQueue("q", {"on_enqueue": "kept out", **settings}))
    assert why.code == INVALID_CONFIG_VALUE
    assert says in why.message
    assert (turns.queue("q").on_enqueue, turns.queue("q").version) == (None, 1)


def test_a_note_has_a_limit() -> None:
    turns = Turns(Settings(note_bytes_max=10))
    turns.create("q")
    why = refusal(turns, UpdateQueue("q", {"max_attempts": "1"}, note="é" * 6))
    assert "note" in why.message
    assert "10 bytes" in why.message


def test_a_queue_that_is_not_there_is_refused() -> None:
    turns = Turns()
    assert refusal(turns, UpdateQueue("nowhere", {})).code == QUEUE_NOT_FOUND


def test_a_dead_letter_queue_has_no_limit_of_attempts_but_a_timeout() -> None:
    turns = Turns()
    turns.create("q")
    assert refusal(turns, UpdateQueue("q.dlq", {"max_attempts": "3"})).code == INVALID_CONFIG_VALUE
    assert update(turns, "q.dlq", visibility_timeout_ms="9000") == 2
    assert turns.queue("q").visibility_ms == 30_000


def test_the_versions_go_with_their_queue_even_if_both_happen_in_one_turn() -> None:
    turns = Turns()
    turns.create("q")
    turns.create("other")
    update(turns, max_attempts="3")
    turns.enqueue("q")
    turns.turn(UpdateQueue("q", {"max_attempts": "4"}), DeleteQueue("q"))
    assert stored_versions(turns) == 0
    turns.turn(SetConfig("a", "b"), UpdateQueue("other", {"max_attempts": "1"}))
    assert stored_versions(turns) == 2


def test_a_lease_keeps_its_time_and_the_next_has_the_new_one() -> None:
    turns = Turns()
    turns.turn(CreateQueue("q", None, None, 20_000))
    turns.consume("q", "c")
    turns.enqueue("q")
    update(turns, visibility_timeout_ms="2000")
    turns.enqueue("q")
    ends = {id: held[0].expires_ns for id, held in turns.queue("q").leased.items()}
    assert ends[id_of(1)] - ends[id_of(2)] == 18 * SECOND
    turns.wait(3 * SECOND)
    assert turns.queue("q").counters.expired == 1
    turns.turn(Ack("q", [id_of(1)]))
    assert turns.queue("q").counters.acked == 1


def test_the_journal_is_told() -> None:
    turns = Turns(journal=True)
    turns.create("q")
    outcome = turns.turn(UpdateQueue("q", {"max_attempts": "2", "on_failure": "x"}))
    (event,) = outcome.events
    assert (event.event, event.queue) == ("queue_updated", "q")
    assert event.reason == "version=2 changed=on_failure,max_attempts"


def test_a_version_row_is_what_was_written() -> None:
    row = VersionRow(7, "ops", "é", {"on_enqueue": "x" * 70_000, "max_attempts": "3"})
    assert version_rows.read_version(version_rows.version_row(row)) == row


def test_a_version_that_cannot_be_read_says_whose_it_is() -> None:
    turns = Turns()
    turns.create("q")
    update(turns, max_attempts="3")
    number = turns.queue("q").number
    turns.store.write([RowBatch(1, 1, [(PUT_STATE, version_rows.version_key(number, 1), b"\x09")])])
    with pytest.raises(StoreDamagedError) as damage:
        turns.machine.view.version("q", 1)
    assert rows.owner_of(damage.value.family, damage.value.key) == number
