"""Payloads as columns: a message's bytes read by a schema, and rows made into bytes.

Owns the forms there are. JSON needs nothing; Avro and Protobuf are Spark's own, whose jars the
session has to be started with (`spark.jars.packages`). What cannot be read is kept: its columns are
null, and `malformed` has its bytes, so a poisoned message is seen and stops nobody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as fn

from fila.spark.source.options import SourceError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

JSON, AVRO, PROTOBUF = "json", "avro", "protobuf"
FORMS: Final = (JSON, AVRO, PROTOBUF)
MALFORMED: Final = "malformed"
_READ: Final = "_read"
_PERMISSIVE: Final = {"mode": "PERMISSIVE"}
_SCALA: Final = "2.13"  # of every Spark 4


def unpacked(
    messages: DataFrame, schema: str, form: str = JSON, *, descriptor: str = "", prefix: str = ""
) -> DataFrame:
    """The messages with their payloads' columns in place of `payload`, and `malformed`.

    `schema` is, for JSON, Spark's text for columns (`id bigint, amount double`), for Avro the
    schema as JSON, for Protobuf the message's name, with the path of a `descriptor` file. Columns
    of the payload that are called like one of the message's need a `prefix`."""
    try:
        read = messages.withColumn(_READ, _read(fn.col("payload"), form, schema, descriptor))
        names = read.select(f"{_READ}.*").columns
    except SourceError:
        raise
    except Exception as error:
        raise SourceError(_said(error, form)) from error
    bad = f"{_READ} is null"
    if form == JSON:
        names.pop()  # what Spark has put there of a text it could not read
        bad += f" or {_READ}.{MALFORMED} is not null"
    kept = [name for name in messages.columns if name != "payload"]
    both = {prefix + name for name in names} & {*kept, MALFORMED}
    if both:
        raise SourceError(
            f"payload and message would both have a column {min(both)}; give the payload's a "
            'prefix: unpacked(…, prefix="body_")'
        )
    columns = [
        fn.when(~fn.expr(bad), fn.col(f"{_READ}.`{name}`")).alias(prefix + name) for name in names
    ]
    return read.select(*kept, *columns, fn.when(fn.expr(bad), fn.col("payload")).alias(MALFORMED))


def packed(rows: DataFrame, *columns: str) -> DataFrame:
    """Rows to write: the columns named, as JSON, become `payload`; the others stay."""
    missing = [name for name in columns if name not in rows.columns]
    if missing or not columns:
        raise SourceError(
            f"no column {missing[0]} to pack; there are: {', '.join(rows.columns)}"
            if missing
            else "which columns become the payload? packed(rows, 'id', 'amount')"
        )
    kept = [name for name in rows.columns if name not in columns]
    return rows.select(*kept, fn.to_json(fn.struct(*columns)).alias("payload"))


def _read(payload: Column, form: str, schema: str, descriptor: str) -> Column:
    if form == JSON:
        options = {**_PERMISSIVE, "columnNameOfCorruptRecord": MALFORMED}
        columns = f"{schema.strip().rstrip(',')}, {MALFORMED} string"
        return fn.from_json(payload.cast("string"), columns, options)
    if form == AVRO:
        from pyspark.sql.avro.functions import from_avro

        return from_avro(payload, schema, _PERMISSIVE)
    if form == PROTOBUF:
        from pyspark.sql.protobuf.functions import from_protobuf

        return from_protobuf(payload, schema, descriptor or None, _PERMISSIVE)
    raise SourceError(f"{form!r} is no form of a payload; there are: {', '.join(FORMS)}")


def _said(error: Exception, form: str) -> str:
    from pyspark import __version__

    said = str(error).strip().partition("\n")[0]
    if form == JSON:
        return f"the schema cannot be used: {said}"
    return (
        f"Spark cannot read {form} here: {said}. If its jar is missing, start the session with "
        f"--conf spark.jars.packages=org.apache.spark:spark-{form}_{_SCALA}:{__version__}"
    )
