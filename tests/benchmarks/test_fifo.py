"""The FIFO that fair order is compared with hands out the same work in order of arrival."""

from __future__ import annotations

import pytest
from bench.fifo import FifoLifecycle
from bench.lifecycle import ALL_IN_MEMORY, Lifecycle, NullStore

from fila.core import delivery

pytestmark = pytest.mark.skipif(
    not str(delivery.__file__).endswith(".py"), reason="the FIFO is made of the core's source"
)


def delivered(one: Lifecycle, turns: int) -> list[int]:
    found = []
    for _ in range(turns):
        one.turns(1)
        found += [int.from_bytes(id, "big") for id in one.delivered.ids()]
    return found


def test_messages_leave_in_the_order_they_came() -> None:
    fifo = FifoLifecycle(NullStore(), 30, 2_000, ALL_IN_MEMORY)
    assert delivered(fifo, 10) == list(range(1, 1_001))
    assert delivery.fill.__module__ == "fila.core.delivery"


def test_both_orders_do_the_same_work() -> None:
    fair = Lifecycle(NullStore(), 30, 2_000, ALL_IN_MEMORY)
    fifo = FifoLifecycle(NullStore(), 30, 2_000, ALL_IN_MEMORY)
    assert sorted(delivered(fair, 10)) == sorted(delivered(fifo, 10))
    counts = []
    for one in (fair, fifo):
        queue = one.machine.state.queues["q"]
        served = {key.name: key.served for key in queue.keys.values()}
        counts.append((queue.pending, len(queue.leased), queue.counters.delivered, served))
    assert counts[0] == counts[1]
