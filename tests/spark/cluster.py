"""A standalone cluster of one worker, or of some, started from the wheel."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyspark

from fila.spark.java import find_java
from tests.e2e.process import wait_until

_CONF = (
    "spark.executor.memory=512m",
    "spark.sql.shuffle.partitions=2",
    "spark.driver.host=127.0.0.1",
    "spark.sql.codegen.wholeStage=false",
    "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1",
    "spark.executor.extraJavaOptions=-XX:TieredStopAtLevel=1",
)
SETTINGS = [word for setting in _CONF for word in ("--conf", setting)]


@contextmanager
def cluster(
    folder: Path, python: str = sys.executable, hosts: Sequence[str] = ("127.0.0.1",)
) -> Iterator[tuple[str, dict[str, str], int]]:
    """Its address, the environment for a driver, and the process id of the first worker; there is
    one on each host."""
    home = Path(pyspark.__file__).parent
    environ = {
        **os.environ, "SPARK_HOME": str(home), "JAVA_HOME": str(find_java().home),
        "PYSPARK_PYTHON": python, "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1",
    }  # fmt: skip

    def daemon(*words: str, host: str = "127.0.0.1") -> subprocess.Popen[bytes]:
        log = (folder / f"{words[0].rpartition('.')[2]}.log").open("ab")
        command = [str(home / "bin" / "spark-class"), *words, "--host", host]
        own = {**environ, "SPARK_LOCAL_IP": host}
        return subprocess.Popen(command, env=own, stdout=log, stderr=log, cwd=folder)

    deploy = "org.apache.spark.deploy"
    started = [daemon(f"{deploy}.master.Master", "--port", "0", "--webui-port", "0")]
    log = folder / "Master.log"
    try:
        found: list[str] = []

        def listening() -> bool:
            found[:] = re.findall(r"spark://127\.0\.0\.1:\d+", log.read_text(errors="replace"))
            return bool(found)

        wait_until(listening, 60, "the master's address")
        size = ["--cores", "1", "--memory", "1g", "--webui-port", "0"]
        work = ["--work-dir", str(folder / "work")]
        for host in hosts:
            started.append(daemon(f"{deploy}.worker.Worker", found[0], *size, *work, host=host))
        yield found[0], environ, started[1].pid
    finally:
        for process in started:
            process.terminate()
            process.wait(20)
