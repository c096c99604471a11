"""Reading the journal: every event once, whatever state its files are in; compacting it."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fila.core.effect import EVENT_ACKED, Event
from fila.core.waits import Waits
from fila.journal import files, versions
from fila.journal.columns import events_batch
from fila.journal.files import HotFile, Stream
from fila.journal.schema import arrow_schema
from fila.spark import compact as compacting
from fila.spark.compact import compact, merges
from fila.spark.delays import delays
from fila.spark.doctor import FAILED, OK, WARNING, journal_checks
from fila.spark.events import JournalMissing, Part, covering, list_parts, read_events
from tests.core.turn import SECOND, START, id_of
from tests.spark.conftest import BROKER, EPOCH, write


def acked(count: int, first: int = 1) -> list[Event]:
    return [
        Event(START + n * SECOND, EVENT_ACKED, "q" if n % 2 else "other", id_of(n), 0, b"k")
        for n in range(first, first + count)
    ]


def hot(root: Path, events: list[Event], first_seq: int) -> HotFile:
    file = HotFile(root, Stream("events", BROKER, EPOCH), first_seq, arrow_schema("events"))
    file.append(events_batch(events, first_seq, BROKER, EPOCH))
    return file


def seqs(frame) -> list[int]:
    return sorted(row.seq for row in frame.select("seq").collect())


def test_sealed_parts_and_the_hot_tail_are_read_as_one(spark, tmp_path: Path) -> None:
    write(tmp_path, acked(10))
    file = hot(tmp_path, acked(5, 11), 11)
    assert seqs(read_events(spark, str(tmp_path))) == list(range(1, 16))
    file.close()


def test_rows_that_are_hot_and_sealed_at_once_are_read_once(spark, tmp_path: Path) -> None:
    write(tmp_path, acked(10))
    hot(tmp_path, acked(15), 1).close()
    assert seqs(read_events(spark, str(tmp_path))) == list(range(1, 16))


def test_a_hot_tail_that_was_cut_off_is_read_up_to_there(spark, tmp_path: Path) -> None:
    file = hot(tmp_path, acked(5), 1)
    file.append(events_batch(acked(5, 6), 6, BROKER, EPOCH))
    file.close()
    file.path.write_bytes(file.path.read_bytes()[:-200])
    assert seqs(read_events(spark, str(tmp_path))) == [1, 2, 3, 4, 5]


def test_half_written_parts_are_not_read(spark, tmp_path: Path) -> None:
    part = write(tmp_path, acked(3))[0]
    part.with_name(f".{part.name}.1.tmp").write_bytes(b"PAR1 and then nothing")
    assert seqs(read_events(spark, str(tmp_path))) == [1, 2, 3]


def test_times_and_queues_are_chosen(spark, tmp_path: Path) -> None:
    write(tmp_path, acked(10))
    begin = datetime.fromtimestamp(START / SECOND, UTC)
    start, end = begin + timedelta(seconds=3), begin + timedelta(seconds=7)
    assert seqs(read_events(spark, str(tmp_path), start, end)) == [3, 4, 5, 6]
    assert seqs(read_events(spark, str(tmp_path), start, end, "q")) == [3, 5]


def test_a_place_without_a_journal_is_said_to_be_none(spark, tmp_path: Path) -> None:
    with pytest.raises(JournalMissing, match=r"journal\.enabled"):
        read_events(spark, str(tmp_path))


def test_parts_another_one_holds_are_left_out() -> None:
    def part(first: int, last: int, epoch: int = 1) -> Part:
        return Part("b", epoch, first, last, "2026-01-01", f"{epoch}/{first}-{last}")

    small = [part(1, 10), part(11, 20), part(21, 30)]
    assert covering([*small, part(1, 20)]) == [part(1, 20), part(21, 30)]
    assert covering([*small, part(1, 10, epoch=2)]) == [*small, part(1, 10, epoch=2)]


def test_compacting_keeps_every_event_and_twice_changes_nothing(spark, tmp_path: Path) -> None:
    for first in (1, 11, 21):
        write(tmp_path, acked(10, first), first_seq=first)
    today = date(2100, 1, 1)
    before = read_events(spark, str(tmp_path))  # planned, and not read yet
    made = compact(spark, str(tmp_path), today).collect()
    assert [(row.parts, row.events) for row in made] == [(3, 30)]
    assert made[0].bytes_after < made[0].bytes_before
    assert seqs(before) == list(range(1, 31))
    assert seqs(read_events(spark, str(tmp_path))) == list(range(1, 31))
    assert len(list_parts(spark, str(tmp_path))) == 4
    # Once the grace is over, the next run removes what was merged.
    assert compact(spark, str(tmp_path), today, grace_s=0).collect() == []
    (part,) = list_parts(spark, str(tmp_path))
    assert seqs(read_events(spark, str(tmp_path))) == list(range(1, 31))
    versions.check(Path(part.path), needs=("ring_delta",))


def test_a_merged_part_is_smaller_and_of_whole_row_groups(tmp_path: Path, monkeypatch) -> None:
    """Parts of the size a broker seals; without Spark, as one of its tasks does it."""
    monkeypatch.setattr(files, "ROW_GROUP", 5_000)
    sources = []
    for first in range(1, 12_001, 3_000):
        sources += write(tmp_path, acked(3_000, first), first_seq=first)
    target = sources[0].with_name(f"part-{BROKER}-{EPOCH}-{1:012d}-{12_000:012d}.parquet")
    made = compacting._write(target, sources)
    assert made["events"] == 12_000
    assert made["bytes_after"] < made["bytes_before"]
    footer = pq.read_metadata(target)
    groups = [footer.row_group(at).num_rows for at in range(footer.num_row_groups)]
    assert groups == [5_000, 5_000, 2_000]
    assert pq.read_table(target)["seq"].to_pylist() == list(range(1, 12_001))


def test_a_compaction_that_was_cut_short_is_finished_by_the_next(spark, tmp_path: Path) -> None:
    write(tmp_path, acked(10))
    write(tmp_path, acked(20))  # the merged part is there, one it was made of not yet removed
    assert seqs(read_events(spark, str(tmp_path))) == list(range(1, 21))
    compact(spark, str(tmp_path), date(2100, 1, 1), grace_s=0)
    assert len(list_parts(spark, str(tmp_path))) == 1
    assert seqs(read_events(spark, str(tmp_path))) == list(range(1, 21))


def test_today_and_parts_with_a_hole_between_are_not_merged() -> None:
    def part(first: int, last: int, day: str = "2026-01-01") -> Part:
        return Part("b", 1, first, last, day, f"events/date={day}/part-b-1-{first}-{last}.parquet")

    today = date(2026, 1, 2)
    assert merges([part(1, 5, "2026-01-02"), part(6, 9, "2026-01-02")], today) == []
    assert merges([part(1, 5), part(7, 9)], today) == []
    found = merges([part(1, 5), part(6, 9), part(10, 12)], today, events_max=10)
    assert [[one.first for one in merge.parts] for merge in found] == [[1, 6]]


def test_the_doctor_sees_holes_and_gaps(spark, tmp_path: Path) -> None:
    write(tmp_path, acked(10))
    checks = {one.check: one.status for one in journal_checks(spark, str(tmp_path))}
    assert checks == {"journal": OK, "parts": OK, "gaps": OK}
    gap = events_batch(
        [Event(START + 99 * SECOND, "journal_gap", "", reason="7")], 21, BROKER, EPOCH, [7]
    )
    folder = next((tmp_path / "events").iterdir())
    pa.parquet.write_table(
        pa.Table.from_batches([gap]), folder / f"part-{BROKER}-{EPOCH}-{21:012d}-{21:012d}.parquet"
    )
    found = {one.check: one for one in journal_checks(spark, str(tmp_path))}
    assert (found["holes"].status, found["gaps"].status) == (FAILED, WARNING)
    assert found["holes"].found.startswith("10 events")
    assert found["gaps"].found.startswith("7 events")


def rewritten(path: Path, version: int, without: tuple[str, ...] = ()) -> None:
    """The part as another version of the broker would have left it."""
    table = pq.ParquetFile(path).read().drop_columns(list(without))
    metadata = {b"fila.journal.version": str(version).encode()}
    pq.write_table(table.replace_schema_metadata(metadata), path)


def test_a_journal_of_another_version_says_so_in_one_line(spark, tmp_path: Path, capsys) -> None:
    from fila.cli.main import main

    (path,) = write(tmp_path, acked(3))
    rewritten(path, 1, ("ring_delta", "queue_delivered"))
    assert read_events(spark, str(tmp_path)).count() == 3
    words = ["pipeline", "fairness", "--journal", str(tmp_path)]
    assert main(words) == 1
    said = capsys.readouterr().err.strip()
    assert "lacks ring_delta, queue_delivered" in said and "older Fila" in said
    assert len(said.splitlines()) == 1
    rewritten(path, 99)
    assert main(["pipeline", "latency", "--journal", str(tmp_path)]) == 1
    said = capsys.readouterr().err.strip()
    assert "newer Fila: its journal has version 99" in said
    assert len(said.splitlines()) == 1
    assert main(["journal", "stats", str(tmp_path)]) == 1
    assert "version 99" in capsys.readouterr().err


def test_a_part_with_a_column_missing_says_which(spark, tmp_path: Path, capsys) -> None:
    from fila.cli.main import main

    (path,) = write(tmp_path, acked(3))
    rewritten(path, 2, ("enqueued_at",))
    assert main(["pipeline", "latency", "--journal", str(tmp_path)]) == 1
    said = capsys.readouterr().err.strip()
    assert said.endswith("lacks enqueued_at: it is no whole part of a journal")
    assert len(said.splitlines()) == 1


def test_a_journal_from_before_busy_consumers_were_told_apart_is_read(
    spark, tmp_path: Path, capsys
) -> None:
    from fila.cli.main import main

    wait = Waits(0, 0, 7_000_000, 3_000_000, 0)
    event = Event(
        START + SECOND, "delivered", "q", bytes(16), fairness_key=b"k",
        since_ns=START + SECOND - 10_000_000, ready_ns=START + SECOND - 10_000_000, waits=wait,
    )  # fmt: skip
    (path,) = write(tmp_path, [event])
    rewritten(path, 2, ("wait_busy_own_us", "wait_busy_others_us"))
    (row,) = delays(read_events(spark, str(tmp_path))).collect()
    assert (row.no_consumer_ms, row.busy_own_ms, row.mostly) == (7.0, 0.0, "no_consumer")
    for words in (["journal", "tail"], ["journal", "stats"], ["pipeline", "delays", "--journal"]):
        assert main([*words, str(tmp_path)]) == 0, capsys.readouterr().err
    assert "no_consumer" in capsys.readouterr().out
