"""docs/pipeline/examples/enrich.py: from a queue, with a table, into a queue, through kill -9."""

from __future__ import annotations

import json
import os
import runpy
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fila.client.new_message import NewMessage
from tests.e2e.process import wait_until
from tests.spark.source.conftest import held, wait_for_empty

EXAMPLE = Path(__file__).resolve().parents[3] / "docs" / "pipeline" / "examples" / "enrich.py"
ROWS = 40  # of a batch
_RUN_S = 300
# A few rows: compiling costs more than it saves.
_FAST = """
spark.driver.extraJavaOptions -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
spark.sql.codegen.wholeStage false
"""


@pytest.mark.slow
def test_a_job_killed_in_the_middle_of_a_batch_sends_every_message_once(
    spark, address, client, queue, tmp_path: Path
) -> None:
    to, unread = f"{queue}.enriched", f"{queue}.unread"
    for name in (to, unread):
        client.create_queue(name)
    pq.write_table(
        pa.table({"customer": ["acme", "globex"], "segment": ["gold", "new"]}),
        tmp_path / "customers.parquet",
    )
    count = 60
    names = ("acme", "globex", "stranger")
    orders = {
        number: {"id": number, "customer": names[number % 3], "amount": number / 4}
        for number in range(count)
    }
    client.enqueue_messages(
        NewMessage(queue, json.dumps(order).encode(), headers={"n": str(number)})
        for number, order in orders.items()
    )
    client.enqueue_messages(NewMessage(queue, body) for body in (b"{", b"", b'{"id": "seven"}'))

    checkpoint = tmp_path / "checkpoint"
    words = ["--addr", address, "--queue", queue, "--to", to, "--unread", unread,
             "--rows", str(ROWS), "--once", "--checkpoint", str(checkpoint),
             "--customers", str(tmp_path / "customers.parquet")]  # fmt: skip
    (tmp_path / "spark-defaults.conf").write_text(_FAST)
    environ = {**os.environ, "SPARK_CONF_DIR": str(tmp_path)}

    def sent() -> int:
        return held(client, to)[0] + held(client, unread)[0]

    def committed() -> int:
        return len(list(checkpoint.glob("commits/[0-9]*")))

    # Slow enough to be met while a batch is being written: twenty seconds.
    job = subprocess.Popen(
        [sys.executable, str(EXAMPLE), *words, "--rate", "2", "--master", "local[1]"],
        env=environ, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        wait_until(lambda: sent() > ROWS * committed() or job.poll() is not None, _RUN_S, "work")
        assert job.poll() is None
    finally:
        os.killpg(job.pid, signal.SIGKILL)  # the driver, its JVM and their Python
        job.wait()
    before = sent()
    assert before > ROWS * committed(), "the batch was committed before the kill"
    # Another driver goes on from the checkpoint.
    example = runpy.run_path(str(EXAMPLE))
    query = example["start"](spark, example["command_line"]().parse_args(words))
    try:
        assert query.awaitTermination(_RUN_S), "the job is not done"
        told = query.recentProgress
    finally:
        query.stop()
    wait_for_empty(client, queue)

    found = list(client.browse(to))
    bodies = Counter(int(json.loads(one.payload)["id"]) for one in found)
    assert bodies == Counter(range(count))
    segments = {"acme": "gold", "globex": "new"}
    for one in found:
        body = json.loads(one.payload)
        assert one.headers == {"n": str(body["id"])}
        order = orders[body["id"]]
        expected = {**order, "segment": segments.get(str(order["customer"]))}
        assert body == {name: value for name, value in expected.items() if value is not None}
    assert sorted(one.payload for one in client.browse(unread)) == [b"", b"{", b'{"id": "seven"}']
    # Sent again after the kill, and stored once: what the progress counts is more than is there.
    again = sum(one.observedMetrics["orders"].sent for one in told if one.observedMetrics)
    assert again > count + 3 - before
