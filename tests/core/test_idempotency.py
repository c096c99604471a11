from __future__ import annotations

from fila.core import key_rows, rows
from fila.core.command import DeleteQueue, EnqueueKeyed
from fila.core.settings import Settings
from fila.core.verdict import DEFAULT_ASSIGNMENT
from tests.core.turn import SECOND, Turns, id_of


def keyed(turns: Turns, *keys: bytes) -> EnqueueKeyed:
    count = len(keys)
    ids = [id_of(turns.next_id + at) for at in range(count)]
    turns.next_id += count
    return EnqueueKeyed(
        "q", ids, [b"body"] * count, [DEFAULT_ASSIGNMENT] * count, [0] * count, list(keys)
    )


def put(turns: Turns, *keys: bytes) -> list[tuple[int, bool]]:
    (reply,) = turns.turn(keyed(turns, *keys)).replies
    assert isinstance(reply, list)
    return [(int.from_bytes(id, "big"), duplicate) for id, duplicate in reply]  # type: ignore[misc]


def started(settings: Settings | None = None) -> Turns:
    turns = Turns(settings)
    turns.create("q")
    return turns


def test_a_known_key_stores_nothing_and_gives_the_first_id() -> None:
    turns = started()
    assert put(turns, b"a", b"", b"b") == [(1, False), (2, False), (3, False)]
    assert put(turns, b"b", b"", b"c") == [(3, True), (5, False), (6, False)]
    assert turns.queue("q").pending == 5


def test_a_key_twice_in_one_turn_is_one_message() -> None:
    turns = started()
    first = keyed(turns, b"a", b"a")
    second = keyed(turns, b"a")
    replies = turns.turn(first, second).replies
    assert replies == [[(id_of(1), False), (id_of(1), True)], [(id_of(1), True)]]
    assert turns.queue("q").pending == 1


def test_keys_survive_a_restart_and_their_message() -> None:
    turns = started()
    put(turns, b"a")
    turns.drain("q")
    turns = turns.restart()
    assert put(turns, b"a", b"b") == [(1, True), (3, False)]
    turns = turns.restart()
    assert put(turns, b"b") == [(3, True)]


def test_the_window_is_bounded_by_count() -> None:
    turns = started(Settings(idempotency_keys_max=3))
    put(turns, b"a", b"b", b"c", b"d")
    assert put(turns, b"b") == [(2, True)]
    assert put(turns, b"a") == [(6, False)]  # was forgotten; now b is the oldest to go
    assert put(turns, b"c") == [(3, True)]
    assert put(turns, b"b") == [(8, False)]
    for number in range(200):
        put(turns, b"%d" % number)
    assert len(turns.rows(rows.IDEMPOTENCY, key_rows.KNOWN_KEY_PREFIX)) <= 5
    assert len(turns.rows(rows.IDEMPOTENCY, key_rows.KEY_ORDER_PREFIX)) <= 5


def test_the_window_is_bounded_by_age() -> None:
    turns = started(Settings(idempotency_ms=10_000))
    put(turns, b"a")
    turns.wait(5 * SECOND)
    put(turns, b"b")
    turns.wait(5 * SECOND - 1)
    assert put(turns, b"a") == [(1, True)]
    turns.wait(1)
    assert put(turns, b"a") == [(4, False)]
    turns = turns.restart(10 * SECOND)
    put(turns, b"c")
    put(turns, b"d")
    keys = {key[5:] for key, _ in turns.rows(rows.IDEMPOTENCY, key_rows.KNOWN_KEY_PREFIX)}
    assert keys == {b"c", b"d"}


def test_queues_do_not_share_keys_and_a_deleted_one_forgets_them() -> None:
    turns = started()
    put(turns, b"a")
    turns.turn(DeleteQueue("q"))
    assert turns.rows(rows.IDEMPOTENCY) == []
    turns.create("q")
    assert put(turns, b"a") == [(2, False)]


def test_a_queue_that_sees_no_key_has_no_row() -> None:
    turns = started()
    put(turns, b"", b"")
    assert turns.rows(rows.IDEMPOTENCY) == []


def test_how_many_keys_a_queue_remembers_can_be_seen() -> None:
    turns = started(Settings(idempotency_keys_max=3))
    figures = turns.machine.view.queue("q")
    assert figures is not None and figures.known_keys == 0
    for number in range(20):
        put(turns, b"%d" % number)
    figures = turns.machine.view.queue("q")
    assert figures is not None and 3 <= figures.known_keys <= 4
