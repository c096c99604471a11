"""On the lowest Spark that is supported, which has runtimes for Delta and Iceberg: the tables.

`test_formats.py` runs this in an environment of its own (`make lowest-spark`). A short record, for
which no product is due yet: products are written as facts are.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest

from fila.spark.events import read_events
from fila.spark.session import get_spark
from fila.spark.source.data_source import FilaDataSource
from fila.spark.source.options import SourceError
from fila.spark.source.schema import READ_SCHEMA
from fila.spark.tables.commits import CommitLog, TablesError
from fila.spark.tables.formats import DELTA, ICEBERG, conf_for
from fila.spark.tables.lake import DeltaStore, IcebergStore, store_of
from fila.spark.tables.maintain import Maintained, maintain
from fila.spark.tables.schemas import schemas
from fila.spark.tables.store import ParquetStore
from tests.spark.tables.conftest import batch, rows
from tests.spark.tables.filled import fill
from tests.spark.tables.test_maintain import later, over
from tests.spark.tables.test_tables import Killed, same

MADE = ("events", "facts", "capacity")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    conf = {
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.adaptive.enabled": "false",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    for form in (DELTA, ICEBERG):
        conf = conf_for(form, pyspark.__version__, conf)
    session = get_spark("local[2,3]", conf=conf, app="fila tests")
    yield session
    session.stop()


def test_this_is_the_lowest(spark: Any) -> None:
    assert spark.version.startswith("4.1.")
    with pytest.raises(SourceError, match=r"read as a stream from Spark 4\.2 on, and this is 4\.1"):
        FilaDataSource({"queue": "jobs"}).streamReader(READ_SCHEMA)


def test_the_stream(spark: Any, short_record: Path, tmp_path: Path) -> None:
    store = fill(spark, short_record, tmp_path / "tables")
    events = rows(store, "events").drop("date", "hour")
    assert same(events, read_events(spark, str(short_record)))
    assert not rows(store, "facts").isEmpty()


@pytest.mark.parametrize("form", [DELTA, ICEBERG])
def test_each_event_once_whatever_is_killed_and_maintained(
    spark: Any,
    short_pieces: list[Path],
    at_once: ParquetStore,
    tmp_path: Path,
    monkeypatch: Any,
    form: str,
) -> None:
    tables, (early, late) = tmp_path / "tables", short_pieces

    # Killed when facts are appended and nobody knows: the batch finds what it has appended.
    dies_at(monkeypatch, form, "facts")
    with pytest.raises(Killed):
        batch(spark, early, tables, 0, form)
    monkeypatch.undo()
    batch(spark, early, tables, 0, form)
    store = store_of(spark, str(tables), schemas())
    assert store.form == form
    first = {name: rows(store, name).count() for name in MADE}
    assert first == {name: by_format(spark, store, name).count() for name in MADE}

    # Appended and not committed: what a compaction has merged that with is not taken over yet.
    dies_at(monkeypatch, form, "")
    with pytest.raises(Killed):
        batch(spark, late, tables, 1, form)
    monkeypatch.undo()
    over(monkeypatch)
    done = maintained(spark, tables, 9)
    assert done["events"].waits.startswith("a batch was appended and not committed")
    assert rows(store, "events").count() == first["events"]
    batch(spark, late, tables, 1, form)
    compare(spark, store, at_once)

    done = maintained(spark, tables, 9)
    assert not any(one.waits for one in done.values())
    assert done["events"].merged > done["events"].into >= 1
    compare(spark, store, at_once)
    for name in MADE:
        left = {one.path for one in store.place.files(name) if one.path.endswith(".parquet")}
        assert left == {one.path for one in store.contents().of(name)}, name

    maintained(spark, tables, 30, {"events": 86_400.0})
    assert rows(store, "events").isEmpty()
    assert by_format(spark, store, "events").isEmpty()
    assert by_format(spark, store, "facts").count() == rows(at_once, "facts").count()
    with pytest.raises(TablesError, match=f"are kept as {form}: leave --format out"):
        store_of(spark, str(tables), schemas(), "parquet")


def dies_at(monkeypatch: Any, form: str, dying: str) -> None:
    """After a table was appended, or without one before the commit."""
    kind: Any = {DELTA: DeltaStore, ICEBERG: IcebergStore}[form]
    write = kind.write

    def deadly_write(self: Any, table: str, *words: Any) -> Any:
        found = write(self, table, *words)
        if table == dying:
            raise Killed(table)
        return found

    def deadly_add(self: Any, commit: Any) -> None:
        raise Killed("commit")

    monkeypatch.setattr(kind, "write", deadly_write)
    monkeypatch.setattr(CommitLog, "add", deadly_add)


def maintained(
    spark: Any, tables: Path, hours: float, retention: dict[str, float] | None = None
) -> dict[str, Maintained]:
    found = maintain(spark, str(tables), later(hours), retention, grace_s=0.0)
    return {one.table: one for one in found}


def by_format(spark: Any, store: ParquetStore, table: str) -> Any:
    """The table as other programs read it."""
    if isinstance(store, IcebergStore):
        return spark.table(store.name(table))
    return spark.read.format("delta").load(store.place.address(table))


def compare(spark: Any, store: ParquetStore, expected_in: ParquetStore) -> None:
    """The same rows for us and for others."""
    for table in MADE:
        expected = rows(expected_in, table)
        assert same(rows(store, table), expected), table
        assert same(by_format(spark, store, table).select(expected.columns), expected), table
