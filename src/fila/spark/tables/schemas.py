"""The columns of every table, as Spark knows them."""

from __future__ import annotations

from functools import cache
from typing import Final

from pyspark.sql.types import (
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from fila.spark.events import events_schema
from fila.spark.products.anomalies import HABIT
from fila.spark.products.chargeback import USED
from fila.spark.tables.cells import COLUMNS, KEY
from fila.spark.tables.facts import CARRIED, FACT

EVENTS: Final = "events"
FACTS: Final = "facts"
CAPACITY: Final = "capacity"
PARTITIONS: Final = ("date", "hour")  # what tables are cut by
# The column that says of when a row is: tables are cut into hours by it.
TIME: Final = {
    EVENTS: "ts", FACTS: "window_start", CAPACITY: "window_start", "fairness": "period_start",
    "slo": "minute", "chargeback": "period_start", "anomalies": "minute", "blame": "minute",
}  # fmt: skip
# How the rows of a file are sorted: who asks for one queue reads little of the others.
_TENANT: Final = ("queue", "fairness_key")
ORDER: Final = {
    EVENTS: ("queue", "ts", "seq"), FACTS: (*_TENANT, "window"), CAPACITY: ("queue", "window"),
    "fairness": _TENANT, "slo": _TENANT, "chargeback": _TENANT, "anomalies": _TENANT,
    "blame": _TENANT,
}  # fmt: skip
_OF_TENANT: Final = "broker string, queue string, fairness_key string, "
# As `spark.tables.products` makes them.
_PRODUCTS: Final = {
    CAPACITY: "broker string, epoch bigint, queue string, window bigint, window_start timestamp, "
    "arrived bigint, delivered bigint, acked bigint, failed bigint, backlog bigint, "
    "processing_us bigint, stalled_us bigint, joined bigint, left bigint, binding string, "
    "clears_s double",
    "fairness": _OF_TENANT + "period_start timestamp, delivered bigint, fair_share double, "
    "judged bigint, failed bigint, worst double, ready_s double, judged_s double, "
    "unjudged_s double, gap_s double, alone_s double, short double",
    "slo": _OF_TENANT + "minute timestamp, deliveries bigint, slow bigint, target double, "
    "within_ms double, burn_rate double",
    "chargeback": _OF_TENANT
    + "period_start timestamp, "
    + ", ".join(f"{name} bigint" for name in USED),
    "anomalies": _OF_TENANT + "minute timestamp, what string, value double, usual double, "
    "deviation double",
    "blame": "broker string, epoch bigint, queue string, minute timestamp, fairness_key string, "
    "blamed_key string, turn_us double, consumer_us double",
}
_TEXT: Final = ("broker", "queue", "fairness_key")


@cache
def schemas() -> dict[str, StructType]:
    products = {name: _from_text(text) for name, text in _PRODUCTS.items()}
    return {EVENTS: events_schema(), FACTS: facts_schema(), **products}


@cache
def cells_schema() -> StructType:
    return StructType([_field(name) for name in COLUMNS])


@cache
def facts_schema() -> StructType:
    return StructType([_field(name) for name in FACT])


@cache
def carry_schema() -> StructType:
    return StructType([_field(name) for name in (*KEY, *CARRIED)])


@cache
def habit_schema() -> StructType:
    return _from_text(HABIT)


def _field(name: str) -> StructField:
    if name in _TEXT:
        return StructField(name, StringType())
    if name == "window_start":
        return StructField(name, TimestampType())
    if name == "histogram":
        return StructField(name, MapType(IntegerType(), LongType()))
    return StructField(name, LongType())


def _from_text(text: str) -> StructType:
    kinds = {
        "string": StringType(), "bigint": LongType(), "double": DoubleType(),
        "timestamp": TimestampType(),
    }  # fmt: skip
    pairs = [one.split() for one in text.split(", ")]
    return StructType([StructField(name, kinds[kind]) for name, kind in pairs])
