"""A page of a queue's fairness keys, sorted by the broker: ten thousand keys, fifty rows.

Sorting looks at every key, so it is done in slices with the loop's other work in between, and once
per beat of the pulse for all who ask for the same order. Only the rows of the page are made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, NamedTuple

from fila.core.fairness import FairnessKey
from fila.core.lane import PARKED
from fila.edges.http.message import HttpError, Request
from fila.telemetry.pulse import SMALL_KEYS, Pulse, QueuePulse

LIMIT_MAX: Final = 200
_SLICE_KEYS: Final = 500
_FEW_ROWS: Final = 1_000  # up to so many, what lies behind the page is dropped while sorting
_LARGE_TICKS: Final = 3
_MADE_MAX: Final = 200
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
        self._made: dict[tuple[str, Order], tuple[int, asyncio.Task[Page]]] = {}

    async def page(self, name: str, one: QueuePulse, order: Order) -> Page:
        tick = self._pulse.tick
        until, found = self._made.get((name, order), (-1, None))
        if found is None or tick >= until:
            if len(self._made) >= _MADE_MAX:
                self._made.clear()
            # Numbers in the rows are of this second; the order of many keys is of the last three.
            lasts = 1 if len(one.queue.keys) <= SMALL_KEYS else _LARGE_TICKS
            found = asyncio.get_running_loop().create_task(_page(one, order))
            self._made[(name, order)] = (tick + lasts, found)
        return await asyncio.shield(found)  # a client that leaves takes it from nobody else


async def _page(one: QueuePulse, order: Order) -> Page:
    queue = one.queue
    clock = queue.ring.clock
    keys = list(queue.keys.values())
    measured = SORTS[order.sort]
    text = order.text
    end = order.offset + order.limit
    best: list[tuple[float, bytes, FairnessKey]] = []
    matched = 0
    for start in range(0, len(keys), _SLICE_KEYS):
        part = keys[start : start + _SLICE_KEYS]
        if text:
            part = [key for key in part if text in key.name.decode(errors="replace").lower()]
        matched += len(part)
        best += [(measured(key, clock), key.name, key) for key in part]
        # A sort of few in every slice, instead of one of all at the end: nobody waits for it.
        best.sort(reverse=order.descending)
        if end <= _FEW_ROWS:
            del best[end:]
        await asyncio.sleep(0)
    return Page(len(keys), matched, [row[2] for row in best[order.offset : end]])


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
