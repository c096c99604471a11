"""The dashboard's first page: every queue with its numbers, and their sums.

Made and encoded some queues at a time, with the loop's other work in between: ten thousand queues
with their history are megabytes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, NamedTuple

from fila.edges.http.message import encode
from fila.edges.http.views import RATES, Document, Views, past, short

SLICE_ROWS: Final = 64
ROW_POINTS: Final = 20  # a row costs as much as so many of its points

_MS: Final = 1_000_000


class Sees(NamedTuple):
    """What a caller may see: a queue at all, and a queue in detail."""

    listed: Callable[[str], bool]
    admin: Callable[[str], bool]


async def overview(views: Views, sees: Sees, history: int, live: bool) -> tuple[bytes, ...]:
    """The document, encoded, in parts."""
    pulse, view = views.pulse, views.pulse.view
    at_ms = pulse.at_ms
    parts: list[bytes] = []
    rows: list[Document] = []
    count = 0
    totals = dict.fromkeys(("depth", "in_flight", "consumers", "dlq_depth", "throttled"), 0)
    rates = dict.fromkeys(RATES, 0.0)
    left = SLICE_ROWS
    for name, one in sorted(pulse.queues.items()):
        queue = view.queue(name) if sees.listed(name) else None
        if queue is not None:
            row = views.row(queue, one)
            row["admin"] = sees.admin(name)
            past(row, one.history, history, live, at_ms)
            rows.append(row)
            count += 1
            if row["is_dlq"]:
                totals["dlq_depth"] += row["depth"]
            else:
                totals["depth"] += row["depth"]
            for field in ("in_flight", "consumers", "throttled"):
                totals[field] += row[field]
            for field in RATES:
                rates[field] += row["rates"][field]
            if one.history is not None and not live:
                left -= history // ROW_POINTS
        left -= 1
        if left <= 0:
            left = SLICE_ROWS
            _encode(rows, parts)
            await asyncio.sleep(0)
    _encode(rows, parts)
    everything: Document = {"queues": count, **totals}
    everything["connections"] = len(views.sessions.everybody())
    everything["rates"] = {field: short(rate) for field, rate in rates.items()}
    apart = [
        {"name": one.name, "since_ms": one.since_ns // _MS, "cause": one.cause}
        for one in sorted(view.quarantined.values())
        if sees.listed(one.name)
    ]
    everything["quarantined"] = len(apart)
    head = encode({"at_ms": at_ms, "totals": everything, "quarantined": apart})
    return (head[:-1] + b',"queues":[', *parts, b"]}")


def _encode(rows: list[Document], parts: list[bytes]) -> None:
    """These rows, behind those before them."""
    if rows:
        parts.append((b"," if parts else b"") + encode(rows)[1:-1])
        rows.clear()
