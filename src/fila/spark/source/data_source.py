"""What Spark asks first of `format("fila")`: its name, its schema, a reader, a writer.

Owns the dispatch from options to the part that does the work, and how a table of a catalog keeps
its options. Options are checked before anything is planned.

Spark tells a Python source the options of `CREATE TABLE … USING fila OPTIONS (…)` when the table is
made, and never again. So they go where Spark keeps them: into the schema of the table, as metadata
of its first column.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import pyspark
from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructField, StructType

from fila.spark.source.options import (
    READ,
    STREAM,
    WRITE,
    Options,
    SourceError,
    fitting,
    of_catalog,
    parse,
)
from fila.spark.source.schema import READ_SCHEMA, TABLE_SCHEMA

if TYPE_CHECKING:
    from fila.spark.source.reader import SnapshotReader
    from fila.spark.source.stream_reader import QueueStreamReader
    from fila.spark.source.writer import QueueStreamWriter, QueueWriter


_KEPT: Final = "fila.options"


class FilaDataSource(DataSource):
    """`spark.read|readStream|write|writeStream.format("fila")`."""

    @classmethod
    def name(cls) -> str:
        return "fila"

    def schema(self) -> StructType:
        kept = of_catalog(self.options)
        given = self.options if kept is None else kept
        try:
            parse(given, READ)
        except SourceError:
            parse(given, STREAM)  # Spark does not say which of the two it will be
        return READ_SCHEMA if kept is None else _keeping(kept)

    def reader(self, schema: StructType) -> SnapshotReader:
        from fila.spark.source.reader import SnapshotReader

        return SnapshotReader(self._parsed(schema, READ), schema)

    def streamReader(self, schema: StructType) -> QueueStreamReader:  # noqa: N802
        try:
            from fila.spark.source.stream_reader import QueueStreamReader
        except ImportError as error:
            if error.name != "pyspark.sql.streaming.datasource":
                raise
            raise SourceError(
                "a queue can be read as a stream from Spark 4.2 on, and this is "
                f"{pyspark.__version__}: older ones do not say which batch they have committed, "
                "so nothing could be acknowledged. Read it in batches (spark.read), or install a "
                "newer PySpark"
            ) from error
        return QueueStreamReader(self._parsed(schema, STREAM), schema)

    def writer(self, schema: StructType, overwrite: bool) -> QueueWriter:
        from fila.spark.source.writer import QueueWriter

        return QueueWriter(self._parsed(schema, WRITE), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> QueueStreamWriter:  # noqa: N802
        from fila.spark.source.writer import QueueStreamWriter

        return QueueStreamWriter(self._parsed(schema, WRITE), schema, overwrite)

    def _parsed(self, schema: StructType, use: str) -> Options:
        """What the query says, and what its table keeps that is of this use."""
        kept: dict[str, str] = {}
        for field in schema:
            kept |= json.loads(field.metadata.get(_KEPT, "{}"))
        return parse({**fitting(kept, use), **self.options}, use)


def _keeping(options: dict[str, str]) -> StructType:
    """Of a table that is read and written: with the columns of both."""
    first, *others = TABLE_SCHEMA.fields
    kept = StructField(first.name, first.dataType, True, {_KEPT: json.dumps(options)})
    return StructType([kept, *others])
