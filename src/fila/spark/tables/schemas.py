"""The columns of every table, as Spark knows them."""

from __future__ import annotations

from functools import cache
from typing import Final

from pyspark.sql.types import (
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from fila.spark.events import events_schema
from fila.spark.tables.cells import COLUMNS, KEY
from fila.spark.tables.facts import CARRIED, FACT

EVENTS: Final = "events"
FACTS: Final = "facts"
# The column that says of when a row is: tables are cut into hours by it.
TIME: Final = {EVENTS: "ts", FACTS: "window_start"}
# How the rows of a file are sorted: who asks for one queue reads little of the others.
ORDER: Final = {EVENTS: ("queue", "ts", "seq"), FACTS: ("queue", "fairness_key", "window")}
_TEXT: Final = ("broker", "queue", "fairness_key")


@cache
def schemas() -> dict[str, StructType]:
    return {EVENTS: events_schema(), FACTS: facts_schema()}


@cache
def cells_schema() -> StructType:
    return StructType([_field(name) for name in COLUMNS])


@cache
def facts_schema() -> StructType:
    return StructType([_field(name) for name in FACT])


@cache
def carry_schema() -> StructType:
    return StructType([_field(name) for name in (*KEY, *CARRIED)])


def _field(name: str) -> StructField:
    if name in _TEXT:
        return StructField(name, StringType())
    if name == "window_start":
        return StructField(name, TimestampType())
    if name == "histogram":
        return StructField(name, MapType(IntegerType(), LongType()))
    return StructField(name, LongType())
