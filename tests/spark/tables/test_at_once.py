"""Facts and products as plain functions: the rows of the tables, without a job with state."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import functions as fn

from fila.spark.products.blame import blame
from fila.spark.tables import at_once
from fila.spark.tables.schemas import TIME
from fila.spark.tables.store import ParquetStore
from tests.spark.tables.conftest import rows

PLACED = ("date", "hour")  # where a row's file lies


def told(frame: Any) -> list[tuple[Any, ...]]:
    names = [name for name in sorted(frame.columns) if name not in PLACED]
    return sorted((tuple(row) for row in frame.select(*names).collect()), key=repr)


@pytest.fixture(scope="module")
def events(whole: ParquetStore) -> Any:
    return rows(whole, "events")


@pytest.fixture(scope="module")
def facts(events: Any) -> Any:
    found = at_once.facts_of(events).persist()
    yield found
    found.unpersist()


def test_facts_are_those_of_the_table(facts: Any, whole: ParquetStore) -> None:
    expected = told(rows(whole, "facts"))
    assert told(facts) == expected
    assert len(expected) > 50


@pytest.mark.parametrize("table", ["fairness", "blame", "capacity", "anomalies"])
def test_products_are_those_of_the_tables(
    facts: Any, events: Any, whole: ParquetStore, table: str
) -> None:
    """Of the periods that are over: the tables have no others."""
    made = {
        "fairness": lambda: at_once.fairness(facts, events),
        "blame": lambda: blame(events),
        "capacity": lambda: at_once.capacity(facts),
        "anomalies": lambda: at_once.anomalies(facts),
    }[table]()
    expected = rows(whole, table)
    if table != "anomalies":  # this record is too short for a habit
        last = expected.agg(fn.max(TIME[table])).first()[0]
        assert last is not None
        made = made.where(fn.col(TIME[table]) <= last)
    assert told(made) == told(expected)
