"""Tables in a lakehouse's format: the same files, which Delta or Iceberg know as well.

Owns how a batch is appended exactly once. Each append carries the query and the batch's number in
the format's own log, so a batch that is repeated after a kill finds what it has appended. What the
commit log names are the files of that append: Fila's own readers see a batch in all tables at once,
as with Parquet; programs that read a table by its format see it when it is appended.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple
from urllib.parse import unquote
from zlib import crc32

from pyspark.sql import functions as fn

from fila.spark.tables.commits import CommitLog, TableFile, TablesError
from fila.spark.tables.formats import DELTA, ICEBERG, PARQUET, check
from fila.spark.tables.place import LocalPlace, Stored, alone
from fila.spark.tables.schemas import PARTITIONS, TIME
from fila.spark.tables.store import ParquetStore

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_BATCH: Final = "fila-batch"  # in the summary of an Iceberg snapshot
_VERSION: Final = re.compile(r"\d{20}\.json")


class Replaced(NamedTuple):
    """Files that a compaction has put in place of others."""

    added: list[Stored]
    removed: list[str]


class DeltaStore(ParquetStore):
    form: ClassVar[str] = DELTA

    def write(
        self, table: str, rows: DataFrame, batch: int, time: str, order: Sequence[str] = ()
    ) -> list[TableFile]:
        writer = self.dated(table, rows, time, order).write.format(DELTA).mode("append")
        # A transaction of this number is done once, however often it is asked for.
        writer = writer.option("txnAppId", f"fila/{self.query}").option("txnVersion", batch)
        writer.partitionBy(*PARTITIONS).save(self.place.address(table))
        return [self.described(table, *one, time) for one in self._appended(table, batch)]

    def replaced(self, table: str) -> Iterator[Replaced]:
        """Compactions of the table, the newest first."""
        for actions in self._versions(table):
            files = [one.get("add") or one.get("remove") for one in actions]
            if any(one and one["dataChange"] for one in files):
                continue
            gone = [one["remove"] for one in actions if "remove" in one]
            if gone:
                removed = [f"{table}/{unquote(one['path'])}" for one in gone]
                yield Replaced(_added(table, actions), removed)

    def pending(self, table: str, batch: int) -> bool:
        """Whether something was appended that no commit names yet. Delta keeps numbers of
        transactions for ever, so that is no hindrance to tidying."""
        return False

    def _appended(self, table: str, batch: int) -> list[Stored]:
        """The files of a batch, by the number of its transaction."""
        for actions in self._versions(table):
            for one in actions:
                if one.get("txn", {}).get("appId") == f"fila/{self.query}":
                    if one["txn"]["version"] == batch:
                        return _added(table, actions)
                    break
        raise TablesError(
            f"{self.place.address(table)}: Delta's log has no append of batch {batch}; its entries "
            "were removed too early. Begin in an empty folder"
        )

    def _versions(self, table: str) -> Iterator[list[dict[str, Any]]]:
        """What each version has done, the newest first."""
        folder = f"{table}/_delta_log"
        for name in reversed(self.place.names(folder)):
            if _VERSION.fullmatch(name):
                text = self.place.read(f"{folder}/{name}")
                yield [json.loads(line) for line in (text or "").splitlines()]


class IcebergStore(ParquetStore):
    form: ClassVar[str] = ICEBERG

    def __init__(self, spark: SparkSession, root: str, schemas: dict[str, StructType]) -> None:
        super().__init__(spark, root, schemas)
        # Tables by their folders, as any engine can load them: no catalog has to be there.
        self.catalog = f"fila_{crc32(self.place.root.encode()):08x}"
        prefix = f"spark.sql.catalog.{self.catalog}"
        spark.conf.set(prefix, "org.apache.iceberg.spark.SparkCatalog")
        spark.conf.set(f"{prefix}.type", "hadoop")
        spark.conf.set(f"{prefix}.warehouse", self.place.root)
        spark.conf.set(f"{prefix}.cache-enabled", "false")

    def name(self, table: str) -> str:
        return f"{self.catalog}.{table}"

    def write(
        self, table: str, rows: DataFrame, batch: int, time: str, order: Sequence[str] = ()
    ) -> list[TableFile]:
        self._create(table)
        if self._appended(table, batch) is None:
            writer = self.dated(table, rows, time, order).writeTo(self.name(table))
            writer = writer.option(f"snapshot-property.{_BATCH}", f"{self.query}/{batch}")
            # Sorted by hour already; asking for more would shuffle.
            writer = writer.option("use-table-distribution-and-ordering", "false")
            with self.held():
                writer.append()
        found = self._appended(table, batch) or []
        return [self.described(table, *one, time) for one in found]

    def held(self) -> AbstractContextManager[None]:
        """A commit to a folder is safe for one process at a time, and maintenance is another."""
        if isinstance(self.place, LocalPlace):
            return alone(self.place.root, "_iceberg")
        return nullcontext()

    def replaced(self, table: str) -> Iterator[Replaced]:
        """Compactions of the table, the newest first."""
        if not self._exists(table):
            return
        loaded = self._loaded(table)
        for snapshot in reversed(list(loaded.snapshots())):
            if snapshot.operation() == "replace":
                removed = [self._stored(table, one).path
                           for one in snapshot.removedDataFiles(loaded.io())]  # fmt: skip
                if removed:
                    yield Replaced(self._added(table, loaded, snapshot), removed)

    def pending(self, table: str, batch: int) -> bool:
        """Whether something was appended that no commit names yet: a kill came between them."""
        if not self._exists(table):
            return False
        for snapshot in reversed(list(self._loaded(table).snapshots())):
            said = snapshot.summary().get(_BATCH)
            if said:
                return int(said.rpartition("/")[2]) > batch
        return False

    def _appended(self, table: str, batch: int) -> list[Stored] | None:
        loaded = self._loaded(table)
        for snapshot in reversed(list(loaded.snapshots())):
            if snapshot.summary().get(_BATCH) == f"{self.query}/{batch}":
                return self._added(table, loaded, snapshot)
        return None

    def _added(self, table: str, loaded: Any, snapshot: Any) -> list[Stored]:
        return [self._stored(table, one) for one in snapshot.addedDataFiles(loaded.io())]

    def _stored(self, table: str, file: Any) -> Stored:
        path = str(file.location())
        inside = path.rpartition(f"/{table}/data/")[2]
        return Stored(f"{table}/data/{inside}", int(file.fileSizeInBytes()))

    def _create(self, table: str) -> None:
        if self._exists(table):
            return
        empty = self.dated(table, self.frame([], self._schemas[table]), TIME[table])
        by = [fn.col(name) for name in PARTITIONS]
        writer = empty.writeTo(self.name(table)).using(ICEBERG).partitionedBy(*by)
        for name, value in (
            ("format-version", "2"),
            ("write.parquet.compression-codec", "zstd"),
            ("write.distribution-mode", "none"),
            ("write.metadata.delete-after-commit.enabled", "true"),
        ):
            writer = writer.tableProperty(name, value)
        writer.create()

    def _exists(self, table: str) -> bool:
        return bool(self.place.names(f"{table}/metadata"))

    def _loaded(self, table: str) -> Any:
        jvm: Any = self._spark.sparkContext._jvm
        session: Any = self._spark
        spark3 = jvm.org.apache.iceberg.spark.Spark3Util
        return spark3.loadIcebergTable(session._jsparkSession, self.name(table))


def _added(table: str, actions: list[dict[str, Any]]) -> list[Stored]:
    adds = [one["add"] for one in actions if "add" in one]
    return [Stored(f"{table}/{unquote(one['path'])}", one["size"]) for one in adds]


_STORES: Final = {PARQUET: ParquetStore, DELTA: DeltaStore, ICEBERG: IcebergStore}


def format_of(root: str) -> str:
    """The format of tables that are there, as far as that can be said without Spark."""
    if "://" in root:
        return PARQUET
    last = CommitLog(LocalPlace(root)).last()
    return str(last.details.get("format", PARQUET)) if last else PARQUET


def store_of(
    spark: SparkSession, root: str, schemas: dict[str, StructType], form: str = ""
) -> ParquetStore:
    """The tables of a place for writing, in the format they have or are to have."""
    last = ParquetStore(spark, root, schemas).log.last()
    kept = str(last.details.get("format", PARQUET)) if last else ""
    form = form or kept or PARQUET
    if kept and form != kept:
        raise TablesError(
            f"the tables in {root} are kept as {kept}: leave --format out, or begin in an empty "
            f"folder for {form}"
        )
    check(spark, form)
    return _STORES[form](spark, root, schemas)
