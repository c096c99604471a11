"""The journal's thread: takes committed events from the loop, writes them, never stops the broker.

The loop only appends to a list. When the disk cannot keep up, events are dropped, counted, and a
journal_gap row tells how many.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from fila.core.effect import Event
from fila.journal import files
from fila.journal.columns import events_batch
from fila.journal.files import HotFile, Stream
from fila.journal.schema import arrow_schema

log = logging.getLogger("fila.journal")

GAP = "journal_gap"
_DAY_S = 86_400


class JournalSettings(NamedTuple):
    path: Path
    broker: str = "fila"
    flush_events: int = 2_000
    flush_s: float = 0.25
    seal_events: int = 200_000
    seal_s: float = 60.0
    waiting_events_max: int = 500_000  # beyond this events are dropped, and counted
    retention_days: int = 7


class Status(NamedTuple):
    written: int
    waiting: int
    dropped: int
    sealed_parts: int


class Journal:
    def __init__(self, settings: JournalSettings, epoch: int, clock_ns: Callable[[], int]) -> None:
        self._settings = settings
        self._stream = Stream("events", settings.broker, epoch)
        self._clock_ns = clock_ns
        self._inbox: deque[list[Event]] = deque()
        self._waiting = 0
        self._dropped = 0
        self._gap = 0  # dropped since the last event that was taken
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stopping = False
        self._seq = 1
        self._written = 0
        self._sealed = 0
        self._hot: HotFile | None = None
        self._hot_since_ns = 0
        self._retired_ns = 0
        self._complained = False
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)

    def start(self) -> None:
        """Seal what an earlier run left, then begin to write."""
        self._settings.path.mkdir(parents=True, exist_ok=True)
        parts = files.recover(self._settings.path)
        if parts:
            log.info("journal recovered", extra={"parts": len(parts)})
        self._thread.start()

    def record(self, events: list[Event]) -> None:
        """Take committed events; called on the loop's thread, never waits."""
        count = len(events)
        with self._lock:
            if self._waiting + count > self._settings.waiting_events_max:
                self._dropped += count
                self._gap += count
                return
            if self._gap:
                gap = Event(events[0].ts_ns, GAP, "", reason=str(self._gap))
                self._inbox.append([gap])
                self._waiting += 1
                self._gap = 0
            self._inbox.append(events)
            self._waiting += count
            waiting = self._waiting
        if waiting >= self._settings.flush_events:
            self._wake.set()

    def status(self) -> Status:
        with self._lock:
            return Status(self._written, self._waiting, self._dropped, self._sealed)

    def close(self) -> None:
        """Write and seal everything that was recorded."""
        self._stopping = True
        self._wake.set()
        self._thread.join()

    # --- the thread

    def _run(self) -> None:
        while True:
            self._wake.wait(self._settings.flush_s)
            self._wake.clear()
            stopping = self._stopping
            try:
                self._flush()
                if self._hot is not None and (stopping or self._due()):
                    self._seal(self._hot)
                self._retire()
                self._complained = False
            except Exception as error:
                if not self._complained:
                    log.error(f"journal cannot be written: {error}; events are being dropped")
                    self._complained = True
                self._hot = None
            if stopping:
                return

    def _flush(self) -> None:
        with self._lock:
            taken, self._inbox = self._inbox, deque()
            self._waiting = 0
            if self._gap and not taken:
                taken.append([Event(self._clock_ns(), GAP, "", reason=str(self._gap))])
                self._gap = 0
        events = [event for group in taken for event in group]
        try:
            # In pieces, so that the loop's thread gets the interpreter in between.
            for start in range(0, len(events), self._settings.flush_events):
                self._write(events[start : start + self._settings.flush_events])
        except Exception:
            with self._lock:
                self._dropped += len(events)
                self._gap += len(events)
            raise

    def _write(self, events: list[Event]) -> None:
        counts = [int(one.reason) if one.event == GAP else 1 for one in events]
        batch = events_batch(events, self._seq, self._stream.broker, self._stream.epoch, counts)
        if self._hot is None:
            schema = arrow_schema("events")
            self._hot = HotFile(self._settings.path, self._stream, self._seq, schema)
            self._hot_since_ns = self._clock_ns()
        self._hot.append(batch)
        self._seq += len(events)
        with self._lock:
            self._written += len(events)

    def _due(self) -> bool:
        hot = self._hot
        if hot is None:
            return False
        age_s = (self._clock_ns() - self._hot_since_ns) / 1e9
        return hot.rows >= self._settings.seal_events or age_s >= self._settings.seal_s

    def _seal(self, hot: HotFile) -> None:
        hot.close()
        self._hot = None
        files.seal(self._settings.path, self._stream, hot.batches)
        hot.path.unlink()
        with self._lock:
            self._sealed += 1

    def _retire(self) -> None:
        """Once an hour, remove days beyond the retention."""
        now_ns = self._clock_ns()
        if now_ns - self._retired_ns < 3_600 * 10**9:
            return
        self._retired_ns = now_ns
        today = datetime.fromtimestamp(now_ns / 1e9, UTC).date()
        keep_from = today - timedelta(days=self._settings.retention_days)
        files.retire(self._settings.path, "events", keep_from.isoformat())
