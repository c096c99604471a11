"""A page of a queue's fairness keys, sorted by the broker: ten thousand keys, fifty rows.

Sorting looks at every key, so it is done in slices with the loop's other work in between, and once
per beat of the pulse for all who ask for the same order. Only the rows of the page are made.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from typing import Final, NamedTuple

from fila.core.fairness import FairnessKey
from fila.core.lane import PARKED
from fila.edges.http.message import HttpError, Request
from fila.telemetry.pulse import Pulse, QueuePulse

LIMIT_MAX: Final = 200
_SLICE_KEYS: Final = 500
_HEAP_MAX: Final = 1_000  # beyond so many rows a full sort is cheaper
_Measured = Callable[[FairnessKey, float], float]


class Order(NamedTuple):
    sort: str
    descending: bool
    text: str  # only keys whose names hold it; lower case
    offset: int
    limit: int


class Page(NamedTuple):
    total: int
    matched: int
    keys: list[FairnessKey]


def order_of(request: Request) -> Order:
    sort = request.one("sort", "pending")
    if sort not in SORTS:
        raise HttpError(400, "BadRequest", f"sort is one of {', '.join(SORTS)}")
    way = request.one("order", "asc" if sort == "name" else "desc")
    if way not in ("asc", "desc"):
        raise HttpError(400, "BadRequest", "order is asc or desc")
    return Order(
        sort,
        way == "desc",
        request.one("q").lower()[:200],
        request.number("offset", 0, 0, 100_000_000),
        request.number("limit", 50, 1, LIMIT_MAX),
    )


class Pages:
    def __init__(self, pulse: Pulse) -> None:
        self._pulse = pulse
        self._tick = -1
        self._made: dict[tuple[str, Order], asyncio.Task[Page]] = {}

    async def page(self, name: str, one: QueuePulse, order: Order) -> Page:
        if self._tick != self._pulse.tick:
            self._tick = self._pulse.tick
            self._made.clear()
        found = self._made.get((name, order))
        if found is None:
            found = asyncio.get_running_loop().create_task(_page(one, order))
            self._made[(name, order)] = found
        return await asyncio.shield(found)  # a client that leaves takes it from nobody else


async def _page(one: QueuePulse, order: Order) -> Page:
    queue = one.queue
    clock = queue.ring.clock
    keys = list(queue.keys.values())
    measured = SORTS[order.sort]
    text = order.text
    found: list[tuple[float, bytes, FairnessKey]] = []
    for start in range(0, len(keys), _SLICE_KEYS):
        part = keys[start : start + _SLICE_KEYS]
        if text:
            part = [key for key in part if text in key.name.decode(errors="replace").lower()]
        found += [(measured(key, clock), key.name, key) for key in part]
        await asyncio.sleep(0)
    end = order.offset + order.limit
    if end <= _HEAP_MAX:
        best = heapq.nlargest(end, found) if order.descending else heapq.nsmallest(end, found)
    else:
        found.sort(reverse=order.descending)
        best = found
    return Page(len(keys), len(found), [row[2] for row in best[order.offset : end]])


def in_flight(key: FairnessKey) -> int:
    return sum([lane.leased for lane in key.lanes.values()])


def throttled(key: FairnessKey) -> int:
    return sum([lane.pending for lane in key.lanes.values() if lane.state == PARKED])


def mean_wait_ns(key: FairnessKey) -> float:
    meter = key.meter
    if meter is None or not meter.delivered:
        return 0.0
    return sum(meter.reading()[1:]) / meter.delivered


def _share(key: FairnessKey) -> float:
    return key.meter.delivered - key.meter.since[0] if key.meter is not None else 0.0


def _ratio(key: FairnessKey, clock: float) -> float:
    if key.meter is None:
        return 0.0
    due = key.entitled_at(clock) - key.meter.since[1]
    return _share(key) / due if due >= 1.0 else -1.0


SORTS: Final[dict[str, _Measured]] = {
    "pending": lambda key, clock: key.pending,
    "name": lambda key, clock: 0.0,
    "share": lambda key, clock: _share(key),
    "ratio": _ratio,
    "delivered": lambda key, clock: key.meter.delivered if key.meter is not None else 0.0,
    "weight": lambda key, clock: key.weight,
    "in_flight": lambda key, clock: in_flight(key),
    "throttled": lambda key, clock: throttled(key),
    "wait": lambda key, clock: mean_wait_ns(key),
}
