"""Maintenance of tables, beside the job that keeps them: compaction, retention, vacuum.

Owns what may be done while batches go on and readers read. Nothing changes a row. Files of hours
that are over become one; files older than a table's retention leave it; the commit log says so in
one step per change, and what it no longer names is removed from the disk after a grace. Ended at
any point, the next one goes on: what no log names is not there.

Of Delta and Iceberg their own procedures do the work, and the commit log follows them: a compaction
is taken over when all files it replaced are in the log. Files of a batch that was appended and not
committed before a kill are not, and then it waits until that batch has been repeated.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from fila.spark.tables.commits import TableFile, TablesError
from fila.spark.tables.lake import DeltaStore, IcebergStore, Replaced, store_of
from fila.spark.tables.place import alone
from fila.spark.tables.schemas import ORDER, TIME, schemas

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from pyspark.sql import SparkSession

    from fila.spark.tables.commits import Contents
    from fila.spark.tables.store import ParquetStore

GRACE_S: Final = 3_600.0  # longer than any report runs
GOAL: Final = 128 << 20  # bytes of a file
_MERGING: Final = "_merging"
_LOCK: Final = "_maintaining"
_HOUR: Final = re.compile(r"date=(\d{4}-\d{2}-\d{2})/hour=(\d+)/")
_ORPHAN: Final = timedelta(days=3)  # Iceberg's own advice for files nothing ever named


class Maintained(NamedTuple):
    """What came of one table."""

    table: str
    merged: int  # files
    into: int
    dropped: int  # files that were too old
    removed: int  # files that are gone from the disk; of Delta and Iceberg they say it themselves
    waits: str  # what could not be done yet, and why


def maintain(
    spark: SparkSession,
    tables: str,
    now_s: float,
    retention: Mapping[str, float] | None = None,
    grace_s: float = GRACE_S,
    form: str = "",
) -> list[Maintained]:
    """Compact, drop what is older than `retention` (seconds by table), and vacuum."""
    unknown = set(retention or ()) - set(schemas())
    if unknown:
        raise TablesError(f"{min(unknown)} is no table; there are: {', '.join(schemas())}")
    store = store_of(spark, tables, schemas(), form)
    if store.contents().last is None:
        raise TablesError(f"no tables in {tables}: has `fila pipeline run` been started?")
    with _alone(tables):
        return _Maintenance(spark, store, now_s, grace_s).run(retention or {})


def _alone(tables: str) -> AbstractContextManager[None]:
    if "://" in tables:
        return nullcontext()
    return alone(tables, _LOCK, f"another `fila pipeline maintain` is at work in {tables}")


class _Maintenance:
    def __init__(
        self, spark: SparkSession, store: ParquetStore, now_s: float, grace_s: float
    ) -> None:
        self._spark = spark
        self._store = store
        self._now = datetime.fromtimestamp(now_s, UTC)
        self._at_ms = round(now_s * 1_000)
        self._before_ms = self._at_ms - round(grace_s * 1_000)
        self._grace_s = grace_s

    def run(self, retention: Mapping[str, float]) -> list[Maintained]:
        self._leftovers()
        done = []
        for table in schemas():
            if self._store.place.names(table):
                dropped = self._drop(table, retention.get(table, 0.0))
                merged, into = self._compact(table)
                waits = self._vacuum(table)
                done.append(Maintained(table, merged, into, dropped, 0, waits))
        removed = self._remove()
        self._store.log.tidy(self._before_ms)
        return [one._replace(removed=removed[one.table]) for one in done]

    # --- retention

    def _drop(self, table: str, keep_s: float) -> int:
        if not keep_s:
            return 0
        until = self._now - timedelta(seconds=keep_s)
        hour = timedelta(hours=1)
        files = self._store.contents().of(table)
        old = [one.path for one in files if _hour(one.path) + hour <= until]
        if not old:
            return 0
        self._store.log.change(self._at_ms, f"drop-{table}", [], old)
        over = _before(until)
        if isinstance(self._store, DeltaStore):
            self._spark.sql(f"delete from delta.`{self._store.place.address(table)}` where {over}")
        elif isinstance(self._store, IcebergStore):
            with self._store.held():
                self._spark.sql(f"delete from {self._store.name(table)} where {over}")
        return len(old)

    # --- compaction

    def _compact(self, table: str) -> tuple[int, int]:
        store = self._store
        over = self._over()
        if isinstance(store, DeltaStore):
            self._spark.sql(
                f"optimize delta.`{store.place.address(table)}` where {_before(over)}"
            ).collect()
            return self._follow(table, store.replaced(table))
        if isinstance(store, IcebergStore):
            order = ", ".join(f"{one} asc nulls last" for one in ORDER[table])
            with store.held():
                self._spark.sql(
                    f"call {store.catalog}.system.rewrite_data_files(table => '{table}', "
                    f"strategy => 'sort', sort_order => '{order}', where => \"{_before(over)}\", "
                    f"options => map('min-input-files', '2', 'target-file-size-bytes', '{GOAL}'))"
                ).collect()
            return self._follow(table, store.replaced(table))
        return self._merge(table, over)

    def _merge(self, table: str, over: datetime) -> tuple[int, int]:
        """Small files of an hour into few, sorted, hour by hour."""
        store = self._store
        merged = into = 0
        hours: dict[datetime, list[TableFile]] = defaultdict(list)
        for one in store.contents().of(table):
            if one.size < GOAL // 2 and _hour(one.path) < over:
                hours[_hour(one.path)].append(one)
        for hour, files in sorted(hours.items()):
            if len(files) < 2:
                continue
            pieces = -(-sum(one.size for one in files) // GOAL)
            rows = store.read(table, files).drop("date", "hour")
            if pieces > 1:
                rows = rows.repartitionByRange(pieces, *ORDER[table])
            else:
                rows = rows.coalesce(1)
            name = f"m{self._at_ms:013d}"
            dated = store.dated(table, rows, TIME[table], ORDER[table])
            made = store.placed(table, dated, _MERGING, name, TIME[table])
            what = f"merge-{table}-{hour:%Y%m%d%H}"
            store.log.change(self._at_ms, what, made, [one.path for one in files])
            merged, into = merged + len(files), into + len(made)
        return merged, into

    def _follow(self, table: str, compactions: Iterator[Replaced]) -> tuple[int, int]:
        """Take compactions over into the log, the oldest first."""
        known = {one.path for one in self._store.contents().of(table)}
        new = []
        for one in compactions:
            if not known.intersection(one.removed) and known.issuperset(
                stored.path for stored in one.added
            ):
                break  # it, and those before, are in the log
            new.append(one)
        merged = into = 0
        for number, one in enumerate(reversed(new)):
            if not known.issuperset(one.removed):
                # Of a batch to be repeated; or all of it was too old and has left the tables.
                if known.intersection(one.removed):
                    break
                continue
            made = [self._store.described(table, *stored, TIME[table]) for stored in one.added]
            what = f"merge-{table}-{number:06d}"
            self._store.log.change(self._at_ms, what, made, one.removed)
            known = (known - set(one.removed)) | {stored.path for stored in one.added}
            merged, into = merged + len(one.removed), into + len(made)
        return merged, into

    # --- vacuum

    def _vacuum(self, table: str) -> str:
        """What the format itself has to remove; why not, if it has to wait."""
        store = self._store
        contents = store.contents()
        if isinstance(store, DeltaStore | IcebergStore):
            waits = self._waits(store, table, contents)
            if waits:
                return waits
        if isinstance(store, DeltaStore):
            check = "spark.databricks.delta.retentionDurationCheck.enabled"
            self._spark.conf.set(check, "false")
            address = store.place.address(table)
            hours = self._grace_s / 3_600
            self._spark.sql(f"vacuum delta.`{address}` retain {hours} hours").collect()
        elif isinstance(store, IcebergStore):
            older = self._now - timedelta(seconds=self._grace_s)
            with store.held():
                self._spark.sql(
                    f"call {store.catalog}.system.expire_snapshots(table => '{table}', "
                    f"older_than => {_moment(older)}, retain_last => 1)"
                ).collect()
                self._spark.sql(
                    f"call {store.catalog}.system.remove_orphan_files(table => '{table}', "
                    f"older_than => {_moment(self._now - _ORPHAN)})"
                ).collect()
        return ""

    def _waits(self, store: DeltaStore | IcebergStore, table: str, contents: Contents) -> str:
        assert contents.last is not None
        named = {one.path for one in contents.of(table)}
        stale = any(named.intersection(one.removed) for one in store.replaced(table))
        if stale or store.pending(table, contents.last.batch):
            return "a batch was appended and not committed: start `fila pipeline run` first"
        return ""

    def _remove(self) -> dict[str, int]:
        """Files that left the tables longer than the grace ago."""
        store = self._store
        gone = defaultdict[str, int](int)
        if isinstance(store, DeltaStore | IcebergStore):
            return gone
        kept = {one.path for one in store.contents().files}
        for path in store.log.removed(self._before_ms) - kept:
            store.place.remove(path)
            gone[path.partition("/")[0]] += 1
        return gone

    def _leftovers(self) -> None:
        """Merged files that a maintenance made and did not live to put into the log."""
        store = self._store
        store.place.remove(_MERGING)
        kept = {one.path for one in store.contents().files} | store.log.removed(1 << 62)
        for table in schemas():
            for stored in store.place.files(table):
                name = stored.path.rpartition("/")[2]
                if re.match(r"m\d{13}-", name) and stored.path not in kept:
                    store.place.remove(stored.path)

    def _over(self) -> datetime:
        """Hours before this one are over. Of a broker that is behind more can come: it is merged by
        a later maintenance."""
        last = self._store.contents().last
        newest = max((us for us, _ in last.reached.values()), default=0) if last else 0
        moment = datetime.fromtimestamp(newest / 1e6, UTC)
        return moment.replace(minute=0, second=0, microsecond=0)


def _hour(path: str) -> datetime:
    found = _HOUR.search(path)
    assert found is not None, path
    return datetime.fromisoformat(found[1]).replace(hour=int(found[2]), tzinfo=UTC)


def _before(moment: datetime) -> str:
    """Hours that end by then, as SQL over what tables are cut by."""
    day = f"date '{moment:%Y-%m-%d}'"
    return f"date < {day} or (date = {day} and hour < {moment.hour})"


def _moment(moment: datetime) -> str:
    return f"timestamp '{moment:%Y-%m-%d %H:%M:%S}'"
