"""What the JSON API shows: documents made from the pulse and the core (spec/http.md).

Reads alone. Every document is made at most once per beat and kind of caller, as bytes, for all who
ask for it.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final, NamedTuple

from fila.broker.session import Sessions
from fila.core.bucket import Bucket
from fila.core.fairness import FairnessKey
from fila.core.lane import DELAYED, PARKED
from fila.core.meter import LATENCY_BOUNDS_NS, NOTHING
from fila.core.pause import Pause
from fila.core.queue import DLQ_SUFFIX, Queue
from fila.edges.http import pages
from fila.edges.http.message import HttpError
from fila.edges.http.pages import Order, Pages
from fila.telemetry.history import POINTS, History
from fila.telemetry.instruments import CAUSES
from fila.telemetry.observer import Observer
from fila.telemetry.pulse import COUNTERS, STEP_S, WINDOW_TICKS, Pulse, QueuePulse
from fila.telemetry.readings import HookNumbers
from fila.telemetry.shares import share_of
from fila.wire.ids import id_text

CONSUMERS_MAX: Final = 200
BUCKETS_MAX: Final = 100
ALL_BUCKETS_MAX: Final = 1_000
NEIGHBOURS: Final = 10
SHARES_MAX: Final = 8  # keys of a queue whose shares are told over time
SHARE_FIELDS: Final = ("share", "fair_share")
_USED_MAX: Final = 100
_RATES: Final = ("enqueued", "delivered", "acked", "nacked", "expired", "dead_lettered", "redriven")
_STEP_MS: Final = int(STEP_S * 1000)
_MS: Final = 1_000_000

Document = dict[str, Any]


class Sees(NamedTuple):
    """What a caller may see: a queue at all, and a queue in detail."""

    listed: Callable[[str], bool]
    admin: Callable[[str], bool]


class Views:
    def __init__(
        self,
        pulse: Pulse,
        sessions: Sessions,
        observer: Observer,
        hooks: Callable[[str], list[tuple[str, HookNumbers]]],
    ) -> None:
        self.pulse = pulse
        self._sessions = sessions
        self._observer = observer
        self._hooks = hooks
        self._pages = Pages(pulse)
        self._used: dict[str, tuple[int, dict[bytes, Bucket]]] = {}

    # --- all queues

    def overview(self, sees: Sees, history: int, live: bool) -> Document:
        rows = []
        totals = dict.fromkeys(("depth", "in_flight", "consumers", "dlq_depth", "throttled"), 0)
        rates = dict.fromkeys(_RATES, 0.0)
        for name, one in sorted(self.pulse.queues.items()):
            if not sees.listed(name):
                continue
            row = self._row(name, one)
            row["admin"] = sees.admin(name)
            _past(row, one.history, history, live, self.pulse.at_ms)
            rows.append(row)
            if row["is_dlq"]:
                totals["dlq_depth"] += row["depth"]
            else:
                totals["depth"] += row["depth"]
            for field in ("in_flight", "consumers", "throttled"):
                totals[field] += row[field]
            for field in _RATES:
                rates[field] += row["rates"][field]
        everything: Document = {"queues": len(rows), **totals}
        everything["connections"] = len(self._sessions.everybody())
        everything["rates"] = {field: _short(rate) for field, rate in rates.items()}
        return {"at_ms": self.pulse.at_ms, "totals": everything, "queues": rows}

    def _row(self, name: str, one: QueuePulse) -> Document:
        queue = one.queue
        return {
            "name": name,
            "depth": queue.pending,
            "in_flight": len(queue.leased),
            "consumers": len(queue.consumers),
            "keys": queue.keys_pending,
            "throttled": one.throttled,
            "dlq": self._dlq(queue),
            "is_dlq": name.endswith(DLQ_SUFFIX),
            "paused": paused(queue.pause),
            "rates": {field: _short(one.rates[COUNTERS.index(field)]) for field in _RATES},
        }

    def _dlq(self, queue: Queue) -> Document | None:
        name = queue.dlq_name()
        dlq = self.pulse.state.queues.get(name) if name is not None else None
        return {"name": name, "depth": dlq.pending} if dlq is not None else None

    # --- one queue

    def queue(self, name: str, history: int, live: bool) -> Document:
        one = self._find(name)
        queue = one.queue
        document = {"at_ms": self.pulse.at_ms, **self._row(name, one)}
        everybody = self._sessions.everybody()
        consumers = []
        for consumer in list(queue.consumers.values())[:CONSUMERS_MAX]:
            session = everybody.get(consumer.connection)
            consumers.append(
                {
                    "id": consumer.id,
                    "connection": consumer.connection,
                    "peer": session.peer if session is not None else "",
                    "who": session.identity.label if session is not None else "",
                    "prefetch": consumer.prefetch,
                    "credit": consumer.credit_messages,
                    "in_flight": consumer.prefetch - consumer.credit_messages,
                    "held": consumer.held,
                    "ready": consumer.ready,
                }
            )
        hooks: dict[str, Document | None] = {"on_enqueue": None, "on_failure": None}
        for hook, numbers in self._hooks(name):
            hooks[hook] = _hook(numbers)
        document.update(
            active_keys=queue.ring.keys,
            active_weight=queue.ring.weight,
            quantum=self.pulse.state.settings.quantum,
            visibility_ms=queue.visibility_ms,
            created_ms=queue.created_ns // _MS,
            counters={field: getattr(queue.counters, field) for field in COUNTERS},
            latency_ms=_latency(one),
            waits=_waits_of_minute(one),
            consumers=consumers,
            consumers_total=len(queue.consumers),
            hooks=hooks,
            buckets=self._buckets(self._buckets_of(name, queue), BUCKETS_MAX),
            top=self._top(one, history, live),
        )
        _past(document, one.history, history, live, self.pulse.at_ms)
        return document

    def _top(self, one: QueuePulse, history: int, live: bool) -> list[Document]:
        """The tracked keys, busiest first; what the first few got and what was due, over time."""
        busiest = sorted(one.tracked.keys.values(), key=lambda two: -two.score)
        rows = []
        for place, tracked in enumerate(busiest):
            share = share_of(tracked.key, one)
            row: Document = {
                **_named(tracked.name),
                "weight": tracked.key.weight,
                "pending": tracked.key.pending,
                "share": _short(share.share),
                "fair_share": _short(share.fair),
                "ratio": _short(share.ratio) if share.ratio is not None else None,
            }
            if place < SHARES_MAX:
                _past(row, tracked.history, history, live, self.pulse.at_ms, SHARE_FIELDS)
            rows.append(row)
        return rows

    async def keys(self, name: str, order: Order) -> Document:
        one = self._find(name)
        page = await self._pages.page(name, one, order)
        return {
            "at_ms": self.pulse.at_ms,
            "queue": name,
            "total": page.total,
            "matched": page.matched,
            "offset": order.offset,
            "rows": [_key_row(key, one) for key in page.keys],
        }

    async def key(self, name: str, ref: str, history: int, live: bool) -> Document:
        one = self._find(name)
        key = one.queue.keys.get(key_of(ref))
        if key is None:
            raise HttpError(404, "NotFound", f'queue "{name}" knows no such key (any more)')
        tracked = self.pulse.pin(name, key)
        best = await self._pages.page(name, one, Order("share", True, "", 0, NEIGHBOURS))
        neighbours = []
        for other in best.keys:
            share = share_of(other, one)
            if share.delivered:
                neighbours.append(
                    {
                        **_named(other.name),
                        "share": _short(share.share),
                        "fair_share": _short(share.fair),
                        "weight": other.weight,
                    }
                )
        document: Document = {
            "at_ms": self.pulse.at_ms,
            "queue": name,
            "key": _key_row(key, one),
            "tracked": tracked is not None,
            "buckets": self._buckets(_buckets_of_keys([key]), BUCKETS_MAX),
            "neighbours": neighbours,
        }
        _past(document, tracked.history if tracked else None, history, live, self.pulse.at_ms)
        return document

    def dead_letters(self, name: str) -> Document:
        source = name.removesuffix(DLQ_SUFFIX)
        dlq = source + DLQ_SUFFIX
        found = self._find(dlq)
        return {
            "at_ms": self.pulse.at_ms,
            "queue": source,
            "dlq": dlq,
            "depth": found.queue.pending,
            "redriving": self._sessions.broker.redriving(dlq),
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
        found = self.pulse.state.buckets
        shown = self._buckets(found, ALL_BUCKETS_MAX)
        return {"at_ms": self.pulse.at_ms, "total": len(found), "buckets": shown}

    def _buckets(self, named: dict[bytes, Bucket], limit: int) -> list[Document]:
        state = self.pulse.state
        for bucket in named.values():
            bucket.refill(state.now)
        emptiest = sorted(
            named.items(), key=lambda pair: (pair[1].tokens / max(pair[1].burst, 1e-9), pair[0])
        )
        rows = []
        for name, bucket in emptiest[:limit]:
            waiting = [lane for lane in bucket.waiters if lane.state == PARKED]
            rows.append(
                {
                    **_named(name),
                    "tokens": _short(bucket.tokens),
                    "rate": bucket.rate,
                    "burst": bucket.burst,
                    "waiting_lanes": len(waiting),
                    "waiting_messages": sum([lane.pending for lane in waiting]),
                    "passed": bucket.passed,
                    "limited": bucket.limited,
                }
            )
        return rows

    def _buckets_of(self, name: str, queue: Queue) -> dict[bytes, Bucket]:
        """Which ones a queue uses: found by looking at every key, so only now and then."""
        if not self.pulse.state.buckets:
            return {}
        tick, found = self._used.get(name, (-WINDOW_TICKS, {}))
        if self.pulse.tick - tick >= WINDOW_TICKS:
            found = _buckets_of_keys(list(queue.keys.values()))
            if len(self._used) > _USED_MAX:
                self._used.clear()
            self._used[name] = (self.pulse.tick, found)
        return found

    def _find(self, name: str) -> QueuePulse:
        one = self.pulse.queues.get(name)
        if one is None or name not in self.pulse.state.queues:
            raise HttpError(404, "QueueNotFound", f'queue "{name}" does not exist')
        return one


def ref_of(key: bytes) -> str:
    return urlsafe_b64encode(key).rstrip(b"=").decode()


def key_of(ref: str) -> bytes:
    try:
        return urlsafe_b64decode(ref.encode("ascii") + b"=" * (-len(ref) % 4))
    except (Base64Error, ValueError) as error:
        raise HttpError(400, "BadRequest", "key is a `ref` from this API") from error


def _named(key: bytes) -> Document:
    return {"name": key.decode(errors="replace"), "ref": ref_of(key)}


def _key_row(key: FairnessKey, one: QueuePulse) -> Document:
    share = share_of(key, one)
    meter = key.meter
    reading = meter.reading() if meter is not None else NOTHING
    waited = sum(reading[1:])
    tracked = one.tracked.keys.get(key.name)
    rate = (
        tracked.history.newest[1]
        if tracked and tracked.history and tracked.history.newest
        else None
    )
    return {
        **_named(key.name),
        "pending": key.pending,
        "in_flight": pages.in_flight(key),
        "throttled": pages.throttled(key),
        "weight": key.weight,
        "deficit": key.deficit,
        "state": _state(key),
        "paused": paused(key.pause),
        "delivered": reading[0],
        "rate": _short(rate) if rate is not None else None,
        "share": _short(share.share),
        "fair_share": _short(share.fair),
        "ratio": _short(share.ratio) if share.ratio is not None else None,
        "wait_ms": _short(waited / reading[0] / _MS) if reading[0] else 0.0,
        "waits": _parts(reading[1:]),
    }


def paused(pause: Pause | None) -> Document | None:
    if pause is None:
        return None
    return {"since_ms": pause.since_ns // _MS, "by": pause.who, "reason": pause.reason}


def _state(key: FairnessKey) -> str:
    if key.pause is not None:
        return "paused"
    if key.active:
        return "ready"
    states = [lane.state for lane in key.lanes.values() if lane.pending]
    if PARKED in states:
        return "throttled"
    return "delayed" if DELAYED in states else "idle"


def _buckets_of_keys(keys: list[FairnessKey]) -> dict[bytes, Bucket]:
    return {
        bucket.name: bucket
        for key in keys
        for lane in key.lanes.values()
        for bucket in lane.buckets
    }


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
        "mean_us": _short(numbers.busy_ns / executions / 1000) if executions else 0.0,
        "memory_bytes": getattr(numbers, "memory_bytes", 0),
        "last_problem": getattr(numbers, "last_problem", ""),
    }


def _latency(one: QueuePulse) -> Document:
    """Percentiles of the last minute, read off the histogram: exact to its bounds."""
    meter = one.queue.meter
    then = one.minute[0][0]
    counts = list(meter.latency_counts) if meter is not None else []
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
                found[name] = _short((low + (high - low) * left / count) / _MS)
                break
            left -= count
    return found


def _waits_of_minute(one: QueuePulse) -> Document:
    meter = one.queue.meter
    now = meter.waits.reading() if meter is not None else NOTHING
    then = one.minute[0][1]
    return _parts([after - before for after, before in zip(now[1:], then[1:], strict=True)])


def _parts(waited: Any) -> Document:
    total = sum(waited)
    return {
        cause: _short(part / total) if total else 0.0
        for cause, part in zip(CAUSES, waited, strict=True)
    }


def _past(
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
            field: _short(value)
            for field, value in zip(fields, newest, strict=False)
            if only is None or field in only
        }
        return
    points = history.columns(min(count, POINTS)) if history is not None else {}
    if only is not None:
        points = {field: points[field] for field in only if field in points}
    document["series"] = {"end_ms": at_ms, "step_ms": _STEP_MS, "points": points}


def _short(value: float) -> float:
    return float(f"{value:.6g}")
