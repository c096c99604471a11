"""What the JSON API shows: documents made from the pulse and the core (spec/http.md).

Reads alone. Every document is made at most once per beat and kind of caller, as bytes, for all who
ask for it.
"""

from __future__ import annotations

import asyncio
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final

from fila.broker.session import Sessions
from fila.core import override
from fila.core.byte_cost import COST_MESSAGES
from fila.core.figures import BucketFigures, KeyFigures, QueueFigures
from fila.core.meter import LATENCY_BOUNDS_NS, NOTHING
from fila.core.pause import Pause
from fila.core.queue import DLQ_SUFFIX
from fila.edges.http.message import HttpError
from fila.edges.http.pages import Order, Pages
from fila.telemetry.history import POINTS, History
from fila.telemetry.instruments import CAUSES
from fila.telemetry.observer import Observer
from fila.telemetry.pulse import COUNTERS, STEP_S, WINDOW_TICKS, Pulse, QueuePulse
from fila.telemetry.readings import HookNumbers
from fila.telemetry.shares import Shares
from fila.wire.ids import id_text

CONSUMERS_MAX: Final = 200
BUCKETS_MAX: Final = 100
ALL_BUCKETS_MAX: Final = 1_000
NEIGHBOURS: Final = 10
SLICE_LANES: Final = 1_000  # keys whose buckets are looked for at a time
SHARES_MAX: Final = 8  # keys of a queue whose shares are told over time
SHARE_FIELDS: Final = ("share", "fair_share")
_USED_MAX: Final = 100
_BEATS: Final = 3  # until a new queue is known
RATES: Final = ("enqueued", "delivered", "acked", "nacked", "expired", "dead_lettered", "redriven")
_STEP_MS: Final = int(STEP_S * 1000)
_MS: Final = 1_000_000

Document = dict[str, Any]


