"""Copies what can be read of a damaged store into a new one, and makes that one sound.

Owns the repairs: a message row that can be read is kept. One whose queue or lane row is lost gets a
queue `salvaged-N` or a key `salvaged-N`; one whose lease is lost is pending again. Lane counts are
counted again from the message rows, and what refers to rows that are gone goes too. The damaged
store is only read.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from fila.core import batch_rows, key_rows, rows
from fila.core.lane import DELAY_BIT
from fila.core.reader import Reader
from fila.core.row_batch import PUT, Op, RowBatch
from fila.core.settings import Settings
from fila.storage.contract import Store
from fila.storage.survey import Gap, pages

_OPS_MAX: Final = 2_048  # rows written at once
_UNREADABLE: Final = (rows.CorruptRowError, struct.error, IndexError, ValueError)


class Salvaged(NamedTuple):
    """What was copied, by family, and what could not be, in words."""

    rows: dict[str, int]
    losses: list[str]


class _Lane:
    """What the message rows of a lane say."""

    def __init__(self, row: rows.LaneRow | None) -> None:
        self.row = row
        self.pending = 0
        self.head = 0
        self.tail = row.tail if row is not None else 0

    def count(self, stamp: int, leased: bool, delayed: bool) -> None:
        self.tail = max(self.tail, stamp)
        if not leased:
            if not self.pending:
                self.head = stamp | (DELAY_BIT if delayed else 0)
            self.pending += 1


def salvage(
    damaged: Reader, into: Store, progress: Callable[[str, int], None] | None = None
) -> Salvaged:
    """Copy everything readable; `progress` hears of a family and how many rows were copied."""
    return _Salvage(damaged, into, progress or (lambda family, count: None)).run()


class _Salvage:
    def __init__(self, damaged: Reader, into: Store, progress: Callable[[str, int], None]) -> None:
        self._damaged = damaged
        self._into = into
        self._progress = progress
        self._ops: list[Op] = []
        self._copied: dict[str, int] = {}
        self._losses: list[str] = []
        self._queues: dict[int, tuple[str, rows.QueueRow]] = {}
        self._expected: dict[tuple[int, int], int] = {}  # messages a lane counted, leased ones too
        self._lanes: dict[tuple[int, int], _Lane] = {}
        self._ledgers: dict[int, tuple[int, rows.LedgerRow]] = {}
        self._batches: list[tuple[bytes, bytes]] = []
        self._leased: dict[bytes, tuple[int, int]] = {}  # message key → its lease
        self._leases: dict[tuple[int, int], bytes] = {}
        self._holding: set[tuple[int, int]] = set()  # leases that hold a message

    def run(self) -> Salvaged:
        self._read_queues()
        self._read_state()
        self._read_leases()
        self._copy_messages()
        self._write_queues()
        self._write_leases()
        self._write_lanes()
        self._copy_idempotency()
        for key, value in self._readable(rows.AUTH):
            self._put(rows.AUTH, key, value)
        self._flush()
        self._into.sync()
        return Salvaged(self._copied, self._losses)

    # --- reading

    def _readable(self, family: int) -> Iterator[tuple[bytes, bytes]]:
        name = rows.FAMILIES[family]
        for part in pages(self._damaged, family):
            if isinstance(part, Gap):
                self._losses.append(f"{name}: {self._where(family, part)}: {part.why}")
            else:
                yield from part

    def _where(self, family: int, gap: Gap) -> str:
        if family == rows.MESSAGES and len(gap.start) >= 4:
            return f"some messages of queue {self._name(rows.owner_of_message(gap.start))}"
        return f"rows after {gap.start.hex()}" if gap.start else "the first rows"

    def _read_queues(self) -> None:
        for key, value in self._readable(rows.QUEUES):
            try:
                row = rows.read_queue(value)
                self._queues[row.number] = (key.decode(), row)
            except _UNREADABLE as error:
                self._losses.append(f"queues: row {key.hex()} does not parse: {error}")

    def _read_state(self) -> None:
        for key, value in self._readable(rows.STATE):
            try:
                self._read_state_row(key, value)
            except _UNREADABLE as error:
                self._losses.append(f"state: row {key.hex()} does not parse: {error}")
        for _, ledger in self._ledgers.values():
            for queue, lane, _, pending, tail, _, _ in ledger.lanes:
                self._expected[queue, lane] = pending
                found = self._lanes.get((queue, lane))
                if found is not None:
                    found.tail = max(found.tail, tail)

    def _read_state_row(self, key: bytes, value: bytes) -> None:
        kind = rows.kind_of(key)
        if kind == rows.LANE_PREFIX:
            at = (rows.owner_of_state(key), rows.lane_number(key))
            row = rows.read_lane(value)
            self._lanes[at] = _Lane(row)
            self._expected[at] = row.pending
        elif kind == rows.LEDGER_PREFIX:
            group = rows.owner_of_state(key)
            ledger = rows.read_ledger(value)
            before = self._ledgers.get(group)
            if before is not None:  # newer mentions count, older ones where there are none
                ledger = ledger._replace(lanes=before[1].lanes + ledger.lanes)
            self._ledgers[group] = (rows.ledger_position(key), ledger)
        elif kind == rows.OPEN_BATCH_PREFIX:
            batch_rows.read_open_batch(value)
            self._batches.append((key, value))
        elif kind == rows.QUARANTINE_PREFIX:
            pass  # what is copied is made sound
        elif key != rows.NEXT_QUEUE_KEY:
            self._put(rows.STATE, key, value)

    def _read_leases(self) -> None:
        for key, value in self._readable(rows.LEASES):
            try:
                row = rows.read_lease(value)
            except _UNREADABLE as error:
                self._losses.append(f"leases: row {key.hex()} does not parse: {error}")
                continue
            lease = (rows.owner_of_message(key), rows.lease_number(key))
            self._leases[lease] = value
            for tail in row.messages:
                self._leased.setdefault(rows.leased_message(key, tail), lease)

    # --- writing

    def _copy_messages(self) -> None:
        for key, value in self._readable(rows.MESSAGES):
            try:
                queue, number, stamp, _ = rows.MESSAGE_KEY.unpack(key)
                stall_ns = rows.MESSAGE_HEAD.unpack_from(rows.message_row(value))[5]
            except _UNREADABLE as error:
                self._losses.append(f"messages: row {key.hex()} does not parse: {error}")
                continue
            lane = self._lanes.get((queue, number))
            if lane is None:
                lane = self._lanes[queue, number] = _Lane(None)
            lease = self._leased.get(key)
            if lease is not None:
                self._holding.add(lease)
            lane.count(stamp, lease is not None, stall_ns < 0)
            self._put(rows.MESSAGES, key, value)

    def _write_queues(self) -> None:
        for queue in sorted({number for number, _ in self._lanes} - self._queues.keys()):
            if not any(lane.pending for at, lane in self._lanes.items() if at[0] == queue):
                continue
            name = f"salvaged-{queue}"
            visibility_ms = Settings().visibility_ms_default
            row = rows.QueueRow(queue, self._free_group(), visibility_ms, 0, None, None)
            self._queues[queue] = (name, row)
            self._losses.append(f'queues: the row of queue number {queue}; now "{name}"')
        for name, row in self._queues.values():
            self._put(rows.QUEUES, name.encode(), rows.queue_row(row))
        groups = [row.group for _, row in self._queues.values()]
        following = max([0, *self._queues, *groups]) + 1
        self._put(rows.STATE, rows.NEXT_QUEUE_KEY, following.to_bytes(4, "big"))

    def _free_group(self) -> int:
        taken = {row.group for _, row in self._queues.values()}
        return max([*taken, *self._queues, 0]) + 1

    def _write_leases(self) -> None:
        for lease in sorted(self._holding):
            self._put(rows.LEASES, rows.lease_key(*lease), self._leases[lease])
        for key, value in self._batches:
            queue = rows.owner_of_state(key)
            row = batch_rows.read_open_batch(value)
            kept = [number for number in row.leases if (queue, number) in self._holding]
            if kept:
                self._put(rows.STATE, key, batch_rows.open_batch_row(row._replace(leases=kept)))

    def _write_lanes(self) -> None:
        for (queue, number), lane in sorted(self._lanes.items()):
            row = lane.row
            if row is None:
                key = f"salvaged-{number}".encode()
                row = rows.LaneRow(1, 0, 0, 0, 0, key, ())
                self._losses.append(
                    f"state: whose messages lane {number} of queue {self._name(queue)} holds; "
                    f'now of the key "{key.decode()}"'
                )
            missing = self._expected.get((queue, number), 0) - lane.pending
            if missing > 0:
                self._losses.append(
                    f"messages: {missing} of queue {self._name(queue)}, "
                    f"key {row.fairness_key.decode(errors='replace')!r}"
                )
            row = row._replace(pending=lane.pending, head=lane.head, tail=lane.tail)
            self._put(rows.STATE, rows.lane_key(queue, number), rows.lane_row(row))
        for group in {0, *(row.group for _, row in self._queues.values())}:
            position, ledger = self._ledgers.get(group, (0, rows.LedgerRow(0, [], [])))
            head = rows.ledger_head(ledger.now_ns, ledger.clocks)
            self._put(rows.STATE, rows.ledger_key(group, position + 1), head)

    def _copy_idempotency(self) -> None:
        known: set[bytes] = set()
        windows: dict[int, tuple[int, int]] = {}
        written: set[int] = set()
        for key, value in self._readable(rows.IDEMPOTENCY):  # known keys first, then their order
            queue = rows.owner_of_state(key)
            kind = rows.kind_of(key)
            if kind == key_rows.KNOWN_KEY_PREFIX:
                known.add(key)
            elif kind == key_rows.KEY_ORDER_PREFIX:
                if key_rows.known_key_of(key, value) not in known:
                    continue
                number = key_rows.key_order_number(key)
                first, following = windows.get(queue, (number, number))
                windows[queue] = (min(first, number), max(following, number + 1))
            else:
                written.add(queue)
            self._put(rows.IDEMPOTENCY, key, value)
        for queue, window in windows.items():
            if queue not in written:
                row = key_rows.key_window_row(*window)
                at = key_rows.KEY_WINDOW_PREFIX + rows.queue_prefix(queue)
                self._put(rows.IDEMPOTENCY, at, row)

    def _put(self, family: int, key: bytes, value: bytes) -> None:
        self._ops.append((PUT | family, key, value))
        name = rows.FAMILIES[family]
        self._copied[name] = self._copied.get(name, 0) + 1
        if len(self._ops) >= _OPS_MAX:
            self._progress(name, self._copied[name])
            self._flush()

    def _flush(self) -> None:
        if self._ops:
            self._into.write([RowBatch(0, 0, self._ops)])
            self._ops = []

    def _name(self, queue: int) -> str:
        found = self._queues.get(queue)
        return f'"{found[0]}"' if found is not None else f"number {queue}"
