"""Fixtures: one embedded Spark session for all of these tests; journals made of core events."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark", reason="the extra `spark` is not installed")

from fila.core.effect import Event
from fila.journal import files
from fila.journal.columns import events_batch
from fila.journal.files import Stream
from fila.journal.recovery import gap_count
from fila.spark.events import read_events
from fila.spark.session import get_spark
from tests.spark.tables.filled import record, scenario, whole

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["BROKER", "EPOCH", "Journal", "record", "scenario", "spark", "whole", "write"]

BROKER = "test"
EPOCH = 1


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    conf = {
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        # A few thousand rows: compiling costs more than it saves.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.adaptive.enabled": "false",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    # A task may fail twice: repeated tasks are among what is tested.
    session = get_spark("local[2,3]", conf=conf, app="fila tests")
    yield session
    session.stop()


Journal = Callable[..., "DataFrame"]


@pytest.fixture
def journal(spark: SparkSession, tmp_path: Path) -> Journal:
    """Writes events as a sealed journal, as the broker does, and reads them back."""

    def make(events: list[Event], epoch: int = EPOCH) -> DataFrame:
        write(tmp_path, events, epoch)
        return read_events(spark, str(tmp_path))

    return make


def write(
    root: Path, events: list[Event], epoch: int = EPOCH, first_seq: int = 1, broker: str = BROKER
) -> list[Path]:
    counts = [gap_count(one) for one in events]
    batch = events_batch(events, first_seq, broker, epoch, counts)
    return files.seal(root, Stream("events", broker, epoch), [batch])
