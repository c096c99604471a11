"""Messages whose time to live runs out."""

from __future__ import annotations

from fila.core import rows
from fila.core.command import (
    Ack,
    Consume,
    DeleteQueue,
    Enqueue,
    Nack,
    Purge,
    Redrive,
    Release,
    UpdateQueue,
)
from fila.core.effect import EVENT_DEAD_LETTERED, EVENT_MOVED, EVENT_PURGED
from fila.core.entry import message_id
from fila.core.rejection import INVALID_CONFIG_VALUE, OK, Rejection
from fila.core.settings import Settings
from fila.core.verdict import Assignment
from fila.wire.message import decode_headers
from tests.core.test_ttl import body_of
from tests.core.turn import MS, SECOND, START, Outcome, Turns, id_of

_ALL = 1 << 62


def queue_with(turns: Turns, **settings: str) -> None:
    turns.create("q")
    if settings:
        (reply,) = turns.turn(UpdateQueue("q", settings)).replies
        assert reply == 2


def send(turns: Turns, *ttls_ms: int, key: bytes = b"k", first: int = 1) -> Outcome:
    """One message after the other, each with its time to live; 0: none."""
    bodies = [body_of([("fila.ttl_ms", str(ms))] if ms else []) for ms in ttls_ms]
    ids = [id_of(first + at) for at in range(len(bodies))]
    return turns.turn(Enqueue("q", ids, bodies, [Assignment(key, 1, ())] * len(ids)))


def aging_rows_of(turns: Turns) -> int:
    return len(turns.store.scan(rows.STATE, b"t", b"u", _ALL, _ALL))


def consume(turns: Turns, queue: str = "q", prefetch: int = 100) -> Outcome:
    return turns.turn(Consume(queue, f"c-{queue}", 1, prefetch))


def test_a_message_goes_at_its_time_and_not_before() -> None:
    turns = Turns()
    queue_with(turns)
    send(turns, 50)
    assert turns.machine.next_deadline() == START + 50 * MS
    turns.wait(50 * MS - 1)
    assert turns.queue("q").pending == 1
    turns.wait(1)
    assert turns.queue("q").pending == 0
    assert turns.queue("q.dlq").pending == 1
    assert turns.queue("q").counters.aged_out == 1
    assert aging_rows_of(turns) == 0


