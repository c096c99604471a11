"""The journal's tables as Arrow knows them, read from the one schema source (spec/journal)."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any, Final

import pyarrow as pa

VERSION_KEY: Final = b"fila.journal.version"
_TYPES: Final[dict[str, Any]] = {
    "int32": pa.int32(),
    "int64": pa.int64(),
    "string": pa.string(),
    "binary": pa.binary(),
    # Microseconds: nanoseconds cannot be read by Spark.
    "timestamp": pa.timestamp("us", "UTC"),
    "list<string>": pa.list_(pa.string()),
    "map<string,string>": pa.map_(pa.string(), pa.string()),
}


@cache
def specification() -> dict[str, Any]:
    text = resources.files("fila.journal").joinpath("schema.json").read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def fitted(table: Any, name: str) -> Any:
    """A table as this version knows it; columns that came later than its file are null."""
    schema = arrow_schema(name)
    for field in schema:
        if field.name not in table.column_names:
            table = table.append_column(field, pa.nulls(table.num_rows, field.type))
    return table.select(schema.names).cast(schema)


@cache
def compact_schema(table: str) -> Any:
    """The same columns as they are kept until they are sealed: words by number, each once."""
    schema = arrow_schema(table)
    for at, field in enumerate(schema):
        if pa.types.is_string(field.type) and field.name != "message_id":
            schema = schema.set(at, field.with_type(pa.dictionary(pa.int32(), pa.string())))
    return schema


@cache
def arrow_schema(table: str) -> Any:
    """The Arrow schema of one table."""
    columns = specification()["tables"][table]["columns"]
    return pa.schema(
        [pa.field(one["name"], _TYPES[one["type"]], nullable=one["nullable"]) for one in columns],
        metadata={VERSION_KEY: str(specification()["version"])},
    )
