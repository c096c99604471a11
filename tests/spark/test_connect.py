"""Spark Connect: the same jobs against a server of its own, started from the wheel."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pyspark
import pytest

from fila.client.sync import FilaClient
from fila.spark.java import find_java
from tests.e2e.process import Broker, wait_until
from tests.spark.conftest import write
from tests.spark.test_fairness import traffic

_READY_S = 90
_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory):
    """The address of a Spark Connect server."""
    place = tmp_path_factory.mktemp("connect")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    home = Path(pyspark.__file__).parent
    environ = {
        **os.environ, "SPARK_HOME": str(home), "JAVA_HOME": str(find_java().home),
        "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1",
    }  # fmt: skip
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.codegen.wholeStage": "false",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    command = [str(home / "bin" / "spark-submit"), "--master", "local[2]", "--class", _SERVER]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    log = place / "server.log"
    with log.open("wb") as out:
        server = subprocess.Popen(
            [*command, "spark-internal"], env=environ, cwd=place, stdout=out, stderr=out
        )

    def listening() -> bool:
        assert server.poll() is None, log.read_text(errors="replace")[-3_000:]
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    try:
        wait_until(listening, _READY_S, "Spark Connect to listen")
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(30)


def pipeline(*words: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own: one process is either a classic or a remote client."""
    return subprocess.run(
        [sys.executable, "-m", "fila.cli.main", "pipeline", *words],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_reports_are_the_same_over_spark_connect(remote: str, tmp_path: Path) -> None:
    write(tmp_path, traffic(quantum=1))
    words = ["report", "--journal", str(tmp_path), "--window", "1s", "--json", "--remote", remote]
    done = pipeline(*words)
    assert done.returncode == 0, done.stderr
    found = {one["report"]: one for one in json.loads(done.stdout)}
    assert found["fairness"]["queues"][0]["verdict"] == "PASS"
    assert {row["fairness_key"] for row in found["latency"]["latency"]} == {"a", "b", "c"}


def test_the_cores_replay_runs_on_the_remote_workers(remote: str, tmp_path: Path) -> None:
    write(tmp_path, traffic(quantum=1))
    done = pipeline(
        "whatif", "--journal", str(tmp_path), "--weight", "a=5", "--json", "--remote", remote
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["calibration"][0]["trusted"] is True


def test_the_archive_job_is_the_same_over_spark_connect(remote: str, tmp_path: Path) -> None:
    with Broker(tmp_path / "data") as broker:
        address = "{}:{}".format(*broker.address)
        with FilaClient(address) as client:
            client.create_queue("q")
            client.enqueue_many(("q", None, str(number)) for number in range(300))
            target = tmp_path / "lake"
            words = ["--addr", address, "--queue", "q", "--to", str(target), "--rows", "200"]
            done = pipeline("archive", *words, "--json", "--remote", remote)
            assert done.returncode == 0, done.stderr
            assert json.loads(done.stdout)["archived"][0]["rows"] == 300
            assert [one.depth + one.in_flight for one in client.list_queues()] == [0, 0]
    found = pq.read_table(target).column("payload").to_pylist()
    assert sorted(map(int, found)) == list(range(300))


def test_a_server_that_is_not_there_is_told(tmp_path: Path) -> None:
    write(tmp_path, traffic(quantum=1))
    done = pipeline("latency", "--journal", str(tmp_path), "--remote", "sc://127.0.0.1:1")
    assert done.returncode == 1
    assert "no Spark Connect server at sc://127.0.0.1:1" in done.stderr
