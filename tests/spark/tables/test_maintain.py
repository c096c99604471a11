"""Compaction, retention and vacuum: the rows stay, and who reads meanwhile goes on."""

from __future__ import annotations

import shutil
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fila.spark.tables.commits import CommitLog, TablesError
from fila.spark.tables.maintain import _Maintenance, maintain
from fila.spark.tables.place import alone
from fila.spark.tables.schemas import TIME, schemas
from fila.spark.tables.store import ParquetStore
from tests.spark.tables.conftest import batch, rows
from tests.spark.tables.test_tables import same

HOUR = 3_600.0
MADE = ("events", "facts", "capacity")


@pytest.fixture(scope="module")
def pieces(spark, short_pieces: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables that several batches have made."""
    tables = tmp_path_factory.mktemp("pieces") / "tables"
    for number, journal in enumerate(short_pieces):
        batch(spark, journal, tables, number)
    return tables


@pytest.fixture
def tables(pieces: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(pieces, tmp_path / "tables"))


def store_in(spark, tables: Path) -> ParquetStore:
    return ParquetStore(spark, str(tables), schemas())


def later(hours: float) -> float:
    """So many hours from now: the record itself is of a day long ago."""
    return time.time() + hours * HOUR


@pytest.fixture
def hours_over(monkeypatch) -> None:
    over(monkeypatch)


def over(monkeypatch) -> None:
    """All hours count as over, as if the record had gone on for long."""
    monkeypatch.setattr(_Maintenance, "_over", lambda self: datetime(2100, 1, 1, tzinfo=UTC))


@pytest.mark.usefixtures("hours_over")
def test_merged_tables_have_the_same_rows_in_fewer_files(spark, at_once, tables: Path) -> None:
    before = store_in(spark, tables).contents()
    old = {name: rows(store_in(spark, tables), name) for name in ("facts", "events")}
    done = {one.table: one for one in maintain(spark, str(tables), later(1))}
    store = store_in(spark, tables)
    assert done["facts"].merged > done["facts"].into >= 1
    for table in MADE:
        files = store.contents().of(table)
        hours = {one.path.rpartition("/")[0] for one in files}
        assert len(files) == len(hours), table  # one for each
        assert sum(one.rows for one in files) == sum(one.rows for one in before.of(table))
        assert same(rows(store, table), rows(at_once, table)), table
    for name, frame in old.items():  # planned before: its files are there for the grace
        assert same(frame, rows(at_once, name))
    assert [one.removed for one in done.values()] == [0] * len(done)
    # After the grace what was merged is gone, and the log is short.
    done = {one.table: one for one in maintain(spark, str(tables), later(3))}
    assert done["facts"].removed > 1
    assert done["facts"].merged == 0
    store = store_in(spark, tables)
    for table in MADE:
        stored = {one.path for one in store.place.files(table)}
        assert stored == {one.path for one in store.contents().of(table)}
        assert same(rows(store, table), rows(at_once, table)), table
    assert len(store.place.names("_commits")) <= 3


@pytest.mark.usefixtures("hours_over")
def test_the_job_goes_on_after_maintenance(
    spark, short_pieces: list[Path], at_once: ParquetStore, tmp_path: Path
) -> None:
    """Maintenance between batches, the newest hour too: what follows is as if there was none."""
    tables = tmp_path / "tables"
    for number, journal in enumerate(short_pieces):
        batch(spark, journal, tables, number)
        maintain(spark, str(tables), later(1), grace_s=0.0)
    store = store_in(spark, tables)
    for table in MADE:
        assert same(rows(store, table), rows(at_once, table)), table


def test_what_is_older_than_its_retention_goes(spark, tables: Path) -> None:
    now = later(30)
    before = store_in(spark, tables).contents()
    maintain(spark, str(tables), now, {"events": 24 * HOUR})
    store = store_in(spark, tables)
    assert store.contents().of("events") == []
    assert rows(store, "events").isEmpty()
    assert len(store.contents().of("facts")) == len(before.of("facts"))
    assert (tables / before.of("events")[0].path).exists()  # for readers under way
    maintain(spark, str(tables), now + 2 * HOUR, {"events": 24 * HOUR})
    assert store.place.files("events") == []
    assert store.log.last() is not None  # where the job goes on


@pytest.mark.usefixtures("hours_over")
def test_what_a_killed_maintenance_left_is_not_there(
    spark, at_once, tables: Path, monkeypatch
) -> None:
    """Ended between its files and the log."""

    def dead(self, *words):
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(CommitLog, "change", dead)
        with pytest.raises(RuntimeError, match="killed"):
            maintain(spark, str(tables), later(1))
    store = store_in(spark, tables)
    table = next(name for name in MADE if list(tables.glob(f"{name}/date=*/hour=*/m*")))
    assert same(rows(store, table), rows(at_once, table))
    maintain(spark, str(tables), later(1.5))
    assert same(rows(store, table), rows(at_once, table))
    merged = {path for path in store.log.removed(1 << 62) if path.startswith(f"{table}/")}
    named = {one.path for one in store.contents().of(table)} | merged
    assert {one.path for one in store.place.files(table)} == named


def test_one_at_a_time_and_of_tables_that_are_there(spark, tables: Path, tmp_path: Path) -> None:
    with alone(str(tables), "_maintaining"), pytest.raises(TablesError, match="at work in"):
        maintain(spark, str(tables), later(1))
    with pytest.raises(TablesError, match="no tables in"):
        maintain(spark, str(tmp_path / "none"), 0.0)
    with pytest.raises(TablesError, match="facts2 is no table; there are: events, facts"):
        maintain(spark, str(tables), 0.0, {"facts2": 1.0})


@pytest.mark.usefixtures("hours_over")
def test_files_keep_the_tables_order_and_times(spark, tables: Path) -> None:
    maintain(spark, str(tables), later(1))
    for table, column in TIME.items():
        for one in store_in(spark, tables).contents().of(table):
            got = store_in(spark, tables).read(table, [one]).selectExpr(
                f"unix_micros(min({column}))", f"unix_micros(max({column}))", "count(*)"
            ).collect()[0]  # fmt: skip
            assert tuple(got) == (one.first_us, one.last_us, one.rows), one
            assert datetime.fromtimestamp(one.first_us / 1e6, UTC).hour == int(
                one.path.partition("hour=")[2].partition("/")[0]
            )
