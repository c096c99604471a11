"""Checks a store that is not in use: every row is readable and agrees with the others.

Owns the rules a sound store obeys: all rows readable, by scan and by key; each parses; lane counts
equal message rows; leases hold messages that exist, each message at most once; batches hold leases
that exist; ledger positions follow one another; idempotency numbers and keys belong together.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable
from typing import Final, NamedTuple

from fila.core import (
    aging_rows,
    batch_rows,
    key_rows,
    override,
    pause_rows,
    reclassify_rows,
    rows,
    version_rows,
)
from fila.core.entry import id_of
from fila.core.load import load
from fila.core.reader import Reader
from fila.core.settings import Settings
from fila.storage.contract import StoreDamagedError
from fila.storage.survey import Gap, pages

FINDINGS_MAX: Final = 1_000  # more are counted, not listed


class Report(NamedTuple):
    """How many rows each family has, and what is wrong."""

    rows: dict[str, int]
    findings: list[str]
    more: int  # findings that are not listed

    @property
    def sound(self) -> bool:
        return not self.findings


def verify(reader: Reader, progress: Callable[[str, int], None] | None = None) -> Report:
    """Look at every row; `progress` hears of a family and how many rows of it were read."""
    return _Verification(reader, progress or (lambda family, count: None)).run()


class _Verification:
    def __init__(self, reader: Reader, progress: Callable[[str, int], None]) -> None:
        self._reader = reader
        self._progress = progress
        self._findings: list[str] = []
        self._more = 0
        self._rows: dict[str, int] = {}
        self._queues: dict[int, str] = {}
        self._lanes: set[tuple[int, int]] = set()
        self._leases: set[tuple[int, int]] = set()
        self._leased: dict[bytes, tuple[int, int]] = {}  # message key → its lease
        self._held: Counter[tuple[int, int]] = Counter()  # messages found, by lease
        self._stored: Counter[tuple[int, int]] = Counter()  # messages found, by lane
        self._known: set[bytes] = set()  # keys of the rows of idempotency keys
        self._positions: dict[int, int] = {}  # group → last ledger position
        self._batches: list[tuple[int, str, list[int]]] = []

    def run(self) -> Report:
        self._read(rows.DEFAULT, self._format)
        self._read(rows.QUEUES, self._queue)
        self._read(rows.STATE, self._state)
        self._read(rows.LEASES, self._lease)
        self._read(rows.MESSAGES, self._message)
        self._read(rows.IDEMPOTENCY, self._idempotency)
        self._read(rows.AUTH, lambda key, value: None)
        for queue, name, leases in self._batches:
            for number in leases:
                if (queue, number) not in self._leases:
                    self._find(f'batch "{name}" of {self._name(queue)} holds no lease {number}')
        for (queue, number), held in self._held.items():
            if not held:
                self._find(f"lease {number} of {self._name(queue)} holds no message")
        self._counts()
        return Report(self._rows, self._findings, self._more)

    def _read(self, family: int, check: Callable[[bytes, bytes], None]) -> None:
        name = rows.FAMILIES[family]
        count = 0
        for part in pages(self._reader, family):
            if isinstance(part, Gap):
                self._find(f"{name}: rows after {part.start.hex() or 'the first'}: {part.why}")
                continue
            for key, value in part:
                try:
                    check(key, value)
                except (rows.CorruptRowError, struct.error, IndexError, ValueError) as error:
                    self._find(f"{name}: row {key.hex()} does not parse: {error}")
            self._by_key(family, [key for key, _ in part])
            count += len(part)
            self._progress(name, count)
        self._rows[name] = count

    def _by_key(self, family: int, keys: list[bytes]) -> None:
        """Reads by key go through filters that scans never touch."""
        try:
            found = self._reader.get_many(family, keys)
        except StoreDamagedError as error:
            self._find(f"{rows.FAMILIES[family]}: a row cannot be read by its key: {error}")
            return
        missing = [key for key, value in zip(keys, found, strict=True) if value is None]
        for key in missing:
            self._find(f"{rows.FAMILIES[family]}: row {key.hex()} is not found by its key")

    # --- one row each

    def _format(self, key: bytes, value: bytes) -> None:
        if key == rows.FORMAT_KEY and int.from_bytes(value, "big") != rows.FORMAT_VERSION:
            self._find(f"the store has format {int.from_bytes(value, 'big')}")

    def _queue(self, key: bytes, value: bytes) -> None:
        row = rows.read_queue(value)
        name = key.decode()
        if row.number in self._queues:
            self._find(f'queues "{self._queues[row.number]}" and "{name}" share a number')
        self._queues[row.number] = name

    def _state(self, key: bytes, value: bytes) -> None:
        kind = rows.kind_of(key)
        if kind == rows.CONFIG_PREFIX:
            rows.config_name(key)
            value.decode()
        elif kind == rows.BUCKET_PREFIX:
            rows.read_bucket(value)
        elif kind == rows.LANE_PREFIX:
            rows.read_lane(value)
            self._lanes.add((rows.owner_of_state(key), rows.lane_number(key)))
        elif kind == rows.LEDGER_PREFIX:
            self._ledger(rows.owner_of_state(key), rows.ledger_position(key), value)
        elif kind == rows.OPEN_BATCH_PREFIX:
            batch = batch_rows.read_open_batch(value)
            name = batch_rows.open_batch_name(key)
            self._batches.append((rows.owner_of_state(key), name, batch.leases))
        elif kind == rows.PAUSE_PREFIX:
            pause_rows.read_pause(value)
        elif kind == rows.QUARANTINE_PREFIX:
            rows.read_quarantine(value)
        elif kind == rows.OVERRIDE_PREFIX:
            override.check(key, value)
        elif kind == rows.SHOWN_PREFIX:
            rows.check_version(value[0], "shown", 1)
        elif kind == rows.RECLASSIFY_PREFIX:
            reclassify_rows.read_course(value)
        elif kind == rows.VERSION_PREFIX:
            version_rows.read_version(value)
        elif kind == rows.AGING_PREFIX:
            aging_rows.read(value)
        elif kind == rows.WEIGHT_PREFIX:
            if len(value) != rows.WEIGHT_BYTES:
                self._find(f"state: row {key.hex()} is no number of bytes")
        elif key != rows.NEXT_QUEUE_KEY:
            self._find(f"state: row {key.hex()} is of no known kind")

    def _ledger(self, group: int, position: int, value: bytes) -> None:
        rows.read_ledger(value)
        last = self._positions.get(group)
        if last is not None and position != last + 1:
            self._find(f"ledger of group {group}: {position} follows {last}")
        self._positions[group] = position

    def _lease(self, key: bytes, value: bytes) -> None:
        row = rows.read_lease(value)
        lease = (rows.owner_of_message(key), rows.lease_number(key))
        self._leases.add(lease)
        self._held[lease] = 0
        for tail in row.messages:
            if len(tail) != rows.LEASED_BYTES:
                self._find(f"lease {lease[1]} of {self._name(lease[0])} is cut off")
            self._leased.setdefault(rows.leased_message(key, tail), lease)

    def _message(self, key: bytes, value: bytes) -> None:
        queue, lane, _, _ = rows.MESSAGE_KEY.unpack(key)
        rows.check_message(value)
        if (queue, lane) not in self._lanes:
            self._find(f"message {id_of(key).hex()} of {self._name(queue)} has no lane")
        self._stored[queue, lane] += 1
        lease = self._leased.get(key)
        if lease is not None:
            self._held[lease] += 1

    def _idempotency(self, key: bytes, value: bytes) -> None:
        kind = rows.kind_of(key)
        if kind == key_rows.KNOWN_KEY_PREFIX:
            key_rows.read_known_key(value)
            self._known.add(key)
        elif kind == key_rows.KEY_ORDER_PREFIX:
            if key_rows.known_key_of(key, value) not in self._known:
                number = key_rows.key_order_number(key)
                queue = self._name(rows.owner_of_state(key))
                self._find(f"idempotency key number {number} of {queue} is unknown")
        elif kind == key_rows.KEY_WINDOW_PREFIX:
            key_rows.read_key_window(value)
        else:
            self._find(f"idempotency: row {key.hex()} is of no known kind")

    # --- all of them together

    def _counts(self) -> None:
        """What a broker would count after loading this store, against the rows there are."""
        try:
            machine = load(self._reader, Settings(), 0)
        except Exception as error:
            self._find(f"the store cannot be loaded: {error!r}")
            return
        apart = machine.view.quarantined
        for one in apart.values():
            self._find(f'queue "{one.name}" cannot be loaded: {one.cause}')
        counted = machine.view.messages_by_lane()
        for at in counted.keys() | self._stored.keys():
            queue_number, lane_number = at
            if self._queues.get(queue_number) in apart:
                continue
            if counted.get(at, 0) != self._stored[at]:
                self._find(
                    f"lane {lane_number} of {self._name(queue_number)} counts "
                    f"{counted.get(at, 0)} messages, the store has {self._stored[at]}"
                )

    def _name(self, queue: int) -> str:
        name = self._queues.get(queue)
        return f'queue "{name}"' if name is not None else f"queue number {queue}, which is unknown,"

    def _find(self, what: str) -> None:
        if len(self._findings) < FINDINGS_MAX:
            self._findings.append(what)
        else:
            self._more += 1
