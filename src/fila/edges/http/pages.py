"""A page of a queue's fairness keys, sorted by the broker: ten thousand keys, fifty rows.

Sorting looks at every key, so it is done in slices with the loop's other work in between, and once
per beat of the pulse for all who ask for the same order. Only the rows of the page are made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, NamedTuple

from fila.core.figures import KeyFigures
from fila.core.view import View
from fila.edges.http.message import HttpError, Request
from fila.telemetry.pulse import SMALL_KEYS, Pulse, QueuePulse

LIMIT_MAX: Final = 200
_SLICE_KEYS: Final = 300
_FEW_ROWS: Final = 1_000  # up to so many, what lies behind the page is dropped while sorting
_LARGE_TICKS: Final = 3
_MADE_MAX: Final = 200
_Measured = Callable[[KeyFigures, tuple[float, float]], float]


class Order(NamedTuple):
    sort: str
    descending: bool
    text: str  # only keys whose names hold it; lower case
    offset: int
    limit: int


class Page(NamedTuple):
    total: int
    matched: int
    names: list[bytes]


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
            names = self._pulse.view.key_names(name)
            lasts = 1 if len(names) <= SMALL_KEYS else _LARGE_TICKS
            making = _page(self._pulse.view, names, one, order)
            found = asyncio.get_running_loop().create_task(making)
            self._made[(name, order)] = (tick + lasts, found)
        return await asyncio.shield(found)  # a client that leaves does not cancel it for others


async def _page(view: View, names: list[bytes], one: QueuePulse, order: Order) -> Page:
    measured = SORTS[order.sort]
    text = order.text
    end = order.offset + order.limit
    best: list[tuple[float, bytes]] = []
    matched = 0
    for start in range(0, len(names), _SLICE_KEYS):
        part = names[start : start + _SLICE_KEYS]
        if text:
            part = [name for name in part if text in name.decode(errors="replace").lower()]
        matched += len(part)
        best += [(measured(key, one.since(key)), key.name) for key in view.keys(one.name, part)]
        # A sort of few in every slice, instead of one at the end, which would block the loop.
        best.sort(reverse=order.descending)
        if end <= _FEW_ROWS:
            del best[end:]
        await asyncio.sleep(0)
    return Page(len(names), matched, [name for _, name in best[order.offset : end]])


def _mean_wait_ns(key: KeyFigures) -> float:
    return sum(key.reading[1:]) / key.delivered if key.delivered else 0.0


def _ratio(key: KeyFigures, since: tuple[float, float]) -> float:
    if not key.given and not since[1]:
        return 0.0
    entitled = key.entitled - since[1]
    return (key.given - since[0]) / entitled if entitled >= 1.0 else -1.0


# What keys are sorted by: of a key, and of what it had when the pulse's window began.
SORTS: Final[dict[str, _Measured]] = {
    "pending": lambda key, since: key.pending,
    "name": lambda key, since: 0.0,
    "share": lambda key, since: key.given - since[0],
    "ratio": _ratio,
    "delivered": lambda key, since: key.delivered,
    "weight": lambda key, since: key.weight,
    "in_flight": lambda key, since: key.leased,
    "throttled": lambda key, since: key.throttled,
    "wait": lambda key, since: _mean_wait_ns(key),
}