def test_the_dead_letter_says_that_it_expired_and_a_redrive_gives_back_what_was_sent() -> None:
    turns = Turns()
    queue_with(turns)
    send(turns, 50)
    turns.wait(SECOND)
    found = consume(turns, "q.dlq").entries()
    headers = decode_headers(found[0][8])
    assert headers["fila.dead.reason"] == "expired"
    assert headers["fila.dead.queue"] == "q"
    assert "fila.expires_at_ms" not in headers
    turns.turn(Release("q.dlq", [id_of(1)]))
    turns.turn()
    turns = turns.restart()
    turns.wait(60 * SECOND)
    turns.turn(Redrive("q.dlq", [id_of(1)], [Assignment(b"k", 1, ())]))
    (entry,) = consume(turns).entries()
    assert decode_headers(entry[8]) == {
        "fila.expires_at_ms": str(turns.now // MS + 50),
        "fila.ttl_ms": "50",
    }


def test_a_queue_may_drop_what_expires() -> None:
    turns = Turns(journal=True)
    queue_with(turns, message_ttl_ms="80", expired="drop")
    send(turns, 0, 50)
    outcome = turns.wait(SECOND)
    assert (turns.queue("q").pending, turns.queue("q.dlq").pending) == (0, 0)
    assert turns.queue("q").counters.aged_out == 2
    kinds = [(one.event, one.key_pending, one.reason) for one in outcome.events]
    assert kinds == [(EVENT_PURGED, 1, "messages=1"), (EVENT_PURGED, 0, "messages=1")]
    assert not turns.rows(rows.MESSAGES)


def test_the_journal_tells_of_a_dead_letter_and_what_its_key_has_left() -> None:
    turns = Turns(journal=True)
    queue_with(turns)
    send(turns, 50, 0)
    outcome = turns.wait(SECOND)
    kinds = [(one.event, one.queue, one.key_pending) for one in outcome.events]
    assert kinds == [(EVENT_MOVED, "q", 1), (EVENT_DEAD_LETTERED, "q.dlq", 1)]


def test_one_in_the_middle_goes_and_the_order_of_the_others_stays() -> None:
    for settings in (
        Settings(),
        Settings(window_messages=2, page_messages=2, window_bytes_total=1),
    ):
        turns = Turns(settings)
        queue_with(turns)
        send(turns, 0, 0, 50, 0, 70, 0)
        turns.wait(60 * MS)
        assert turns.queue("q").pending == 5
        again = turns.restart()
        again.wait(20 * MS)
        assert again.queue("q").pending == 4
        assert consume(again).ids() == [id_of(one) for one in (1, 2, 4, 6)]


def test_what_is_leased_does_not_expire_and_what_comes_back_late_does() -> None:
    for again in (False, True):
        turns = Turns()
        queue_with(turns)
        consume(turns, prefetch=2)
        send(turns, 50, 50)
        assert aging_rows_of(turns) == 0
        if again:
            turns = turns.restart()
        turns.wait(SECOND)
        assert turns.turn(Ack("q", [id_of(1)])).replies == [[OK]]
        outcome = turns.turn(turns.driven.nack("q", [id_of(2)], ["no"], 0))
        assert not outcome.ids()
        turns.turn()
        assert (turns.queue("q").pending, turns.queue("q.dlq").pending) == (0, 1)
        assert aging_rows_of(turns) == 0


def test_so_many_expire_with_one_turn_and_none_is_delivered() -> None:
    turns = Turns(Settings(age_messages=10))
    queue_with(turns, expired="drop")
    send(turns, *[50] * 35)
    send(turns, *[0] * 3, key=b"other", first=100)
    turns.now += SECOND
    first, _ = turns.one_pass(Consume("q", "c", 1, 100))
    assert turns.queue("q").pending == 25, "what has no time to live went, and ten that had"
    assert sorted(first.ids()) == [id_of(100), id_of(101), id_of(102)]
    for left in (15, 5, 0):
        outcome, _ = turns.one_pass()
        assert not outcome.ids()
        assert turns.queue("q").pending == left
    assert turns.driven.due_ns() > turns.now, "nothing polls"


def test_a_restart_finds_what_expired_meanwhile() -> None:
    turns = Turns()
    queue_with(turns)
    send(turns, 50, 5_000)
    turns = turns.restart(SECOND)
    turns.turn()
    assert turns.queue("q").pending == 1
    assert turns.machine.next_deadline() == START + 5 * SECOND


def test_a_purge_leaves_rows_that_hurt_nobody() -> None:
    turns = Turns()
    queue_with(turns)
    send(turns, 50)
    turns.turn(Purge("q", [(b"k", ())], True, "ops", 100))
    send(turns, 0, first=7)
    turns.wait(SECOND)
    assert (turns.queue("q").pending, turns.queue("q").counters.aged_out) == (1, 0)
    assert aging_rows_of(turns) == 0


def test_a_queue_that_is_deleted_takes_its_rows_along() -> None:
    turns = Turns()
    queue_with(turns)
    send(turns, 50)
    turns.turn(DeleteQueue("q"))
    assert aging_rows_of(turns) == 0
    turns.wait(SECOND)
    turns.create("q")
    turns.wait(SECOND)


def test_a_dead_letter_queue_keeps_letters_as_long_as_it_is_told() -> None:
    turns = Turns()
    queue_with(turns)
    turns.turn(UpdateQueue("q.dlq", {"message_ttl_ms": "300"}))
    send(turns, 50)
    turns.wait(100 * MS)
    assert turns.queue("q.dlq").pending == 1
    turns.wait(300 * MS)
    assert turns.queue("q.dlq").pending == 0
    assert turns.machine.view.settings_of("q.dlq")["expired"] == "drop"


def test_a_time_to_live_has_a_limit() -> None:
    turns = Turns()
    turns.create("q")
    for settings, told in (
        ({"message_ttl_ms": "315360000001"}, "the longest is 315360000000 ms"),
        ({"message_ttl_ms": "-1"}, "no whole number"),
        ({"expired": "burn"}, '"burn" is none'),
    ):
        (reply,) = turns.turn(UpdateQueue("q", settings)).replies
        assert isinstance(reply, Rejection)
        assert reply.code == INVALID_CONFIG_VALUE
        assert told in reply.message


def test_a_queue_without_such_messages_has_nothing_of_it() -> None:
    turns = Turns()
    queue_with(turns)
    send(turns, 0, 0)
    turns.turn(Nack("q", [], [], []))
    assert turns.queue("q").aging is None
    assert aging_rows_of(turns) == 0


def in_line_behind_expired_ones(gate: str, value: str, first: int) -> Turns:
    """Messages of one key stand at a gate and expire, many more than go in a turn; one of another
    key is behind them in line. The first one is leased."""
    turns = Turns(Settings(age_messages=1))
    queue_with(turns)
    assert turns.set(gate, value).replies == [None]
    bodies = [body_of([])] + [body_of([("fila.ttl_ms", "50")])] * 5
    ids = [id_of(at) for at in range(first, first + len(bodies))]
    assignments = [Assignment(b"a", 1, (b"t",))] * len(ids)
    turns.turn(Enqueue("q", ids, bodies, assignments))
    assert [message_id(entry) for entry in consume(turns).entries()] == ids[:1]
    turns.enqueue("q", b"b", throttle=(b"t",))
    turns.now += 50 * MS
    return turns


def test_an_expired_message_keeps_no_slot_from_who_is_behind_it_in_line() -> None:
    turns = in_line_behind_expired_ones("throttle:t:max_in_flight", "1", first=101)
    assert turns.ack("q", [id_of(101)]).keys() == [b"b"]
    assert turns.queue("q").keys[b"a"].pending == 4  # they go with the turns that come


def test_an_expired_message_keeps_no_token_from_who_is_behind_it_in_line() -> None:
    turns = in_line_behind_expired_ones("throttle.t", "20,1", first=101)
    assert turns.turn().keys() == [b"b"]
    assert turns.queue("q").keys[b"a"].pending == 4


def test_damage_behind_a_head_that_goes_leaves_counts_and_rows_in_step() -> None:
    """What follows the head went in the same turn: the first row that stays is pages away."""
    settings = Settings(window_messages=4, page_messages=4, head_messages=1)
    turns = Turns(settings)
    queue_with(turns)
    send(turns, 50, 40, 40, 40, 40, 0, 0)
    turns = turns.restart()
    last = turns.rows(rows.MESSAGES)[-2][0]
    turns.store.unreadable = {(rows.MESSAGES, last)}
    turns.now += 60 * MS
    turns.turn()
    assert set(turns.machine.view.quarantined) == {"q", "q.dlq"}
    turns.store.unreadable = set()
    again = turns.restart()
    assert again.machine.view.quarantined == {}, "nothing is lacking"
    assert again.queue("q").pending == 2
    assert again.queue("q.dlq").pending == 5
    assert aging_rows_of(again) == 0
