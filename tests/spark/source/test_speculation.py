"""spark.speculation: a task that lags gets a twin; both read the same rows, one of them counts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.cluster import cluster
from tests.spark.source.conftest import fill, held, parquet_numbers

# A task of its own that is slow after it has given its rows: its twin has read them all too. Spark
# starts a twin on another host only.
_DRIVER = """
import sys, time
from pathlib import Path
from fila.spark.session import get_spark

master, address, queue, folder = sys.argv[1:]
spark = get_spark(master, conf={
    "spark.driver.host": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.speculation": "true",
    "spark.speculation.interval": "200ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.5",
    "spark.speculation.minTaskRuntime": "500ms",
})

def lag(batches):
    from pyspark import TaskContext
    task = TaskContext.get()
    rows = 0
    for batch in batches:
        rows += batch.num_rows
        yield batch
    mark = Path(folder) / f"read-{task.partitionId()}-{task.attemptNumber()}"
    mark.write_text(str(rows))
    if task.partitionId() == 0 and task.attemptNumber() == 0:
        time.sleep(60)

frame = spark.readStream.format("fila").option("address", address).load(queue)
query = (
    frame.mapInArrow(lag, frame.schema).writeStream.format("parquet")
    .option("path", folder + "/out").option("checkpointLocation", folder + "/checkpoint")
    .trigger(availableNow=True).start()
)
query.awaitTermination()
spark.stop()
"""


@pytest.mark.slow
def test_a_speculative_twin_reads_the_same_rows_and_each_is_written_once(
    spark, address, client, queue, tmp_path: Path
) -> None:
    count = 400
    fill(client, queue, count)
    with cluster(tmp_path, hosts=("127.0.0.1", "127.0.0.2")) as (master, environ, _):
        words = [sys.executable, "-c", _DRIVER, master, address, queue, str(tmp_path)]
        done = subprocess.run(
            words, env=environ, capture_output=True, text=True, timeout=240, check=False
        )
    assert done.returncode == 0, done.stderr
    lagging, twin = tmp_path / "read-0-0", tmp_path / "read-0-1"
    assert twin.exists(), "Spark started no twin"
    assert twin.read_text() == lagging.read_text() == "100"
    assert parquet_numbers(spark, tmp_path / "out") == list(range(count))
    assert held(client, queue) == (0, 0)
