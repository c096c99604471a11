"""The columns of `format("fila")`: what a read gives, and what a write takes.

Owns names and types, the check of a schema somebody brings, and the cast of the broker's Arrow
batches to exactly what Spark expects: it takes nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    ByteType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from fila.spark.arrow import arrow_schema
from fila.spark.source.options import SourceError

_TEXT: Final = StringType()
_TEXTS: Final = ArrayType(_TEXT)
_MAP: Final = MapType(_TEXT, _TEXT)
_WHOLE: Final = (ByteType(), ShortType(), IntegerType(), LongType())

READ_SCHEMA: Final = StructType(
    [
        StructField("message_id", _TEXT),
        StructField("queue", _TEXT),
        StructField("payload", BinaryType()),
        StructField("headers", _MAP),
        StructField("fairness_key", _TEXT),
        StructField("weight", LongType()),
        StructField("throttle_keys", _TEXTS),
        StructField("attempts", LongType()),
        StructField("enqueued_at", TimestampType()),
        StructField("ready_at", TimestampType()),
        StructField("state", _TEXT),
    ]
)
# A table of a catalog is written by INSERT INTO, too: these are null when it is read.
TABLE_SCHEMA: Final = StructType(
    [*READ_SCHEMA, StructField("delay_ms", LongType()), StructField("idempotency_key", _TEXT)]
)
_READ: Final = {field.name: field.dataType for field in TABLE_SCHEMA}
# What the broker gives a message; INSERT INTO leaves them null.
GIVEN: Final = ("message_id", "attempts", "enqueued_at", "ready_at", "state")

WRITE_COLUMNS: Final[dict[str, tuple[DataType, ...]]] = {
    "payload": (BinaryType(), _TEXT),
    "queue": (_TEXT,),
    "headers": (_MAP,),
    "fairness_key": (_TEXT,),
    "weight": _WHOLE,
    "throttle_keys": (_TEXTS,),
    "delay_ms": _WHOLE,
    "idempotency_key": (_TEXT,),
}


def check_read(schema: StructType) -> None:
    """May somebody's `.schema(...)` be read? Any of the columns, in any order, with their types."""
    for field in schema.fields:
        kind = _READ.get(field.name)
        if kind is None:
            raise SourceError(_unknown(field.name, list(_READ), "is no column of a queue"))
        if not _same(field.dataType, kind):
            raise SourceError(
                f"column {field.name} is {kind.simpleString()}, "
                f"not {field.dataType.simpleString()}; read it so and cast it afterwards"
            )


def check_write(schema: StructType, queue: str) -> None:
    """Can rows of this schema become messages?"""
    names = schema.fieldNames()
    whole = {*READ_SCHEMA.names} <= {*names}  # INSERT INTO has every column, most of them null
    for field in schema.fields:
        if whole and field.name in GIVEN:
            continue
        kinds = WRITE_COLUMNS.get(field.name)
        if kinds is None:
            what = "is no column of a message to write"
            raise SourceError(_unknown(field.name, list(WRITE_COLUMNS), what))
        if not any(_same(field.dataType, kind) for kind in kinds):
            wanted = " or ".join(kind.simpleString() for kind in kinds)
            raise SourceError(
                f"column {field.name} must be {wanted}, not {field.dataType.simpleString()}"
            )
    if "payload" not in names:
        raise SourceError(
            "column payload is missing (binary or string): the body of each message; "
            "for whole rows as JSON: to_json(struct(*)) as payload"
        )
    if not queue and "queue" not in names:
        raise SourceError('which queue? Say .option("queue", "orders") or give a column queue')


class Shape:
    """Casts the broker's batches to a schema of Spark's, column by column."""

    def __init__(self, schema: StructType) -> None:
        self._schema: pa.Schema = arrow_schema(schema)

    def batches(self, stream: bytes) -> Iterator[Any]:
        """The record batches of an Arrow IPC stream, as Spark wants them."""
        if stream:
            for batch in pa.ipc.open_stream(stream):
                known = batch.schema.names
                columns = [
                    batch.column(field.name).cast(field.type)
                    if field.name in known
                    else pa.nulls(batch.num_rows, field.type)
                    for field in self._schema
                ]
                yield pa.record_batch(columns, schema=self._schema)


def _same(given: DataType, wanted: DataType) -> bool:
    """Whether something may be null inside does not matter."""
    return given.simpleString() == wanted.simpleString()


def _unknown(name: str, known: list[str], what: str) -> str:
    near = get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]}?" if near else f"drop it; known: {', '.join(known)}"
    return f"column {name} {what}; {hint}"
