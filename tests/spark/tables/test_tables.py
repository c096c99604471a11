"""The journal into tables: exactly once, the same whatever batches it came in."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import functions as fn

from fila.spark.events import read_events
from fila.spark.products.capacity import capacity
from fila.spark.products.chargeback import chargeback
from fila.spark.products.slo import slo
from fila.spark.tables.cells import CELL, COUNTED, PARTS
from fila.spark.tables.commits import CommitLog
from fila.spark.tables.schemas import carry_schema, schemas
from fila.spark.tables.store import ParquetStore
from tests.spark.tables.conftest import rows
from tests.spark.tables.filled import fill
from tests.spark.tables.scenario import BROKER, Scenario


def same(one, other) -> bool:
    """Whether two tables have the same rows; maps as what is in them."""
    plain = [
        frame.withColumns(
            {
                field.name: fn.map_entries(field.name)
                for field in frame.schema
                if field.dataType.typeName() == "map"
            }
        )
        for frame in (one, other)
    ]
    return plain[0].exceptAll(plain[1]).isEmpty() and plain[1].exceptAll(plain[0]).isEmpty()


def test_the_events_table_is_the_journal(spark, record: Path, whole: ParquetStore) -> None:
    found = rows(whole, "events")
    assert same(found.drop("date", "hour"), read_events(spark, str(record)))
    assert found.where("date != to_date(ts) or hour != hour(ts)").isEmpty()


def test_facts_count_what_happened(scenario: Scenario, whole: ParquetStore) -> None:
    facts = rows(whole, "facts")
    sums = facts.groupBy("epoch", "queue", "fairness_key").agg(
        *[fn.sum(n).alias(n) for n in COUNTED]
    )
    found: Counter[tuple[int, str, str, str]] = Counter()
    for row in sums.collect():
        for event in COUNTED:
            found[row.epoch, row.queue, row.fairness_key, event] += row[event]
    counted = scenario.counts()
    expected = Counter({one: count for one, count in counted.items() if one[3] in COUNTED})
    assert +found == expected
    assert facts.groupBy(*CELL).count().where("count > 1").isEmpty()


def test_the_parts_of_the_wait_add_up(whole: ParquetStore) -> None:
    parts = sum((fn.col(f"wait_{part}_us") for part in PARTS[1:]), fn.col(f"wait_{PARTS[0]}_us"))
    facts = rows(whole, "facts")
    assert facts.where("delivered > 0").count() > 50
    assert facts.where(parts != fn.col("wait_us")).isEmpty()


def test_processing_time_is_how_long_leases_lasted(scenario, whole: ParquetStore) -> None:
    facts = rows(whole, "facts")
    found = facts.groupBy("epoch", "queue", "fairness_key").agg(fn.sum("processing_us").alias("us"))
    told = {
        (row.epoch, row.queue, row.fairness_key): row.us for row in found.where("us > 0").collect()
    }
    expected = scenario.held_us()
    assert told.keys() == expected.keys()
    for key, us in expected.items():
        assert told[key] == pytest.approx(us, abs=100)  # each end is cut to a microsecond


def test_the_same_record_in_small_batches_gives_the_same_tables(
    spark, record: Path, whole: ParquetStore, tmp_path: Path
) -> None:
    pieces = fill(spark, record, tmp_path / "tables", events_max=1_500)
    last, of_whole = pieces.contents().last, whole.contents().last
    assert last is not None and of_whole is not None
    assert last.batch >= 2
    assert last.reached == of_whole.reached
    for table in schemas():
        assert same(rows(pieces, table), rows(whole, table)), table


class Killed(Exception):  # noqa: N818
    """The end of a process, as far as one can be had within it."""


def test_a_job_that_dies_anywhere_in_a_batch_goes_on_where_it_was(
    spark, record: Path, whole: ParquetStore, tmp_path: Path, monkeypatch
) -> None:
    """After the events, the facts, the state and the products, before and after the commit."""
    tables = tmp_path / "tables"
    deaths = ["facts", "carry", "blame", "habits", "add", "added"]
    steps = iter(deaths)
    dying = next(steps)

    def die_at(name: str) -> None:
        nonlocal dying
        if name == dying:
            dying = next(steps, "")
            raise Killed(name)

    write, write_state, add = ParquetStore.write, ParquetStore.write_state, CommitLog.add

    def deadly_write(self, table, *words):
        die_at(table)
        return write(self, table, *words)

    def deadly_state(self, name, *words):
        die_at(name)
        return write_state(self, name, *words)

    def deadly_add(self, commit):
        die_at("add")
        add(self, commit)
        die_at("added")

    monkeypatch.setattr(ParquetStore, "write", deadly_write)
    monkeypatch.setattr(ParquetStore, "write_state", deadly_state)
    monkeypatch.setattr(CommitLog, "add", deadly_add)
    for death in deaths:
        with pytest.raises(Exception, match="Killed"):
            fill(spark, record, tables, events_max=3_000)
        assert dying != death
    store = fill(spark, record, tables, events_max=3_000)
    for table in schemas():
        assert same(rows(store, table), rows(whole, table)), table
        stored = {one.path for one in store.place.files(table)}
        assert stored == {one.path for one in store.contents().of(table)}  # nothing was left over


def test_products_are_what_their_functions_say_of_the_periods_that_are_over(
    spark, record: Path, whole: ParquetStore
) -> None:
    last = whole.contents().last
    assert last is not None
    over = f"window < {last.details['products'][BROKER]}"
    facts = rows(whole, "facts").where(over)
    assert same(rows(whole, "slo").drop("date", "hour"), slo(facts))
    charged = chargeback(facts, 30, "period_start")
    assert same(rows(whole, "chargeback").drop("date", "hour"), charged)
    nobody = spark.createDataFrame([], carry_schema())
    everything = capacity(rows(whole, "facts"), nobody)
    assert same(rows(whole, "capacity").drop("date", "hour"), everything)
    # Those of the verdict, and what is blamed, add up to what was handed out and waited for.
    told = rows(whole, "fairness").groupBy("queue").agg(fn.sum("delivered").alias("delivered"))
    handed_out = facts.where("delivered > 0").groupBy("queue").agg(
        fn.sum("delivered").alias("delivered")
    )  # fmt: skip
    assert same(told, handed_out)
    by_key = ("epoch", "queue", "fairness_key")
    blamed = rows(whole, "blame").groupBy(*by_key).agg(
        fn.sum("turn_us").alias("turn_us"), fn.sum("consumer_us").alias("consumer_us")
    )  # fmt: skip
    waited = facts.groupBy(*by_key).agg(
        fn.sum("wait_turn_us").alias("waited"),
        fn.expr("sum(wait_no_consumer_us + wait_busy_own_us + wait_busy_others_us) as stalled"),
    )
    both = waited.join(blamed, [*by_key], "left").na.fill(0)
    assert both.where("abs(turn_us - waited) > 1000 or abs(consumer_us - stalled) > 1000").isEmpty()
    assert not blamed.isEmpty()


def test_tables_and_a_checkpoint_that_do_not_belong_together_are_refused(
    spark, record: Path, whole: ParquetStore, tmp_path: Path
) -> None:
    tables = tmp_path / "tables"
    shutil.copytree(whole.place.root, tables)
    shutil.rmtree(tables / "_checkpoint")
    with pytest.raises(Exception, match="another checkpoint"):
        fill(spark, record, tables)
