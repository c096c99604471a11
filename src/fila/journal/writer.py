"""The journal's thread: takes committed events from the loop, writes them, never stops the broker.

The loop's thread packs events into bytes, about a thousand at a time: Python work, for which two
threads would only compete for the GIL. Columns, files and Parquet are made of them on the journal's
thread, nearly all with the GIL released and in few large steps: each step has to acquire the GIL
again at its end. When the disk cannot keep up, events are dropped and counted, and a journal_gap
row says how many; those in memory when the process is killed are reported by the next run.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from fila.core import effect
from fila.core.effect import Event
from fila.core.trail import Trail, trail_of
from fila.journal import files
from fila.journal.columns import Enqueued, compact_batch, config_batch, messages_batch
from fila.journal.files import HotFile, Stream
from fila.journal.mark import Mark
from fila.journal.packed import Packed
from fila.journal.recovery import GAP, gap_count, gap_event, recover

log = logging.getLogger("fila.journal")

_SETTINGS_EVENTS = frozenset(
    (effect.EVENT_CONFIG_CHANGED, effect.EVENT_QUEUE_CREATED, effect.EVENT_QUEUE_DELETED)
)
PACK_EVENTS = 1_000  # more in one go would push the broker's own data out of the caches
ENQUEUED_BYTES = 200  # beside the body of each message that waits
_RETIRE_EVERY_NS = 3_600 * 10**9


class JournalSettings(NamedTuple):
    path: Path
    broker: str = "fila"
    messages: bool = False  # keep headers and payloads, too
    flush_events: int = 50_000  # written at once when there are so many, else every flush_s
    flush_s: float = 0.25
    seal_events: int = 200_000
    seal_bytes: int = 16 * 1024 * 1024  # of a part that is not sealed, which is kept in memory
    seal_s: float = 60.0
    waiting_events_max: int = 500_000  # beyond this events are dropped, and counted
    waiting_bytes_max: int = 16 * 1024 * 1024  # the same for bodies
    retention_days: int = 7
    messages_retention_days: int = 1


class Status(NamedTuple):
    written: int
    waiting: int
    dropped: int
    sealed_parts: int
    waiting_bytes: int = 0


class Journal:
    def __init__(self, settings: JournalSettings, epoch: int, clock_ns: Callable[[], int]) -> None:
        self._settings = settings
        self.wants_messages = settings.messages
        # Well before there is no room for more.
        self._wake_events = min(settings.flush_events, settings.waiting_events_max // 4)
        self._epoch = epoch
        self._clock_ns = clock_ns
        self._fresh: list[Trail] = []  # not yet turned into columns
        self._fresh_rows = 0
        self._taken = _Taken()
        self._messages: deque[Enqueued] = deque()
        self._messages_bytes = 0
        self._waiting = 0
        self._dropped = 0
        self._gap = 0  # dropped, and not recorded in a row yet
        self._gap_since_ns = 0
        self._rows = 0  # taken: what the run should write
        self._last_ns = 0  # when the last of them happened
        self._mark: Mark | None = None
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stopping = False
        self._seq = 1
        self._written = 0
        self._sealed = 0
        self._tails: dict[str, _Tail] = {}
        self._retired_ns = 0
        self._complained = False
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)

    def start(self) -> None:
        """Seal what an earlier run left, then begin to write."""
        self._settings.path.mkdir(parents=True, exist_ok=True)
        parts = recover(self._settings.path)
        if parts:
            log.info("journal recovered", extra={"parts": len(parts)})
        self._mark = Mark(self._settings.path, self._settings.broker, self._epoch)
        self._thread.start()

    def record(self, trail: Trail) -> None:
        """Take committed events; called on the loop's thread, never waits."""
        count = len(trail)
        with self._lock:
            self._last_ns = trail.last_ns()
            if self._waiting + count > self._settings.waiting_events_max:
                self._dropped += count
                self._missed(count, trail.first_ns())
                return
            if self._gap:
                self._take(trail_of([self._gap_event(trail.first_ns())]))
            self._take(trail)
            if self._fresh_rows >= PACK_EVENTS:
                self._pack()
            if self._waiting < self._wake_events:
                return
        self._wake.set()

    def record_messages(
        self, queue: str, now_ns: int, ids: list[bytes], bodies: list[bytes]
    ) -> None:
        """Take committed messages with their bodies, if they are wanted. One request always fits,
        however large it is."""
        size = _bytes_of(bodies)
        bytes_max = self._settings.waiting_bytes_max
        with self._lock:
            if self._messages and self._messages_bytes + size > bytes_max:
                self._dropped += len(ids)
                return
            self._messages.append(Enqueued(queue, now_ns, ids, bodies))
            self._messages_bytes += size
            if self._messages_bytes < bytes_max // 4:
                return
        self._wake.set()

    def status(self) -> Status:
        with self._lock:
            return Status(
                self._written, self._waiting, self._dropped, self._sealed, self._messages_bytes
            )

    def close(self) -> None:
        """Write and seal everything that was recorded."""
        self._stopping = True
        self._wake.set()
        self._thread.join()
        if self._mark is not None:
            self._mark.close(whole=self._gap == 0 and self._seq == self._rows + 1)

    # --- what was taken and what was not, with the lock held

    def _take(self, trail: Trail) -> None:
        count = len(trail)
        self._fresh.append(trail)
        self._fresh_rows += count
        self._waiting += count
        self._rows += count
        self._note()

    def _pack(self) -> None:
        """Pack what was taken. Events that cannot be packed are missed."""
        trails, self._fresh = self._fresh, []
        rows, self._fresh_rows = self._fresh_rows, 0
        others = [one for trail in trails for one in trail.others]
        counts = [gap_count(one) for one in others] if self._dropped else []
        gaps = [one for one in others if one.event == GAP] if self._dropped else []
        since_ns = gaps[0].since_ns if gaps else trails[0].first_ns()
        events = rows - len(counts) + sum(counts)
        try:
            self._taken.packed.add(trails, counts)
        except Exception as error:
            log.error(f"events that cannot be written down: {error}")
            self._waiting -= rows
            self._lost(rows, events, len(gaps), since_ns)
        else:
            taken = self._taken
            taken.since_ns = taken.since_ns or since_ns
            taken.events += events
            taken.gaps += len(gaps)
            taken.changes += [one for one in others if one.event in _SETTINGS_EVENTS]

    def _lost(self, rows: int, events: int, gaps: int, since_ns: int) -> None:
        """Taken, and will not be written after all."""
        self._rows -= rows
        self._dropped += rows - gaps
        self._missed(events, since_ns)

    def _missed(self, count: int, since_ns: int) -> None:
        if self._gap == 0:
            self._gap_since_ns = since_ns
        self._gap += count
        self._note()

    def _gap_event(self, now_ns: int) -> Event:
        """A row that says how much was dropped."""
        event = gap_event(now_ns, self._gap_since_ns, self._gap)
        self._gap = self._gap_since_ns = 0
        return event

    def _note(self) -> None:
        if self._mark is not None:
            self._mark.set(self._rows, self._gap, self._gap_since_ns, self._last_ns)

    # --- the thread

    def _run(self) -> None:
        while True:
            self._wake.wait(self._settings.flush_s)
            self._wake.clear()
            stopping = self._stopping
            try:
                self._flush()
                for tail in list(self._tails.values()):
                    if stopping or tail.due(self._settings, self._clock_ns()):
                        self._seal(tail)
                self._retire()
                self._complained = False
            except Exception as error:
                if not self._complained:
                    log.error(f"the journal cannot be written: {error}; events are dropped")
                    self._complained = True
                self._tails.clear()
            if stopping:
                return

    def _flush(self) -> None:
        with self._lock:
            if self._gap and (self._stopping or not self._waiting):
                self._take(trail_of([self._gap_event(self._clock_ns())]))
            if self._fresh:
                self._pack()
            taken, self._taken = self._taken, _Taken()
            self._waiting = 0
        if taken.packed.rows:
            self._write_events(taken)
        self._write_settings(taken.changes)
        self._write_messages()

    def _write_events(self, taken: _Taken) -> None:
        rows = taken.packed.rows
        batch = None
        try:
            # Numbered when it is written: a batch that fails leaves no hole.
            batch = compact_batch(taken.packed, self._seq, self._settings.broker, self._epoch)
            self._append("events", batch)
        except Exception as error:
            with self._lock:
                self._lost(rows, taken.events, taken.gaps, taken.since_ns)
            if batch is not None:
                raise  # it is the disk
            log.error(f"events that cannot be written down: {error}")
            return
        self._seq += rows
        with self._lock:
            self._written += rows

    def _write_settings(self, changes: list[Event]) -> None:
        if changes:
            self._append("config", config_batch(changes, self._settings.broker, self._epoch))

    def _write_messages(self) -> None:
        """One enqueue after the other: each counts as waiting until it is written."""
        for _ in range(len(self._messages)):
            enqueued = self._messages[0]
            lost = len(enqueued.ids)
            try:
                self._append("messages", messages_batch(enqueued))
                lost = 0
                tail = self._tails["messages"]
                if tail.hot.bytes >= self._settings.seal_bytes:
                    self._seal(tail)
            finally:
                with self._lock:
                    self._messages.popleft()
                    self._messages_bytes -= _bytes_of(enqueued.bodies)
                    self._dropped += lost

    def _append(self, table: str, batch: Any) -> None:
        tail = self._tails.get(table)
        if tail is None:
            stream = Stream(table, self._settings.broker, self._epoch)
            hot = HotFile(self._settings.path, stream, self._clock_ns(), batch.schema)
            tail = self._tails[table] = _Tail(stream, hot, self._clock_ns())
        tail.hot.append(batch)

    def _seal(self, tail: _Tail) -> None:
        tail.hot.close()
        del self._tails[tail.stream.table]
        files.seal(self._settings.path, tail.stream, tail.hot.batches)
        tail.hot.path.unlink()
        with self._lock:
            self._sealed += 1

    def _retire(self) -> None:
        """Once an hour, remove days beyond the retention."""
        now_ns = self._clock_ns()
        if now_ns - self._retired_ns < _RETIRE_EVERY_NS:
            return
        self._retired_ns = now_ns
        today = datetime.fromtimestamp(now_ns / 1e9, UTC).date()
        for table, days in (
            ("events", self._settings.retention_days),
            ("config", self._settings.retention_days),
            ("messages", self._settings.messages_retention_days),
        ):
            files.retire(self._settings.path, table, (today - timedelta(days=days)).isoformat())


def _bytes_of(bodies: list[bytes]) -> int:
    return sum(map(len, bodies)) + ENQUEUED_BYTES * len(bodies)


class _Taken:
    """Events on their way to the disk."""

    def __init__(self) -> None:
        self.packed = Packed()
        self.events = 0  # that the rows stand for: more than rows where gaps are among them
        self.since_ns = 0  # when the first of them happened
        self.changes: list[Event] = []  # of settings, for a table of their own
        self.gaps = 0


class _Tail(NamedTuple):
    """The part of one table that is being written."""

    stream: Stream
    hot: HotFile
    since_ns: int

    def due(self, settings: JournalSettings, now_ns: int) -> bool:
        age_s = (now_ns - self.since_ns) / 1e9
        full = self.hot.rows >= settings.seal_events or self.hot.bytes >= settings.seal_bytes
        return full or age_s >= settings.seal_s
