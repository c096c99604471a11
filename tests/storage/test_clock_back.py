"""A store whose clock was once ten years ahead, and the way back."""

from __future__ import annotations

from pathlib import Path

import pytest

from fila.core import rows
from fila.core.command import PauseKey, UpdateQueue
from fila.core.load import load
from fila.core.settings import Settings
from fila.storage.clock_back import ahead_ns, set_back
from fila.storage.contract import StoreError
from fila.storage.memory import MemoryStore
from fila.storage.verify import verify
from tests.core.turn import SECOND, START, Turns

TEN_YEARS = 10 * 365 * 86_400 * SECOND


def quiet(family: str, count: int) -> None:
    pass


def once_ahead() -> Turns:
    """Messages of before the jump and after it, leases, delays, a bucket, a pause."""
    turns = Turns()
    turns.create("orders")
    turns.limit("provider", 1, 5)
    turns.enqueue("orders", b"acme", 3)
    turns.enqueue("orders", b"slow", 2, throttle=(b"provider",))
    turns.turn(PauseKey("orders", b"held", "upgrade", "ops"))
    turns = turns.restart(after_ns=TEN_YEARS)
    turns.enqueue("orders", b"acme", 3)
    turns.enqueue("orders", b"late", 1, delay_ms=30_000)
    turns.consume("orders", prefetch=2)
    return turns


def set_right(turns: Turns, wall_ns: int) -> Turns:
    into = MemoryStore()
    set_back(turns.store, into, wall_ns, quiet)
    return Turns(store=into, now=wall_ns)


def test_everything_is_delivered_in_the_same_order_at_the_right_time() -> None:
    ahead = once_ahead()
    wall_ns = START + 100 * SECOND  # the operator needed a while
    assert ahead_ns(ahead.store, wall_ns) > TEN_YEARS - 200 * SECOND
    right = set_right(ahead, wall_ns)
    assert verify(right.store).findings == []
    assert ahead_ns(right.store, wall_ns) == 0
    assert right.machine.state.now == wall_ns
    leased = right.queue("orders").leased
    assert len(leased) == 2
    # The same leases run out after the same time; nothing waits for the year 2033.
    expected = list(ahead.queue("orders").leased)
    assert list(leased) == expected
    outcome = right.drain("orders", consumer="d", connection=2)
    got = outcome.ids()
    for _ in range(20):
        later = right.wait(2 * SECOND).ids()
        while later:
            got += later
            later = right.ack("orders", later, 2).ids()
    rest = ahead.drain("orders", consumer="d", connection=2)
    assert [id for id in got if id in rest.ids()] == rest.ids()
    assert len(set(got)) == 9  # the delayed one and the two whose lease ran out, too


def test_waits_are_not_ten_years() -> None:
    right = set_right(once_ahead(), START + 100 * SECOND)
    outcome = right.consume("orders", "d", prefetch=50, connection=2)
    waits = [sum(wait) for delivery in outcome.deliveries for wait in delivery.waits]
    assert waits
    assert all(0 <= wait <= 200 * SECOND for wait in waits)


def test_times_of_before_the_jump_stay_as_they_are() -> None:
    right = set_right(once_ahead(), START + 100 * SECOND)
    found = right.rows(rows.MESSAGES)
    enqueued = [rows.MESSAGE_HEAD.unpack_from(value)[3] for _, value in found]
    assert len([ns for ns in enqueued if ns == START]) == 5
    assert all(START <= ns <= START + 100 * SECOND for ns in enqueued)


def test_a_store_that_is_right_is_left_alone() -> None:
    turns = Turns()
    turns.create("orders")
    with pytest.raises(StoreError, match=r"0\.0 s ahead"):
        set_back(turns.store, MemoryStore(), START, quiet)


def test_the_command_writes_a_sound_directory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from fila.server.maintenance import run_set_clock_back
    from fila.storage.rocks import RocksStore

    store = RocksStore(tmp_path / "data")
    turns = Turns(store=store, now=START + TEN_YEARS)  # type: ignore[arg-type]
    turns.create("orders")
    turns.enqueue("orders", b"acme", 10)
    store.close()
    into = tmp_path / "new"
    assert run_set_clock_back(str(tmp_path / "data"), str(into), START) == 0
    assert "set back by 315,360,000 s" in capsys.readouterr().out
    again = RocksStore(into)
    machine = load(again, Settings(), START)
    assert machine.state.now == START
    assert machine.state.queues["orders"].pending == 10
    again.close()


def test_what_expires_does_so_after_the_same_time_and_bytes_are_counted_on() -> None:
    turns = Turns()
    turns.create("orders")
    turns = turns.restart(after_ns=TEN_YEARS)
    limits = {"message_ttl_ms": "60000", "max_bytes": "1000"}
    turns.turn(UpdateQueue("orders", limits))
    turns.wait(1)
    turns.enqueue("orders", b"acme", 3)
    weighed = turns.queue("orders").weighed
    assert verify(turns.store).findings == []
    right = set_right(turns, START + 100 * SECOND)
    assert verify(right.store).findings == []
    assert right.queue("orders").weighed == weighed > 0
    right.wait(59 * SECOND)
    assert right.queue("orders").pending == 3
    right.wait(2 * SECOND)
    assert (right.queue("orders").pending, right.queue("orders").weighed) == (0, 0)
    assert right.queue("orders.dlq").pending == 3
