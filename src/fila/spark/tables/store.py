"""Tables as Parquet in folders by date and hour, exactly once by the commit log.

Owns how the rows of a batch become files of a table, and which files a reader gets. Spark writes
into `_staging`; then the files are moved to their places, under names made of the batch's number:

    <table>/date=2026-01-31/hour=7/b0000000017-0003.parquet

A batch that is repeated gets the same names, and removes what its first attempt left before it
begins. Other programs may simply read the folders; only in the moment a batch is moved, or after
a kill until the job is back, they may see part of a batch that the commit log does not have yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final

import pyarrow.parquet as pq
from pyspark.sql import functions as fn
from pyspark.sql.types import DateType, IntegerType, StructField, StructType

from fila.spark.tables.commits import CommitLog, Contents, TableFile
from fila.spark.tables.formats import PARQUET
from fila.spark.tables.place import LocalPlace, place_of
from fila.spark.tables.schemas import PARTITIONS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STAGING: Final = "_staging"
_HOUR_US: Final = 3_600 * 1_000_000
_DATED: Final = [StructField("date", DateType()), StructField("hour", IntegerType())]


class ParquetStore:
    form: ClassVar[str] = PARQUET

    def __init__(self, spark: SparkSession, root: str, schemas: dict[str, StructType]) -> None:
        self._spark = spark
        self._schemas = schemas
        self.place = place_of(root, spark)
        self.log = CommitLog(self.place)
        self.query = ""
        self._begun = False

    def begin(self, batch: int, query: str = "") -> None:
        """Remove what an attempt at this batch has left that was cut short. Only the first batch of
        a process can find any. `query` says whose batches these are."""
        self.query = query
        if self._begun:
            return
        self.place.remove(STAGING)
        prefix = f"b{batch:010d}-"
        for table in self._schemas:
            for stored in self.place.files(table):
                if stored.path.rpartition("/")[2].startswith(prefix):
                    self.place.remove(stored.path)
        self._begun = True

    def write(
        self, table: str, rows: DataFrame, batch: int, time: str, order: Sequence[str] = ()
    ) -> list[TableFile]:
        """Store rows, which have a column `time`, in files of the batch; not yet committed."""
        dated = self.dated(table, rows, time, order)
        return self.placed(table, dated, STAGING, f"b{batch:010d}", time)

    def dated(self, table: str, rows: DataFrame, time: str, order: Sequence[str] = ()) -> DataFrame:
        """With the columns the table is cut by, and in its order."""
        # By the clock of the world, whatever zone the session has.
        hours = fn.floor(fn.unix_micros(time) / fn.lit(_HOUR_US))
        # Each with its type: a sum may be narrower in the first batch than in the next.
        own = [fn.col(one.name).cast(one.dataType) for one in self._schemas[table]]
        return rows.select(
            *own,
            fn.date_from_unix_date(fn.floor(hours / fn.lit(24)).cast("int")).alias("date"),
            fn.pmod(hours, fn.lit(24)).cast("int").alias("hour"),
        ).sortWithinPartitions(*PARTITIONS, *order)

    def placed(
        self, table: str, dated: DataFrame, staging: str, name: str, time: str
    ) -> list[TableFile]:
        """Files of these names in their folders, by way of a folder nobody reads."""
        staged = f"{staging}/{table}"
        writer = dated.write.partitionBy(*PARTITIONS).option("compression", "zstd")
        writer.mode("overwrite").parquet(self.place.address(staged))
        made = []
        for number, stored in enumerate(self.place.files(staged)):
            folder = stored.path[len(staged) + 1 :].rpartition("/")[0]
            path = f"{table}/{folder}/{name}-{number:04d}.parquet"
            self.place.move(stored.path, path)
            made.append(self.described(table, path, stored.size, time))
        return made

    def read(self, table: str, files: list[TableFile]) -> DataFrame:
        """The rows of these files, with `date` and `hour`: Parquet, whatever the format."""
        schema = StructType([*self._schemas[table].fields, *_DATED])
        if not files:
            return self._spark.createDataFrame([], schema)
        above = files[0].path.partition("/date=")[0]
        reader = self._spark.read.schema(schema).option("basePath", self.place.address(above))
        return reader.parquet(*[self.place.address(one.path) for one in files])

    def contents(self) -> Contents:
        return self.log.contents()

    def write_state(self, name: str, rows: DataFrame, batch: int) -> str:
        """Rows for the next batch alone; where they are."""
        path = f"_state/b{batch:010d}/{name}"
        rows.write.mode("overwrite").parquet(self.place.address(path))
        return path

    def frame(self, rows: list[tuple[Any, ...]], schema: StructType | str) -> DataFrame:
        return self._spark.createDataFrame(rows, schema)

    def read_state(self, path: str, schema: StructType) -> DataFrame:
        return self._spark.read.schema(schema).parquet(self.place.address(path))

    def described(self, table: str, path: str, size: int, time: str) -> TableFile:
        """With what its footer says, where reading it costs nothing."""
        if not isinstance(self.place, LocalPlace):
            return TableFile(table, path, 0, size)
        footer = pq.read_metadata(self.place.address(path))
        at = footer.schema.names.index(time)
        groups = range(footer.num_row_groups)
        known = [footer.row_group(group).column(at).statistics for group in groups]
        if any(one is None or not one.has_min_max for one in known):
            return TableFile(table, path, footer.num_rows, size)
        first = min(one.min for one in known)
        last = max(one.max for one in known)
        return TableFile(table, path, footer.num_rows, size, _micros(first), _micros(last))


def _micros(time: datetime) -> int:
    return round(time.timestamp() * 1_000_000)