class Views:
    def __init__(
        self,
        pulse: Pulse,
        sessions: Sessions,
        observer: Observer,
        hooks: Callable[[str], list[tuple[str, HookNumbers]]],
    ) -> None:
        self.pulse = pulse
        self._view = pulse.view
        self.sessions = sessions
        self._observer = observer
        self._hooks = hooks
        self._pages = Pages(pulse)
        self._used: dict[str, tuple[int, list[bytes]]] = {}  # buckets of a queue, and since when

    # --- one queue

    def row(self, queue: QueueFigures, one: QueuePulse) -> Document:
        return {
            "name": queue.name,
            "depth": queue.pending,
            "in_flight": queue.leased,
            "consumers": queue.consumers,
            "keys": queue.keys_pending,
            "throttled": one.throttled,
            "dlq": self._dlq(queue),
            "is_dlq": queue.name.endswith(DLQ_SUFFIX),
            "paused": paused(queue.pause),
            "rates": {field: short(one.rates[COUNTERS.index(field)]) for field in RATES},
        }

    def _dlq(self, queue: QueueFigures) -> Document | None:
        dlq = self._view.queue(queue.dlq) if queue.dlq is not None else None
        return {"name": dlq.name, "depth": dlq.pending} if dlq is not None else None

    async def known(self, name: str) -> None:
        """Wait until a queue that was made since the last beat has been seen."""
        for _ in range(_BEATS):
            if name in self.pulse.queues or not self._view.has_queue(name):
                return
            await self.pulse.next_beat()

    async def queue(self, name: str, history: int, live: bool) -> Document:
        self._find(name)
        buckets = await self._buckets_of(name)
        queue, one = self._find(name)
        document = {"at_ms": self.pulse.at_ms, **self.row(queue, one)}
        everybody = self.sessions.everybody()
        consumers = []
        for consumer in self._view.consumers(name, CONSUMERS_MAX):
            session = everybody.get(consumer.connection)
            consumers.append(
                {
                    "id": consumer.id,
                    "connection": consumer.connection,
                    "peer": session.peer if session is not None else "",
                    "who": session.identity.label if session is not None else "",
                    "prefetch": consumer.prefetch,
                    "credit": consumer.credit,
                    "in_flight": consumer.in_flight,
                    "held": consumer.held,
                    "ready": consumer.ready,
                }
            )
        settings = self._view.settings
        hooks: dict[str, Document | None] = {"on_enqueue": None, "on_failure": None}
        for hook, numbers in self._hooks(name):
            hooks[hook] = _hook(numbers)
        document.update(
            active_keys=queue.active_keys,
            active_weight=queue.active_weight,
            quantum=settings.quantum if queue.cost == COST_MESSAGES else settings.quantum_bytes,
            cost=queue.cost,
            visibility_ms=queue.visibility_ms,
            created_ms=queue.created_ns // _MS,
            counters=queue.counts._asdict(),
            latency_ms=_latency(queue, one),
            waits=_waits_of_minute(queue, one),
            consumers=consumers,
            consumers_total=queue.consumers,
            hooks=hooks,
            buckets=self._buckets(self._view.buckets(buckets), BUCKETS_MAX),
            top=self._top(queue, one, history, live),
        )
        past(document, one.history, history, live, self.pulse.at_ms)
        return document

    def _top(
        self, queue: QueueFigures, one: QueuePulse, history: int, live: bool
    ) -> list[Document]:
        """The tracked keys, busiest first; what the first few got and should have got."""
        busiest = sorted(one.tracked.keys.values(), key=lambda two: -two.score)
        shares = Shares(one, queue)
        names = [tracked.name for tracked in busiest]
        present = {key.name: key for key in self._view.keys(queue.name, names)}
        rows = []
        for rank, tracked in enumerate(busiest):
            key = present.get(tracked.name, tracked.key)
            share = shares.of(key)
            row: Document = {
                **named(tracked.name),
                "weight": key.weight,
                "pending": key.pending,
                "share": short(share.share),
                "fair_share": short(share.fair),
                "ratio": short(share.ratio) if share.ratio is not None else None,
            }
            if rank < SHARES_MAX:
                past(row, tracked.history, history, live, self.pulse.at_ms, SHARE_FIELDS)
            rows.append(row)
        return rows

    async def keys(self, name: str, order: Order) -> Document:
        _, one = self._find(name)
        page = await self._pages.page(name, one, order)
        queue, one = self._find(name)
        shares = Shares(one, queue)
        return {
            "at_ms": self.pulse.at_ms,
            "queue": name,
            "total": page.total,
            "matched": page.matched,
            "offset": order.offset,
            "rows": [_key_row(key, one, shares) for key in self._view.keys(name, page.names)],
        }

    async def key(self, name: str, ref: str, history: int, live: bool) -> Document:
        _, one = self._find(name)
        key = self._view.key(name, key_of(ref))
        if key is None:
            raise HttpError(404, "NotFound", f'queue "{name}" knows no such key (any more)')
        tracked = self.pulse.pin(name, key)
        best = await self._pages.page(name, one, Order("share", True, "", 0, NEIGHBOURS))
        queue, one = self._find(name)
        key = self._view.key(name, key.name) or key
        shares = Shares(one, queue)
        neighbours = []
        for other in self._view.keys(name, best.names):
            share = shares.of(other)
            if share.given:
                neighbours.append(
                    {
                        **named(other.name),
                        "share": short(share.share),
                        "fair_share": short(share.fair),
                        "weight": other.weight,
                    }
                )
        document: Document = {
            "at_ms": self.pulse.at_ms,
            "queue": name,
            "key": _key_row(key, one, shares),
            "tracked": tracked is not None,
            "buckets": self._buckets(
                self._view.buckets(self._view.bucket_names(name, [key.name])), BUCKETS_MAX
            ),
            "neighbours": neighbours,
        }
        past(document, tracked.history if tracked else None, history, live, self.pulse.at_ms)
        return document

    def dead_letters(self, name: str) -> Document:
        source = name.removesuffix(DLQ_SUFFIX)
        dlq = source + DLQ_SUFFIX
        queue, _ = self._find(dlq)
        return {
            "at_ms": self.pulse.at_ms,
            "queue": source,
            "dlq": dlq,
            "depth": queue.pending,
            "redriving": self.sessions.broker.redriving(dlq),
            "since_ms": self.pulse.started_ms,
            "groups": [
                {
                    "error": group.error,
                    "count": group.count,
                    "example": group.example,
                    "first_ms": group.first_ms,
                    "last_ms": group.last_ms,
                    "message": id_text(group.message).decode(),
                }
                for group in self._observer.error_groups(source)
            ],
        }

    # --- buckets

    def buckets(self) -> Document:
        found = self._view.buckets()
        shown = self._buckets(found, ALL_BUCKETS_MAX)
        return {"at_ms": self.pulse.at_ms, "total": len(found), "buckets": shown}

    def _buckets(self, found: dict[bytes, BucketFigures], limit: int) -> list[Document]:
        emptiest = sorted(
            found.items(), key=lambda pair: (pair[1].tokens / max(pair[1].burst, 1e-9), pair[0])
        )
        rows = []
        for name, bucket in emptiest[:limit]:
            rows.append(
                {
                    **named(name),
                    "tokens": short(bucket.tokens),
                    "rate": bucket.rate,
                    "burst": bucket.burst,
                    "waiting_lanes": bucket.waiting_lanes,
                    "waiting_messages": bucket.waiting_messages,
                    "passed": bucket.passed,
                    "limited": bucket.limited,
                }
            )
        return rows

    async def _buckets_of(self, name: str) -> list[bytes]:
        """Which ones a queue uses: found by looking at every key, so only now and then, and some
        keys at a time."""
        tick, found = self._used.get(name, (-WINDOW_TICKS, []))
        if self.pulse.tick - tick >= WINDOW_TICKS:
            used: dict[bytes, None] = {}
            keys = self._view.key_names(name)
            for start in range(0, len(keys), SLICE_LANES):
                if start:
                    await asyncio.sleep(0)
                part = keys[start : start + SLICE_LANES]
                used.update(dict.fromkeys(self._view.bucket_names(name, part)))
            found = list(used)
            if len(self._used) > _USED_MAX:
                self._used.clear()
            self._used[name] = (self.pulse.tick, found)
        return found

    def _find(self, name: str) -> tuple[QueueFigures, QueuePulse]:
        one = self.pulse.queues.get(name)
        queue = self._view.queue(name)
        if name in self._view.quarantined:
            raise HttpError(503, "StorageError", self._view.no_queue(name).message)
        if one is None or queue is None:
            raise HttpError(404, "QueueNotFound", f'queue "{name}" does not exist')
        return queue, one


