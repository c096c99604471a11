"""The journal's thread: everything recorded is written, or counted as lost."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from fila.core.effect import ENQUEUED, Event
from fila.journal import files, reader
from fila.journal.files import HotFile
from fila.journal.writer import Journal, JournalSettings


def events(count: int) -> list[Event]:
    return [Event(time.time_ns(), ENQUEUED, "q", bytes(16)) for _ in range(count)]


def journal(path: Path, **settings: Any) -> Journal:
    made = Journal(JournalSettings(path, **settings), 1, time.time_ns)
    made.start()
    return made


def wait_for(condition: Any) -> None:
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


def test_what_was_recorded_is_sealed_at_the_end(tmp_path: Path) -> None:
    writer = journal(tmp_path)
    for _ in range(5):
        writer.record(events(700))
    writer.close()
    assert reader.totals(tmp_path).counts == {("q", "enqueued"): 3_500}
    assert files.hot_files(tmp_path) == []


def test_events_can_be_read_soon_after_they_happened(tmp_path: Path) -> None:
    writer = journal(tmp_path, flush_s=0.02)
    writer.record(events(3))
    wait_for(lambda: reader.totals(tmp_path).counts.get(("q", "enqueued")) == 3)
    assert reader.totals(tmp_path).parts == 0
    writer.close()


def test_readers_never_see_half_a_part(tmp_path: Path) -> None:
    writer = journal(tmp_path, flush_s=0.005, seal_s=0.01)
    last = 0
    for _ in range(60):
        writer.record(events(200))
        found = reader.totals(tmp_path).counts.get(("q", "enqueued"), 0)
        assert found >= last
        last = found
    writer.close()
    assert reader.totals(tmp_path).counts[("q", "enqueued")] == 12_000


def test_a_slow_disk_makes_a_counted_gap_and_stops_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()
    append = HotFile.append

    def slow(self: HotFile, batch: Any) -> None:
        gate.wait()
        append(self, batch)

    monkeypatch.setattr(HotFile, "append", slow)
    writer = journal(tmp_path, waiting_events_max=100, flush_s=0.01)
    writer.record(events(50))
    wait_for(lambda: writer.status().waiting == 0)  # the thread holds them, and is stuck
    writer.record(events(80))
    for _ in range(10):
        writer.record(events(40))  # no room: dropped, without waiting
    assert writer.status().dropped == 400
    gate.set()
    wait_for(lambda: writer.status().waiting == 0)
    writer.record(events(1))
    writer.close()
    found = reader.totals(tmp_path)
    assert found.lost == 400
    assert found.counts == {("q", "enqueued"): 131}


def test_a_disk_that_fails_loses_events_but_not_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = HotFile.append
    broken = True

    def failing(self: HotFile, batch: Any) -> None:
        if broken:
            raise OSError(28, "No space left on device")
        append(self, batch)

    monkeypatch.setattr(HotFile, "append", failing)
    writer = journal(tmp_path, flush_s=0.01)
    writer.record(events(30))
    wait_for(lambda: writer.status().dropped == 30)
    broken = False
    writer.record(events(5))
    writer.close()
    found = reader.totals(tmp_path)
    assert found.lost == 30
    assert found.counts == {("q", "enqueued"): 5}


def test_a_new_run_seals_what_the_old_one_left(tmp_path: Path) -> None:
    old = journal(tmp_path, flush_s=0.01)
    old.record(events(3))
    wait_for(lambda: old.status().written == 3)
    new = Journal(JournalSettings(tmp_path), 2, time.time_ns)  # the old one was killed
    new.start()
    assert reader.totals(tmp_path).parts == 1
    new.close()
