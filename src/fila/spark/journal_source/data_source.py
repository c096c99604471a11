"""What Spark asks first of `format("fila-journal")`: its name, its schema, a reader."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from fila.spark.events import events_schema
from fila.spark.journal_source.options import JournalSourceError, parse

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from fila.spark.journal_source.reader import JournalReader
    from fila.spark.journal_source.stream_reader import JournalStreamReader


class JournalDataSource(DataSource):
    """`spark.read|readStream.format("fila-journal").load("data/journal")`."""

    @classmethod
    def name(cls) -> str:
        return "fila-journal"

    def schema(self) -> StructType:
        parse(self.options)
        return events_schema()

    def reader(self, schema: StructType) -> JournalReader:
        from fila.spark.journal_source.reader import JournalReader

        return JournalReader(parse(self.options), _checked(schema))

    def streamReader(self, schema: StructType) -> JournalStreamReader:  # noqa: N802
        from fila.spark.journal_source.stream_reader import JournalStreamReader

        return JournalStreamReader(parse(self.options), _checked(schema))


def _checked(schema: StructType) -> StructType:
    """Somebody may ask for some of the columns: fewer bytes cross into Spark."""
    known = {field.name: field.dataType for field in events_schema()}
    for field in schema:
        if field.name not in known:
            raise JournalSourceError(
                f"the journal's events have no column {field.name}; they have {', '.join(known)}"
            )
        if field.dataType != known[field.name]:
            raise JournalSourceError(
                f"column {field.name} is {known[field.name].simpleString()}, "
                f"not {field.dataType.simpleString()}"
            )
    return schema