def ref_of(key: bytes) -> str:
    return urlsafe_b64encode(key).rstrip(b"=").decode()


def key_of(ref: str) -> bytes:
    try:
        return urlsafe_b64decode(ref.encode("ascii") + b"=" * (-len(ref) % 4))
    except (Base64Error, ValueError) as error:
        raise HttpError(400, "BadRequest", "key is a `ref` from this API") from error


def named(key: bytes) -> Document:
    return {"name": key.decode(errors="replace"), "ref": ref_of(key)}


def _key_row(key: KeyFigures, one: QueuePulse, shares: Shares) -> Document:
    share = shares.of(key)
    reading = key.reading
    waited = sum(reading[1:])
    tracked = one.tracked.keys.get(key.name)
    rate = (
        tracked.history.newest[1]
        if tracked and tracked.history and tracked.history.newest
        else None
    )
    return {
        **named(key.name),
        "pending": key.pending,
        "in_flight": key.leased,
        "throttled": key.throttled,
        "weight": key.weight,
        "deficit": key.deficit,
        "state": key.state,
        "paused": paused(key.pause),
        "override": override.document(key.override) if key.override is not None else None,
        "delivered": reading[0],
        "rate": short(rate) if rate is not None else None,
        "share": short(share.share),
        "fair_share": short(share.fair),
        "ratio": short(share.ratio) if share.ratio is not None else None,
        "wait_ms": short(waited / reading[0] / _MS) if reading[0] else 0.0,
        "waits": _parts(reading[1:]),
    }


def paused(pause: Pause | None) -> Document | None:
    if pause is None:
        return None
    return {"since_ms": pause.since_ns // _MS, "by": pause.who, "reason": pause.reason}


def _hook(numbers: HookNumbers) -> Document:
    executions = numbers.executions
    return {
        "breaker": numbers.breaker,
        "executions": executions,
        "errors": numbers.errors,
        "timeouts": numbers.timeouts,
        "memory": numbers.memory,
        "bypassed": numbers.bypassed,
        "trips": numbers.trips,
        "fail_mode": numbers.fail_mode,
        "late": numbers.late,
        "kept_out": numbers.kept_out,
        "quarantines": numbers.quarantines,
        "quarantined": numbers.quarantined,
        "quarantined_keys": list(numbers.quarantined_keys),
        "strangers_kept_out": numbers.strangers_kept_out,
        "mean_us": short(numbers.busy_ns / executions / 1000) if executions else 0.0,
        "memory_bytes": getattr(numbers, "memory_bytes", 0),
        "last_problem": getattr(numbers, "last_problem", ""),
    }


def _latency(queue: QueueFigures, one: QueuePulse) -> Document:
    """Percentiles of the last minute, read off the histogram: exact to its bounds."""
    then = one.minute[0][0]
    counts = queue.measured.latency_counts if queue.measured is not None else []
    if then:
        counts = [now - before for now, before in zip(counts, then, strict=True)]
    total = sum(counts)
    found: Document = {"p50": None, "p95": None, "p99": None, "window_s": 60}
    if not total:
        return found
    bounds = [0, *LATENCY_BOUNDS_NS, LATENCY_BOUNDS_NS[-1]]
    for name, part in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        left = part * total
        for (low, high), count in zip(pairwise(bounds), counts, strict=True):
            if count and left <= count:
                found[name] = short((low + (high - low) * left / count) / _MS)
                break
            left -= count
    return found


def _waits_of_minute(queue: QueueFigures, one: QueuePulse) -> Document:
    now = queue.measured.waits if queue.measured is not None else NOTHING
    then = one.minute[0][1]
    return _parts([after - before for after, before in zip(now[1:], then[1:], strict=True)])


def _parts(waited: Any) -> Document:
    total = sum(waited)
    return {
        cause: short(part / total) if total else 0.0
        for cause, part in zip(CAUSES, waited, strict=True)
    }


def past(
    document: Document,
    history: History | None,
    count: int,
    live: bool,
    at_ms: int,
    only: tuple[str, ...] | None = None,
) -> None:
    """The series of a document, or in a stream its newest point; `only` some of its fields."""
    if live:
        newest = history.newest if history is not None else ()
        fields = history.fields if history is not None else ()
        document["point"] = {
            field: short(value)
            for field, value in zip(fields, newest, strict=False)
            if only is None or field in only
        }
        return
    points = history.columns(min(count, POINTS)) if history is not None else {}
    if only is not None:
        points = {field: points[field] for field in only if field in points}
    document["series"] = {"end_ms": at_ms, "step_ms": _STEP_MS, "points": points}


def short(value: float) -> float:
    return float(f"{value:.6g}")
