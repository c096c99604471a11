"""A journal of a made-up load, as a broker would leave it: for benchmarks of what reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from fila.journal.files import Stream, seal
from fila.journal.schema import arrow_schema

START_US = 1_790_000_000 * 1_000_000


class Shape(NamedTuple):
    """Of a load: without a `hot_share` all tenants are busy all the time; with one, so much of it
    is one tenant's, and the others come and go with single messages."""

    queues: int
    tenants: int  # in each queue
    hot_share: float | None = None
    span_us: int = 3_600 * 1_000_000


def write_journal(root: Path, shape: Shape, events: int, part_events: int) -> None:
    """Sealed parts, as a broker would leave them."""
    stream = Stream("events", "bench", 1)
    rng = np.random.default_rng(1)
    for first in range(0, events, part_events):
        seal(root, stream, [_part(shape, first, min(part_events, events - first), events, rng)])


def _part(shape: Shape, first: int, size: int, events: int, rng: np.random.Generator) -> Any:
    """Message n is enqueued, delivered and acked by events 3n, 3n + 1 and 3n + 2."""
    number = np.arange(first, first + size)
    message, step = number // 3, number % 3
    queue, tenant = message % shape.queues, (message // shape.queues) % shape.tenants
    busy = np.ones(size, bool)  # has always more
    if shape.hot_share is not None:
        # The same for all three events of a message: a fraction of its number's digits.
        busy = message * 2_654_435_761 % 100_000 < shape.hot_share * 100_000
        tenant = np.where(busy, 0, 1 + message % max(shape.tenants - 1, 1))
    ts = START_US + number * shape.span_us // events
    delivered = step == 1
    wait = rng.integers(1_000, 4_000_000, size)
    eligible = np.where(busy, np.where(delivered, 40, 41), step == 0).astype(np.int64)
    # A key that sends now and then comes into the ring with its message and leaves with it.
    delta = np.where(busy, 0, np.array([1, -1, 0])[step])
    kinds = np.array(["enqueued", "delivered", "acked"])[step]
    failed = (step == 2) & (message % 50 == 0)
    kinds[failed] = "nacked"
    text = pa.string()

    def strings(values: Any) -> Any:
        return pa.array(values, text)

    def micros(values: Any, mask: Any = None) -> Any:
        return pa.array(values, pa.timestamp("us", "UTC"), mask=mask)

    columns: dict[str, Any] = {
        "seq": number + 1,
        "ts": micros(ts),
        "event": strings(kinds),
        "queue": strings(np.char.add("queue-", queue.astype(str))),
        "broker": strings(["bench"] * size),
        "epoch": np.ones(size, np.int64),
        "message_id": strings([f"00000000-0000-7000-8000-{one:012d}" for one in message]),
        "attempt": np.zeros(size, np.int32),
        "fairness_key": strings(np.char.add("tenant-", tenant.astype(str))),
        "weight": np.where(step == 2, 0, 1),
        "throttle_keys": pa.array([[]] * size, pa.list_(text)),
        "key_pending": eligible,
        "key_eligible": eligible,
        "ring_delta": delta.astype(np.int32),
        "queue_delivered": message // shape.queues + (step >= 1),
        "active_weight_before": np.where(delivered, shape.tenants, 0),
        "active_keys": np.full(size, shape.tenants),
        "since": micros(ts - wait, ~delivered),
        "ready_at": micros(ts - wait, ~delivered),
        "wait_own_us": pa.array(wait // 2, pa.int64(), mask=~delivered),
        "wait_turn_us": pa.array(wait - wait // 2, pa.int64(), mask=~delivered),
        "error": strings(np.where(failed, np.char.add("timeout after ", wait.astype(str)), "")),
        "enqueued_at": micros(ts - wait, ~delivered),
        "payload_bytes": np.full(size, 1_024),
        "events": np.ones(size, np.int64),
    }
    for part in ("retry", "throttled", "no_consumer", "paused", "busy_own", "busy_others"):
        columns[f"wait_{part}_us"] = pa.array(np.zeros(size, np.int64), mask=~delivered)
    arrays = []
    for field in arrow_schema("events"):
        values = columns.get(field.name)
        made = pa.nulls(size, field.type) if values is None else pa.array(values)
        arrays.append(made.cast(field.type))
    return pa.record_batch(arrays, schema=arrow_schema("events"))
