"""A plain FIFO in the place of the core's fair order: the same turn, the same delivery pass,
the same lanes, leases, waits and counts. Only the choice of what goes next differs, so that the
difference to the core is the price of fair order and of nothing else.

It is `fila.core.delivery.fill` itself with the lines of the ring exchanged (`SWAPS`). Whatever else
`fill` does or comes to do, both do; and when one of these lines changes, this module says so
instead of measuring something else. The FIFO is as cheap as one can be: the order of arrival is one
deque of lanes, extended by lists that were made beforehand.
"""

from __future__ import annotations
import __future__

import functools
import inspect
from collections import deque
from collections.abc import Callable
from typing import Any

from bench.lifecycle import Lifecycle
from fila.core import delivery
from fila.core.command import Enqueue
from fila.core.lane import Lane
from fila.core.queue import Queue
from fila.core.settings import Settings
from fila.storage.contract import Store

# What stands in `fill`, and what a FIFO needs in its place: the ring, visits, deficits and the
# clock of what a key is due are the price of fair order.
SWAPS = (
    (
        """        key = ring.head
        if key is None:
            break
        lane = key.lane
        assert lane is not None
        deficit = key.deficit
        if by_bytes:
            if deficit <= 0:
                if not begin_visit(state, lane):
                    passed_over = 0
                    if state.pass_left <= 0:
                        break
                    continue
                deficit = key.deficit
            run = want
            bytes_before = bytes_left
            bytes_keep = bytes_left - deficit if deficit < bytes_left else 0
        else:
            if deficit <= 0:
                key.granted = deficit = key.weight * quantum
            run = deficit if deficit < want else want
""",
        """        if not arrived:
            break
        lane = arrived.popleft()
        key = lane.key
        run = 1  # the next message stands in another lane, for all a FIFO knows
""",
    ),
    ("    ring = queue.ring\n", "    ring = queue.ring\n    arrived = ARRIVED[queue]\n"),
    ("    by_bytes = ring.by_bytes\n", ""),
    (
        "    bytes_before = bytes_keep = 0"
        "  # of bytes_left: when a visit begins, and when it is over\n",
        "",
    ),
    ("    visits = 0\n", ""),
    ("    ring.visits += visits\n", ""),
    (
        "            if taken >= run or bytes_left <= bytes_keep:\n",
        "            if taken >= run or bytes_left <= 0:\n",
    ),
    ("                key.deficit = deficit\n", ""),
    (
        """        if lane.caps or capped:
            key.deficit = deficit
""",
        "        if lane.caps or capped:\n",
    ),
    (
        """                park(state, lane, short)
                passed_over = 0
                state.pass_left -= 1
                if state.pass_left <= 0:
                    if deficit == key.granted:
                        key.deficit = key.carried  # a visit begins with its first message
                    break
""",
        """                park(state, lane, short)
                passed_over = 0
                state.pass_left -= 1
                if state.pass_left <= 0:
                    break
""",
    ),
    (
        """                    if deficit == key.granted:
                        key.deficit = key.carried  # a visit begins with its first message
""",
        "",
    ),
    (
        """        if by_bytes:
            deficit -= charge(ring, key, bytes_before - bytes_left)
        else:
            ring.clock += taken / ring.weight
            deficit -= taken
        key.deficit = deficit
        visits += 1
""",
        "",
    ),
    (
        """            if deficit <= 0:
                leave_line(lane)  # its visit is over: next time it waits at the end
""",
        "            leave_line(lane)\n",
    ),
    (
        """            leased_more(lane, taken)
            if deficit <= 0:
                leave_line(lane)
""",
        """            leased_more(lane, taken)
            leave_line(lane)
""",
    ),
    (
        "            ring.head = key.after  # a step of the next turn takes it away\n",
        "            arrived.append(lane)\n",
    ),
    (
        """                key.reorder(active_ns)
            if deficit <= 0:
                ring.head = key.after
""",
        "                key.reorder(active_ns)\n",
    ),
    (
        """            if deficit <= 0 and key.others:
                ring.head = key.after  # the visit ended with this lane's last message
""",
        "",
    ),
)

ARRIVED: dict[Queue, deque[Lane]] = {}  # by queue: the lane of each pending message, oldest first


class FifoLifecycle(Lifecycle):
    def __init__(
        self, store: Store, keys: int, backlog: int, settings: Settings | None = None
    ) -> None:
        self._order: deque[Lane] = deque()
        self._prepared: dict[int, list[Lane]] = {}
        super().__init__(store, keys, backlog, settings)
        ARRIVED[self.machine.state.queues["q"]] = self._order

    def enqueue(self, count: int) -> Enqueue:
        command = super().enqueue(count)
        self._prepared[id(command)] = [self.lane_of[one[0]] for one in command.assignments]
        return command

    def arrived(self, command: Enqueue) -> None:
        self._order.extend(self._prepared.pop(id(command)))

    def turns(self, count: int) -> int:
        fair = delivery.fill
        delivery.fill = _in_order_of_arrival()
        try:
            return super().turns(count)
        finally:
            delivery.fill = fair


@functools.cache
def _in_order_of_arrival() -> Callable[..., int]:
    """`fill` with the ring's lines exchanged; in the core's name, so that its instructions count
    as the core's."""
    source = inspect.getsource(delivery.fill)
    for old, new in SWAPS:
        found = source.count(old)
        assert found == 1, (
            f"bench/fifo.py: delivery.fill holds these lines {found} times, not once; write what a "
            f"FIFO does in their place anew:\n{old}"
        )
        source = source.replace(old, new)
    assert "deficit" not in source and "ring.head" not in source, "fill has more of fair order"
    flags = __future__.annotations.compiler_flag
    code = compile(source, str(delivery.__file__), "exec", flags, dont_inherit=True)
    namespace: dict[str, Any] = {**vars(delivery), "ARRIVED": ARRIVED}
    exec(code, namespace)
    made: Callable[..., int] = namespace["fill"]
    return made
