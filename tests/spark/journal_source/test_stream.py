"""`readStream.format("fila-journal")`: every event exactly once, whatever happens to its file."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from fila.core.trail import trail_of
from fila.journal import files
from fila.journal.columns import compact_batch, events_batch
from fila.journal.files import HotFile, Stream
from fila.journal.packed import Packed
from fila.spark.compact import compact
from fila.spark.events import events_schema
from fila.spark.journal_source.inventory import pieces
from fila.spark.journal_source.options import parse
from fila.spark.journal_source.stream_reader import JournalStreamReader
from tests.spark.conftest import BROKER, EPOCH, write
from tests.spark.test_events import acked, hot

Query = Callable[..., list[tuple[str, int, int]]]


@pytest.fixture
def drained(spark, tmp_path: Path) -> Query:
    """Runs a stream over the journal until it has all there is; what its files hold then."""

    def run(root: Path, name: str = "out", **options: object) -> list[tuple[str, int, int]]:
        target = tmp_path / name
        reader = spark.readStream.format("fila-journal").options(**options)
        query = (
            reader.load(str(root)).writeStream.format("parquet").option("path", str(target))
            .option("checkpointLocation", str(tmp_path / f"{name}-checkpoint"))
            .trigger(availableNow=True).start()
        )  # fmt: skip
        query.awaitTermination()
        run.progress = query.recentProgress  # type: ignore[attr-defined]
        rows = spark.read.parquet(str(target)).select("broker", "epoch", "seq").collect()
        return sorted(tuple(row) for row in rows)

    return run


def numbered(count: int, first: int = 1, epoch: int = EPOCH, broker: str = BROKER) -> list[Any]:
    return [(broker, epoch, seq) for seq in range(first, first + count)]


def journal_of(tmp_path: Path) -> Path:
    root = tmp_path / "journal"
    root.mkdir(exist_ok=True)
    return root


def test_sealed_parts_and_the_hot_tail_are_one_stream(drained: Query, tmp_path: Path) -> None:
    root = journal_of(tmp_path)
    write(root, acked(10))
    tail = hot(root, acked(5, 11), 11)
    assert drained(root) == numbered(15)
    tail.append(events_batch(acked(2, 16), 16, BROKER, EPOCH))
    assert drained(root) == numbered(17)
    tail.close()
    files.seal(root, Stream("events", BROKER, EPOCH), tail.batches)
    assert drained(root) == numbered(17)  # sealed, and still hot
    tail.path.unlink()
    write(root, acked(3, 18), first_seq=18)
    assert drained(root) == numbered(20)


def test_a_stream_over_parts_that_are_merged_meanwhile_sees_no_row_twice(
    spark, drained: Query, tmp_path: Path
) -> None:
    root = journal_of(tmp_path)
    for at in range(4):
        write(root, acked(10, 1 + at * 10), first_seq=1 + at * 10)
    assert drained(root, maxEventsPerBatch=15) == numbered(40)
    compact(spark, str(root), date(2100, 1, 1))
    assert drained(root) == numbered(40)  # both are there
    compact(spark, str(root), date(2100, 1, 1), grace_s=0)
    assert len(pieces((str(root),))) == 1
    assert drained(root) == numbered(40)
    write(root, acked(5, 41), first_seq=41)
    assert drained(root) == numbered(45)


def test_a_file_that_comes_late_is_waited_for(drained: Query, tmp_path: Path) -> None:
    root = journal_of(tmp_path)
    write(root, acked(10))
    (late,) = write(root, acked(10, 11), first_seq=11)
    write(root, acked(10, 21), first_seq=21)
    aside = tmp_path / "aside"
    late.rename(aside)
    assert drained(root) == numbered(10)
    aside.rename(late)
    assert drained(root) == numbered(30)


def test_a_file_that_never_comes_is_a_row_that_says_so(
    spark, drained: Query, tmp_path: Path
) -> None:
    root = journal_of(tmp_path)
    write(root, acked(10))
    drained(root)
    write(root, acked(10, 21), first_seq=21)
    assert drained(root, lateFileSeconds=0) == [*numbered(10), *numbered(11, 20)]
    found = spark.read.parquet(str(tmp_path / "out")).where("event = 'journal_gap'").collect()
    assert [(row.seq, row.events, row.reason) for row in found] == [(20, 10, "10 missing")]
    assert found[0].since < found[0].ts


def test_brokers_and_journals_are_one_stream(drained: Query, tmp_path: Path) -> None:
    root, other = journal_of(tmp_path), tmp_path / "other"
    other.mkdir()
    write(root, acked(10))
    write(root, acked(4), epoch=2)
    files.seal(other, Stream("events", "b2", 1), [events_batch(acked(6), 1, "b2", 1)])
    expected = [*numbered(6, broker="b2"), *numbered(10), *numbered(4, epoch=2)]
    assert drained(root, paths=str(other), maxEventsPerBatch=4) == sorted(expected)


def test_batches_are_limited_and_the_lag_is_told(drained: Query, tmp_path: Path) -> None:
    root = journal_of(tmp_path)
    write(root, acked(100))
    assert drained(root, maxEventsPerBatch=30, eventsPerTask=10) == numbered(100)
    told = [one.json if hasattr(one, "json") else json.dumps(one) for one in drained.progress]  # type: ignore[attr-defined]
    sources = [json.loads(one)["sources"][0] for one in told]
    assert [one["numInputRows"] for one in sources] == [30, 30, 30, 10]
    lag = [one["latestOffset"] for one in sources]
    lag = [json.loads(one) if isinstance(one, str) else one for one in lag]
    assert [one["behind"] for one in lag] == [70, 40, 10, 0]


def test_a_stream_may_begin_with_what_comes(drained: Query, tmp_path: Path) -> None:
    root = journal_of(tmp_path)
    write(root, acked(10))
    reader = JournalStreamReader(
        parse({"path": str(root), "startingOffsets": "latest"}), events_schema()
    )
    start = json.dumps(reader.initialOffset())
    write(root, acked(10, 11), first_seq=11)
    assert drained(root, startingOffsets=start) == numbered(10, 11)


def test_some_columns_alone_can_be_asked_for(spark, tmp_path: Path) -> None:
    root = journal_of(tmp_path)
    write(root, acked(10))
    hot(root, acked(5, 11), 11)
    reader = spark.read.format("fila-journal").schema("queue string, ts timestamp")
    found = reader.load(str(root))
    assert found.columns == ["queue", "ts"]
    assert found.groupBy("queue").count().orderBy("queue").collect() == [("other", 7), ("q", 8)]


def test_a_column_that_is_none_is_told(spark, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="have no column tenant"):
        spark.read.format("fila-journal").schema("tenant string").load(str(tmp_path)).count()


def test_a_batch_read_is_what_the_reports_read(spark, tmp_path: Path) -> None:
    from fila.spark.events import read_events

    root = journal_of(tmp_path)
    write(root, acked(200))
    hot(root, acked(50, 201), 201)
    found = spark.read.format("fila-journal").option("eventsPerTask", 60).load(str(root))
    expected = read_events(spark, str(root))
    assert found.schema == expected.schema
    assert found.exceptAll(expected).count() == 0
    assert found.count() == 250


def test_the_tail_is_read_as_the_broker_keeps_it(tmp_path: Path) -> None:
    """Words by number, an unfinished batch at the end."""
    root = journal_of(tmp_path)
    packed = Packed()
    packed.add([trail_of(acked(10))], None)
    batch = compact_batch(packed, 1, BROKER, EPOCH)
    tail = HotFile(root, Stream("events", BROKER, EPOCH), 1, batch.schema)
    tail.append(batch)
    tail.append(compact_batch(packed, 11, BROKER, EPOCH))
    content = tail.path.read_bytes()
    for size in range(1, len(content), 97):
        tail.path.write_bytes(content[:size])
        assert [one.last for one in pieces((str(root),))] in ([], [10])
    reader = JournalStreamReader(parse({"path": str(root)}), events_schema())
    (planned,) = reader.partitions({}, reader.latestOffset({}, None))
    (found,) = reader.read(planned)
    assert found.column("queue").to_pylist() == ["q", "other"] * 5
    assert found.column("throttle_keys").to_pylist() == [[]] * 10


def test_a_task_finds_its_events_where_they_are_when_it_reads(tmp_path: Path) -> None:
    """Planned from the hot tail and small parts; read when these are sealed, merged and gone."""
    root = journal_of(tmp_path)
    reader = JournalStreamReader(parse({"path": str(root), "eventsPerTask": "4"}), events_schema())
    first = write(root, acked(10))
    tail = hot(root, acked(10, 11), 11)
    end = reader.latestOffset({}, None)
    planned = reader.partitions({}, end)
    stream = Stream("events", BROKER, EPOCH)
    files.seal(root, stream, [events_batch(acked(20), 1, BROKER, EPOCH)])
    tail.close()
    tail.path.unlink()
    first[0].unlink()
    found = [seq for one in planned for batch in reader.read(one)
             for seq in batch.column("seq").to_pylist()]  # fmt: skip
    assert sorted(found) == list(range(1, 21))
    assert len(planned) > 3
