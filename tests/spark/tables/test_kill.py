"""`fila pipeline run` beside a working broker, killed again and again: the tables are exact."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import functions as fn

from fila.client.sync import FilaClient
from fila.spark import demo
from fila.spark.events import read_events
from fila.spark.tables.run import Asked
from fila.spark.tables.run import run as keep
from fila.spark.tables.schemas import schemas
from fila.spark.tables.store import ParquetStore
from tests.e2e.process import wait_until
from tests.spark.tables.conftest import rows

_FAST = ["--conf", "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
         "--conf", "spark.sql.codegen.wholeStage=false", "--master", "local[1]"]  # fmt: skip


def pipeline(verb: str, journal: Path, tables: Path, *words: str) -> list[str]:
    return [sys.executable, "-m", "fila.cli.main", "pipeline", verb, "--journal", str(journal),
            "--tables", str(tables), *words]  # fmt: skip


@pytest.mark.slow
def test_tables_equal_the_brokers_counters_whatever_was_killed(spark, tmp_path: Path) -> None:
    journal, tables = tmp_path / "journal", tmp_path / "tables"
    run = pipeline("run", journal, tables, "--max-events", "4000", "--trigger", "1s", *_FAST)
    with demo.running_broker(tmp_path, journal) as address:
        load = threading.Thread(target=demo.trouble, args=(address, 4.0))
        load.start()
        # Killed once the events of a batch were moved, and once one was committed.
        for place in ("events/date=*/hour=*/b*", "_commits/b*"):
            before = len(list(tables.glob(place)))
            with (tmp_path / "driver.log").open("a") as log:
                driver = subprocess.Popen(run, stderr=log, start_new_session=True)
            try:
                wait_until(lambda: _more(tables, place, before, driver), 300, place)  # noqa: B023
            finally:
                os.killpg(driver.pid, signal.SIGKILL)  # the driver, its JVM and their Python
                driver.wait()
        load.join()
        with FilaClient(address) as client:
            stats = {name: client.get_stats(name) for name in ("jobs", "jobs.dlq")}
    keep(spark, Asked((str(journal),), str(tables), available_now=True))
    store = ParquetStore(spark, str(tables), schemas())
    events, facts = rows(store, "events"), rows(store, "facts")
    recorded = read_events(spark, str(journal))
    assert events.drop("date", "hour").exceptAll(recorded).isEmpty()
    assert recorded.count() == events.count() == events.select("epoch", "seq").distinct().count()
    state = json.loads(_said(pipeline("status", journal, tables, "--json")))
    assert (state["events"], state["brokers"][0]["behind"]) == (events.count(), 0)

    # Facts of what is over, and the open window's cells, count what the events do.
    last = store.contents().last
    assert last is not None
    still_open = spark.read.parquet(store.place.address(f"{last.state}/cells"))
    counted: Counter[tuple[str, str]] = Counter()
    for frame in (facts, still_open):
        for name in ("enqueued", "delivered", "acked", "dead_lettered"):
            for row in frame.groupBy("queue").agg(fn.sum(name).alias("count")).collect():
                counted[row.queue, name] += row["count"] or 0
    for row in recorded.where("queue = 'jobs'").groupBy("event").count().collect():
        if row.event in ("enqueued", "delivered", "acked"):
            assert counted["jobs", row.event] == row["count"], row.event
    # And these are the broker's own.
    requeued = recorded.where("event in ('requeued', 'released') and queue = 'jobs'").count()
    pending = counted["jobs", "enqueued"] + requeued - counted["jobs", "delivered"]
    assert pending == stats["jobs"].depth
    assert counted["jobs", "dead_lettered"] == stats["jobs.dlq"].depth


def _more(tables: Path, place: str, before: int, driver: subprocess.Popen[bytes]) -> bool:
    assert driver.poll() is None, "the driver ended by itself: see driver.log"
    return len(list(tables.glob(place))) > before


def _said(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
