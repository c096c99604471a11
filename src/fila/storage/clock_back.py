"""Copies a store whose times lie in the future into a new one, with those times set back.

A wall clock that was once far ahead leaves such a store: the broker's time never runs backwards, so
leases, delays and stamps would stay ahead until the real time has come. Everything stamped while
the clock was ahead is moved back by the same amount; what was stamped before stays as it is. Order
within every lane is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fila.core import (
    aging_rows,
    batch_rows,
    key_rows,
    override,
    pause_rows,
    rows,
    ttl,
    version_rows,
)
from fila.core.lane import DELAY_BIT
from fila.core.reader import Reader
from fila.core.row_batch import PUT, Op, RowBatch
from fila.storage.contract import Store, StoreError
from fila.storage.survey import Gap, pages

AHEAD_NS_MIN: Final = 60 * 10**9  # less is caught up with by itself
_OPS_MAX: Final = 2_048


def ahead_ns(reader: Reader, wall_ns: int) -> int:
    """How far the newest stored time lies in the future."""
    newest = 0
    start, end = rows.LEDGER_PREFIX, rows.after(rows.LEDGER_PREFIX)
    for _, value in reader.scan(rows.STATE, start, end, 1 << 62, 1 << 62):
        newest = max(newest, rows.read_ledger(value).now_ns)
    return newest - wall_ns


def set_back(
    reader: Reader, into: Store, wall_ns: int, progress: Callable[[str, int], None]
) -> int:
    """Copy all rows; returns by how many nanoseconds times were set back."""
    by_ns = ahead_ns(reader, wall_ns)
    if by_ns < AHEAD_NS_MIN:
        raise StoreError(
            f"the stored times are {max(by_ns, 0) / 1e9:.1f} s ahead of this machine's clock; "
            "a broker catches up with less than a minute by itself"
        )
    shift = _Shift(by_ns, wall_ns)
    for family, name in enumerate(rows.FAMILIES):
        ops: list[Op] = []
        count = 0
        for part in pages(reader, family):
            if isinstance(part, Gap):
                raise StoreError(f"{name} cannot be read ({part.why}): salvage the store first")
            for key, value in part:
                ops.append((PUT | family, *shift.row(family, key, value)))
            count += len(part)
            if len(ops) >= _OPS_MAX:
                into.write([RowBatch(0, 0, ops)])
                ops = []
                progress(name, count)
        if ops:
            into.write([RowBatch(0, 0, ops)])
    into.sync()
    return by_ns


MS = 1_000_000


class _Shift:
    def __init__(self, by_ns: int, wall_ns: int) -> None:
        self._by_ns = by_ns
        self._from_ns = wall_ns + by_ns // 2  # what lies beyond was stamped by the clock ahead

    def time(self, ns: int) -> int:
        return ns - self._by_ns if ns >= self._from_ns else ns

    def row(self, family: int, key: bytes, value: bytes) -> tuple[bytes, bytes]:
        if family == rows.MESSAGES:
            return self._message(key, value)
        if family == rows.LEASES:
            lease = rows.read_lease(value)
            named = [rows.leased_message(key, tail) for tail in lease.messages]
            messages = [self._message_key(one) for one in named]
            expires, leased = self.time(lease.expires_ns), self.time(lease.leased_ns)
            return key, rows.lease_row(expires, leased, lease.consumer, messages)
        if family == rows.QUEUES:
            queue_row = rows.read_queue(value)
            created_ns = self.time(queue_row.created_ns)
            weighed = self.time(queue_row.weighed_since)
            queue_row = queue_row._replace(created_ns=created_ns, weighed_since=weighed)
            return key, rows.queue_row(queue_row)
        if family == rows.STATE:
            if rows.kind_of(key) == rows.OVERRIDE_PREFIX:
                return key, self._override(key, value)
            if rows.kind_of(key) == rows.AGING_PREFIX:
                message_key = self._message_key(aging_rows.message_key(key))
                return aging_rows.key_of(message_key, self._expiry(aging_rows.at_ms(key))), value
            return key, self._state(rows.kind_of(key), value)
        if family == rows.IDEMPOTENCY and rows.kind_of(key) == key_rows.KNOWN_KEY_PREFIX:
            number, at_ns, id = key_rows.read_known_key(value)
            return key, key_rows.known_key_row(number, self.time(at_ns), id)
        return key, value

    def _message_key(self, key: bytes) -> bytes:
        queue, lane, stamp, id = rows.MESSAGE_KEY.unpack(key)
        return rows.MESSAGE_KEY.pack(queue, lane, self.time(stamp), id)

    def _message(self, key: bytes, value: bytes) -> tuple[bytes, bytes]:
        value = rows.message_row(value)
        version, attempts, weight, enqueued, since, stall, *clocks = rows.MESSAGE_HEAD.unpack_from(
            value
        )
        times = (self.time(enqueued), self.time(since))
        stall = self._stall(stall, since)
        head = rows.MESSAGE_HEAD.pack(version, attempts, weight, *times, stall, *clocks)
        body = value[rows.MESSAGE_HEAD_BYTES :]
        at_ms = ttl.expires_ms(body)
        if at_ms:
            body = ttl.with_expiry(body, self._expiry(at_ms))
        return self._message_key(key), head + body

    def _expiry(self, at_ms: int) -> int:
        return self.time(at_ms * MS) // MS

    def _stall(self, stall_ns: int, read_at_ns: int) -> int:
        """A stall clock ran while time jumped: the restart was part of it."""
        jumped = read_at_ns >= self._from_ns and stall_ns >= self._by_ns
        return stall_ns - self._by_ns if jumped else stall_ns

    def _head(self, head: int) -> int:
        delayed = head & DELAY_BIT
        return self.time(head & ~DELAY_BIT) | delayed

    def _override(self, key: bytes, value: bytes) -> bytes:
        if override.is_level(key):
            return self._state(rows.BUCKET_PREFIX, value)
        terms = override.read_override(value)
        since_ns, expires_ns = self.time(terms.since_ns), self.time(terms.expires_ns)
        return override.override_row(terms._replace(since_ns=since_ns, expires_ns=expires_ns))

    def _state(self, kind: bytes, value: bytes) -> bytes:
        if kind == rows.BUCKET_PREFIX:
            tokens, at_ns = rows.read_bucket(value)
            return rows.bucket_row(tokens, self.time(at_ns))
        if kind == rows.LANE_PREFIX:
            lane = rows.read_lane(value)
            tail, head = self.time(lane.tail), self._head(lane.head)
            return rows.lane_row(lane._replace(tail=tail, head=head))
        if kind == rows.LEDGER_PREFIX:
            ledger = rows.read_ledger(value)
            clocks = [(queue, self._stall(ns, ledger.now_ns)) for queue, ns in ledger.clocks]
            parts = [rows.ledger_head(self.time(ledger.now_ns), clocks)]
            for queue, number, weight, pending, tail, head, throttled_ns in ledger.lanes:
                times = (self.time(tail), self._head(head))
                parts.append(
                    rows.pack_ledger_lane(queue, number, weight, pending, *times, throttled_ns)
                )
            return b"".join(parts)
        if kind == rows.OPEN_BATCH_PREFIX:
            batch = batch_rows.read_open_batch(value)
            leased, expires = self.time(batch.leased_ns), self.time(batch.expires_ns)
            return batch_rows.open_batch_row(batch._replace(leased_ns=leased, expires_ns=expires))
        if kind == rows.VERSION_PREFIX:
            version = version_rows.read_version(value)
            return version_rows.version_row(version._replace(at_ns=self.time(version.at_ns)))
        if kind == rows.PAUSE_PREFIX:
            since_ns, active_ns, who, reason = pause_rows.read_pause(value)
            return pause_rows.pause_row(self.time(since_ns), self.time(active_ns), who, reason)
        if kind == rows.QUARANTINE_PREFIX:
            since_ns, cause = rows.read_quarantine(value)
            return rows.quarantine_row(self.time(since_ns), cause)
        return value
