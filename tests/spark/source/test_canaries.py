"""What we rely on in Spark, each by itself: a canary that falls silent says what changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import ReadMaxRows

from tests.e2e.process import wait_until


def counting_source(name: str, journal: Path, batches: int) -> type[DataSource]:
    """Ten rows a batch; every call is written down. Defined here, so that workers get it by
    value."""

    class Reader(DataSourceStreamReader):
        def note(self, call: str, value: Any = None) -> None:
            with journal.open("a") as lines:
                lines.write(json.dumps([call, value]) + "\n")

        def initialOffset(self) -> dict[str, int]:  # noqa: N802
            self.note("initialOffset")
            return {"n": 0}

        def getDefaultReadLimit(self) -> Any:  # noqa: N802
            return ReadMaxRows(10)

        def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # noqa: N802
            self.note("latestOffset", [start["n"], limit.max_rows])
            return {"n": min(batches, start["n"] + 1)}

        def partitions(self, start: Any, end: Any) -> list[InputPartition]:
            self.note("partitions", [start["n"], end["n"]])
            return [] if start["n"] == 1 else [InputPartition(start["n"])]

        def commit(self, end: dict[str, int]) -> None:
            self.note("commit", end["n"])

        def stop(self) -> None:
            self.note("stop")

        def read(self, partition: InputPartition) -> Any:
            return iter([(partition.value,)] * 10)

    class Source(DataSource):
        @classmethod
        def name(cls) -> str:
            return name

        def schema(self) -> str:
            return "n int"

        def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802
            return Reader()

    return Source


def test_spark_calls_a_stream_as_we_think(spark, tmp_path: Path) -> None:
    journal = tmp_path / "calls"
    journal.touch()
    spark.dataSource.register(counting_source("canary_calls", journal, batches=3))
    seen: list[tuple[int, int]] = []

    def calls(name: str) -> list[Any]:
        lines = [json.loads(line) for line in journal.read_text().splitlines()]
        return [value for call, value in lines if call == name]

    def look(frame: Any, batch: int) -> None:
        seen.append((batch, frame.count()))

    query = (
        spark.readStream.format("canary_calls").load()
        .writeStream.foreachBatch(look).option("checkpointLocation", str(tmp_path / "c")).start()
    )  # fmt: skip
    try:
        wait_until(lambda: [3, 10] in calls("latestOffset"), 30, "the last batch to be committed")
        asked_for = len(calls("latestOffset"))
        # Asked all the time while idle: so the broker has to hold the question.
        wait_until(lambda: len(calls("latestOffset")) >= asked_for + 3, 30, "more questions")
    finally:
        query.stop()
    # The limit is our default; `start` walks over what is committed.
    assert calls("latestOffset")[:3] == [[0, 10], [1, 10], [2, 10]]
    # A batch without partitions is an empty batch.
    assert seen == [(0, 10), (1, 0), (2, 10)]
    # The last batch is never told to `commit`: an idle queue would keep it for ever.
    assert 3 not in calls("commit")
    assert {1, 2} <= {*calls("commit")}


def test_a_record_batch_must_have_the_very_schema(spark) -> None:
    class Reader(DataSourceReader):
        def read(self, partition: Any) -> Any:
            import pyarrow as pa

            yield pa.record_batch({"n": pa.array([1], pa.uint32())})

    class Source(DataSource):
        @classmethod
        def name(cls) -> str:
            return "canary_schema"

        def schema(self) -> str:
            return "n bigint"

        def reader(self, schema: Any) -> DataSourceReader:
            return Reader()

    spark.dataSource.register(Source)
    with pytest.raises(Exception, match="DATA_SOURCE_RETURN_SCHEMA_MISMATCH"):
        spark.read.format("canary_schema").load().collect()


def test_a_source_with_filter_pushdown_is_refused_by_default(spark) -> None:
    class Reader(DataSourceReader):
        def pushFilters(self, filters: Any) -> Any:  # noqa: N802
            return filters

        def read(self, partition: Any) -> Any:
            return iter([(1,)])

    class Source(DataSource):
        @classmethod
        def name(cls) -> str:
            return "canary_filters"

        def schema(self) -> str:
            return "n int"

        def reader(self, schema: Any) -> DataSourceReader:
            return Reader()

    spark.dataSource.register(Source)
    if spark.conf.get("spark.sql.python.filterPushdown.enabled") == "true":
        pytest.fail("filter pushdown is on by default now: time to look at it again")
    with pytest.raises(Exception, match="DATA_SOURCE_PUSHDOWN_DISABLED"):
        spark.read.format("canary_filters").load().collect()


def test_the_format_is_found_without_being_registered(spark) -> None:
    """By the package `pyspark_fila`: an option of ours is what is complained about."""
    with pytest.raises(Exception, match="option nonsense is not known"):
        spark.read.format("fila").option("nonsense", "1").load("q")


def test_registering_by_hand_is_possible(spark) -> None:
    from fila.spark import register

    other = spark.newSession()
    register(other)
    with pytest.raises(Exception, match="option nonsense is not known"):
        other.read.format("fila").option("nonsense", "1").load("q")
