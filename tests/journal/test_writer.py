"""The journal's thread: everything recorded is written, or counted as lost."""

from __future__ import annotations

import shutil
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from fila.core.effect import EVENT_ENQUEUED, Event
from fila.core.trail import Trail, trail_of
from fila.journal import files, reader
from fila.journal.files import HotFile
from fila.journal.recovery import recover
from fila.journal.writer import Journal, JournalSettings


def events(count: int) -> Trail:
    return trail_of([Event(time.time_ns(), EVENT_ENQUEUED, "q", bytes(16)) for _ in range(count)])


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


def test_bodies_that_wait_are_bounded_in_bytes_and_one_request_always_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()
    append = HotFile.append

    def slow(self: HotFile, batch: Any) -> None:
        gate.wait()
        append(self, batch)

    monkeypatch.setattr(HotFile, "append", slow)
    writer = journal(tmp_path, messages=True, waiting_bytes_max=100_000, flush_s=0.01)

    def record(body_bytes: int, count: int = 1) -> None:
        body = b"\0\0" + body_bytes.to_bytes(4, "big") + bytes(body_bytes)
        writer.record_messages("q", time.time_ns(), [bytes(16)] * count, [body] * count)

    record(1_000_000)
    assert writer.status().waiting_bytes > 1_000_000
    record(10, count=3)
    assert writer.status().dropped == 3
    gate.set()
    wait_for(lambda: writer.status().waiting_bytes == 0)
    for _ in range(20):
        record(40_000)
    writer.close()
    dropped = writer.status().dropped
    sealed = [pq.read_metadata(path).num_rows for path in tmp_path.glob("messages/**/*.parquet")]
    assert sum(sealed) == 1 + 20 + 3 - dropped
    assert writer.status().waiting_bytes == 0


def test_a_part_with_payloads_is_sealed_by_its_bytes(tmp_path: Path) -> None:
    writer = journal(tmp_path, messages=True, seal_bytes=50_000, flush_s=0.01)
    for _ in range(10):
        body = b"\0\0" + (30_000).to_bytes(4, "big") + bytes(30_000)
        writer.record_messages("q", time.time_ns(), [bytes(16)], [body])
        wait_for(lambda: writer.status().waiting_bytes == 0)
    assert writer.status().sealed_parts >= 4  # long before the journal is closed
    writer.close()


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


def test_events_that_cannot_be_written_down_are_counted_and_the_others_written(
    tmp_path: Path,
) -> None:
    writer = journal(tmp_path, flush_s=0.01)
    writer.record(events(3))
    wait_for(lambda: writer.status().written == 3)
    writer.record(trail_of([Event(time.time_ns(), EVENT_ENQUEUED, "q", fairness_key=b"\xff")]))
    wait_for(lambda: writer.status().dropped == 1)
    writer.record(trail_of([Event(time.time_ns(), EVENT_ENQUEUED, "q", weight=1 << 80)]))
    wait_for(lambda: writer.status().dropped == 2)
    writer.record(events(5))
    writer.close()
    found = reader.totals(tmp_path)
    assert (found.lost, found.parts) == (2, 1)
    assert found.counts == {("q", "enqueued"): 8}


def test_little_room_is_emptied_before_it_is_full(tmp_path: Path) -> None:
    writer = journal(tmp_path, waiting_events_max=4_000, flush_s=60.0)
    for _ in range(20):
        writer.record(events(500))
        wait_for(lambda: writer.status().waiting < 1_000)
    assert writer.status().dropped == 0
    writer.close()


def killed(path: Path, as_found_in: Path) -> Path:
    """The journal as a kill at this moment would leave it: what the system has, no lock."""
    return Path(shutil.copytree(path, as_found_in))


def test_a_new_run_seals_what_the_old_one_left(tmp_path: Path) -> None:
    old = journal(tmp_path / "old", flush_s=0.01)
    old.record(events(3))
    wait_for(lambda: old.status().written == 3)
    left = killed(tmp_path / "old", tmp_path / "left")
    new = Journal(JournalSettings(left), 2, time.time_ns)
    new.start()
    found = reader.totals(left)
    assert (found.parts, found.lost) == (1, 0)
    new.close()
    old.close()


@pytest.mark.parametrize("flushed", [0, 4])
def test_what_a_kill_took_is_counted_to_the_event(tmp_path: Path, flushed: int) -> None:
    old = journal(tmp_path / "old", flush_s=0.01 if flushed else 60.0)
    if flushed:
        old.record(events(flushed))
        wait_for(lambda: old.status().written == flushed)
        old._settings = old._settings._replace(flush_s=60.0)
        time.sleep(0.05)
    old.record(events(7))
    old.record(events(2))
    left = killed(tmp_path / "old", tmp_path / "left")
    assert len(recover(left)) == 1
    found = reader.totals(left)
    assert found.lost == 9
    assert found.counts == ({("q", "enqueued"): flushed} if flushed else {})
    (gap,) = [
        row
        for table in reader.events(left)
        for row in table.to_pylist()
        if row["event"] == "journal_gap"
    ]
    assert (gap["seq"], gap["reason"]) == (flushed + 1, "9 killed")
    assert gap["since"] <= gap["ts"]
    assert recover(left) == []
    old.close()


def test_a_recovery_that_was_killed_is_done_again_to_the_same_end(tmp_path: Path) -> None:
    old = journal(tmp_path / "old", flush_s=60.0)
    old.record(events(5))
    left = killed(tmp_path / "old", tmp_path / "left")
    (mark,) = (left / "_hot").glob("*.mark")
    kept = mark.read_bytes()
    recover(left)
    mark.write_bytes(kept)  # as if it had died before it tidied up
    recover(left)
    found = reader.totals(left)
    assert (found.lost, found.parts) == (5, 1)
    old.close()


def test_a_living_run_is_left_alone_by_a_recovery(tmp_path: Path) -> None:
    writer = journal(tmp_path, flush_s=0.01)
    writer.record(events(3))
    wait_for(lambda: writer.status().written == 3)
    assert recover(tmp_path) == []
    writer.record(events(2))
    writer.close()
    assert reader.totals(tmp_path).counts == {("q", "enqueued"): 5}
    assert list((tmp_path / "_hot").iterdir()) == []


def test_what_was_dropped_when_the_kill_came_is_counted_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()
    append = HotFile.append

    def slow(self: HotFile, batch: Any) -> None:
        gate.wait()
        append(self, batch)

    monkeypatch.setattr(HotFile, "append", slow)
    old = journal(tmp_path / "old", waiting_events_max=100, flush_s=0.01)
    old.record(events(50))
    wait_for(lambda: old.status().waiting == 0)
    old.record(events(80))
    old.record(events(40))  # no room
    left = killed(tmp_path / "old", tmp_path / "left")
    recover(left)
    assert reader.totals(left).lost == 170
    gate.set()
    old.close()
    assert reader.totals(tmp_path / "old").lost == 40
