"""What Spark asks first of `format("fila")`: its name, its schema, a reader, a writer.

Owns only the dispatch from options to the part that does the work. Options are checked before
anything is planned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from fila.spark.source.options import READ, STREAM, WRITE, SourceError, parse
from fila.spark.source.schema import READ_SCHEMA

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from fila.spark.source.reader import SnapshotReader
    from fila.spark.source.stream_reader import QueueStreamReader
    from fila.spark.source.writer import QueueStreamWriter, QueueWriter


class FilaDataSource(DataSource):
    """`spark.read|readStream|write|writeStream.format("fila")`."""

    @classmethod
    def name(cls) -> str:
        return "fila"

    def schema(self) -> StructType:
        try:
            parse(self.options, READ)
        except SourceError:
            parse(self.options, STREAM)  # Spark does not say which of the two it will be
        return READ_SCHEMA

    def reader(self, schema: StructType) -> SnapshotReader:
        from fila.spark.source.reader import SnapshotReader

        return SnapshotReader(parse(self.options, READ), schema)

    def streamReader(self, schema: StructType) -> QueueStreamReader:  # noqa: N802
        from fila.spark.source.stream_reader import QueueStreamReader

        return QueueStreamReader(parse(self.options, STREAM), schema)

    def writer(self, schema: StructType, overwrite: bool) -> QueueWriter:
        from fila.spark.source.writer import QueueWriter

        return QueueWriter(parse(self.options, WRITE), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> QueueStreamWriter:  # noqa: N802
        from fila.spark.source.writer import QueueStreamWriter

        return QueueStreamWriter(parse(self.options, WRITE), schema, overwrite)
