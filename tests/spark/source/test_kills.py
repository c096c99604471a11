"""kill -9 of the driver, of an executor, and the same archive job wherever Spark runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.process import wait_until
from tests.spark.cluster import SETTINGS, cluster
from tests.spark.source.conftest import fill, held, parquet_numbers, wait_for_empty

_FAST = ["--conf", "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
         "--conf", "spark.sql.codegen.wholeStage=false"]  # fmt: skip


def archive(address: str, queue: str, target: Path, *words: str) -> list[str]:
    return [
        sys.executable, "-m", "fila.cli.main", "pipeline", "archive", "--addr", address,
        "--queue", queue, "--to", str(target), "--json", *words,
    ]  # fmt: skip


@pytest.mark.slow
def test_a_driver_killed_three_times_archives_every_message_once(
    spark, address, client, queue, tmp_path: Path
) -> None:
    count = 1_200
    fill(client, queue, count)
    target = tmp_path / "lake"
    command = archive(address, queue, target, "--rows", "100", "--master", "local[1]", *_FAST)
    metadata, offsets = target / "_spark_metadata", target / "_checkpoint" / "offsets"
    # Killed after a batch was planned, after files were written, and after one was committed.
    watched = (offsets, target / "date=*", metadata)
    for kill, place in enumerate(watched):
        before = _newest(place)
        driver = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
        try:
            wait_until(lambda: _newest(place) > before or driver.poll() is not None, 90, "work")  # noqa: B023
        finally:
            os.killpg(driver.pid, signal.SIGKILL)  # the driver, its JVM and their Python
            driver.wait()
        assert held(client, queue) != (0, 0), f"run {kill} was over before it was killed"
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    assert parquet_numbers(spark, target) == list(range(count))
    assert held(client, queue) == (0, 0)


@pytest.mark.slow
def test_a_standalone_cluster_archives_through_the_death_of_an_executor(
    spark, address, client, queue, tmp_path: Path
) -> None:
    """The workers' Python has no Fila of its own: the package is shipped. Then the same by
    spark-submit."""
    count = 1_400
    fill(client, queue, count)
    target = tmp_path / "lake"
    with cluster(tmp_path, _python_without_fila(tmp_path)) as (master, environ, worker):
        words = ["--rows", "200", "--master", master, *SETTINGS]
        driver = subprocess.Popen(
            archive(address, queue, target, *words),
            env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        wait_until(lambda: _newest(target / "_spark_metadata") or driver.poll() is not None,
                   300, "the first batch")  # fmt: skip
        (executor,) = _executors(worker)
        os.kill(executor, signal.SIGKILL)
        out, err = driver.communicate(timeout=240)
        assert driver.returncode == 0, err
        assert json.loads(out)["archived"][0]["rows"] >= count - 400
        assert parquet_numbers(spark, target) == list(range(count))
        assert held(client, queue) == (0, 0)

        fill(client, queue, 50, first=count)
        submit = [sys.executable, "-m", "fila.cli.main", "pipeline", "submit", "--master", master,
                  "--addr", address, *SETTINGS, "--", "archive", "--queue", queue, "--to",
                  str(target), "--json"]  # fmt: skip
        done = subprocess.run(
            submit, env=environ, capture_output=True, text=True, timeout=240, check=False
        )
        assert done.returncode == 0, done.stderr
        assert parquet_numbers(spark, target) == list(range(count + 50))
        wait_for_empty(client, queue)


def _newest(place: Path) -> int:
    """How many files there are: more of them is progress."""
    return len(list(place.parent.glob(f"{place.name}/[!.]*")))


def _executors(worker: int) -> list[int]:
    """Processes of executors that a worker has started."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            continue
        if parent == worker and any(b"CoarseGrainedExecutorBackend" in word for word in words):
            found.append(int(entry.name))
    return found


def _python_without_fila(folder: Path) -> str:
    """A Python that sees the installed packages, but not this checkout."""
    import pyspark

    site = Path(pyspark.__file__).parents[1]
    script = folder / "python-without-fila"
    script.write_text(
        f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{site}" exec "{sys.executable}" -S "$@"\n'
    )
    script.chmod(0o755)
    return str(script)
