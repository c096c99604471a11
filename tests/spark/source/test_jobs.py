"""`fila pipeline archive|replay|import|init`, in this process, on the shared session."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fila.cli.main import main
from fila.spark.jobs.archive import Archived, archive, dated
from fila.spark.jobs.submit import submission
from tests.spark.source.conftest import fill, held, numbers, parquet_numbers


@pytest.fixture
def pipeline(address: str, capsys: Any) -> Any:
    def call(*words: str, code: int = 0) -> Any:
        assert main(["pipeline", *words, "--addr", address, "--json"]) == code
        return json.loads(capsys.readouterr().out)

    return call


def test_an_archive_goes_on_where_it_stood(spark, pipeline, client, queue, tmp_path) -> None:
    target = tmp_path / "lake"
    for first in (0, 40):
        fill(client, queue, 40, first=first, headers={"tenant": "a"}, fairness_key="a")
        done = pipeline("archive", "--queue", queue, "--to", str(target))
        assert done["archived"][0]["rows"] == 40
    assert parquet_numbers(spark, target) == list(range(80))
    assert held(client, queue) == (0, 0)
    row = spark.read.parquet(str(target)).first()
    assert (row.headers, row.fairness_key, row.queue) == ({"tenant": "a"}, "a", queue)
    assert row.date == row.enqueued_at.date()


def test_an_archive_for_good_takes_what_comes_until_it_is_interrupted(
    spark, pipeline, client, queue, address, tmp_path
) -> None:
    target = tmp_path / "lake"
    fill(client, queue, 40)
    later: list[int] = [30]

    def told(so_far: Archived) -> None:
        if so_far.rows == 40 and later:
            fill(client, queue, later.pop(), first=40)  # comes when the first are in the files
        elif so_far.rows == 70:
            raise KeyboardInterrupt  # as Ctrl-C does

    options = {"address": address, "queue": queue}
    assert archive(spark, options, str(target), 0.2, told).rows == 70
    assert parquet_numbers(spark, target) == list(range(70))
    fill(client, queue, 5, first=70)
    pipeline("archive", "--queue", queue, "--to", str(target))
    assert parquet_numbers(spark, target) == list(range(75))
    assert held(client, queue) == (0, 0)


def test_a_replay_is_dry_first_then_once_and_marked(
    spark, pipeline, client, address, queue, tmp_path, capsys
) -> None:
    fill(client, queue, 20, headers={"tenant": "a"})
    target = str(tmp_path / "lake")
    pipeline("archive", "--queue", queue, "--to", target)
    words = ["replay", "--archive", target, "--where", "cast(text as int) >= 15", "--to", queue]
    dry = pipeline(*words)
    assert dry["chosen"][0]["messages"] == 5
    assert "Nothing was sent" in " ".join(dry["said"])
    assert held(client, queue) == (0, 0)
    window = ["--execute", "--window-keys", "4", "--addr", address]
    assert main(["pipeline", *words, *window]) == 1
    assert "5 messages are more than the 4 idempotency keys" in capsys.readouterr().err
    assert held(client, queue) == (0, 0)
    for _ in range(2):  # the same run twice sends nothing twice
        pipeline(*words, "--execute", "--rate", "50")
    found = list(client.browse(queue))
    assert numbers(found) == [15, 16, 17, 18, 19]
    first = {row.message_id for row in spark.read.parquet(target).collect()}
    assert {one.headers["replay_of"] for one in found} <= first
    assert {one.headers["tenant"] for one in found} == {"a"}
    pipeline(*words, "--execute", "--run", "again")
    assert held(client, queue) == (10, 0)


def test_dead_letters_are_replayed_by_what_they_say(pipeline, client, queue) -> None:
    fill(client, f"{queue}.dlq", 10)
    words = ["replay", "--queue", f"{queue}.dlq", "--where", "text in ('3', '4')", "--to", queue]
    assert pipeline(*words, "--execute")["chosen"][0]["messages"] == 2
    assert numbers(client.browse(queue)) == [3, 4]
    assert held(client, f"{queue}.dlq") == (10, 0)


def test_rows_of_files_become_messages(pipeline, client, queue, tmp_path: Path) -> None:
    path = tmp_path / "users.csv"
    path.write_text("id,tenant,name\n1,acme,Ann\n2,globex,Bob\n2,globex,Bob\n")
    words = ["import", str(path), "--to", queue, "--fairness-key", "tenant",
             "--idempotency-key", "concat('user-', id)", "--header", "tenant=tenant",
             "--throttle-key", "concat('t:', tenant)"]  # fmt: skip
    assert pipeline(*words, "--dry-run")["imported"][0]["rows"] == 3
    assert held(client, queue) == (0, 0)
    pipeline(*words)
    found = {json.loads(one.payload)["name"]: one for one in client.browse(queue)}
    assert sorted(found) == ["Ann", "Bob"]
    assert held(client, queue) == (2, 0)
    assert (found["Ann"].fairness_key, found["Ann"].headers) == ("acme", {"tenant": "acme"})
    assert list(found["Ann"].throttle_keys) == ["t:acme"]
    lines = tmp_path / "rows.json"
    lines.write_text('{"payload": "x", "n": 1}\n{"payload": "y", "n": 2}\n')
    said = pipeline("import", str(lines), "--to", queue, "--where", "n = 2")["said"]
    assert "at least once" in " ".join(said)
    assert held(client, queue) == (3, 0)


def test_what_a_job_cannot_do_is_told_in_a_line(spark, address, queue, tmp_path, capsys) -> None:
    def failed(*words: str) -> str:
        assert main(["pipeline", *words, "--addr", address]) != 0
        return capsys.readouterr().err

    assert "one of them" in failed("replay", "--to", queue)
    nowhere = ["archive", "--queue", "nowhere", "--to", str(tmp_path / "x")]
    error = failed(*nowhere)
    assert 'queue "nowhere" does not exist' in error
    assert "Traceback" not in error
    assert "which format" in failed("import", "file", "--to", queue)


def test_a_submission_ships_the_package_to_driver_and_workers(tmp_path: Path) -> None:
    made = submission("yarn", "cluster", {"a.b": "c"}, ["archive"], "the-key", tmp_path)
    assert "the-key" not in " ".join(made.command)
    settings = (tmp_path / "spark.properties").read_text().splitlines()
    assert "spark.yarn.appMasterEnv.PYTHONPATH fila.zip" in settings
    assert "a.b c" in settings
    assert (tmp_path / "spark.properties").stat().st_mode & 0o077 == 0
    here = submission("spark://h:7077", "client", {}, ["archive"], "", tmp_path)
    assert str(tmp_path / "fila.zip") in here.environ["PYTHONPATH"]
    pods = submission("k8s://h", "cluster", {}, ["archive"], "", tmp_path)
    assert "spark.kubernetes.driverEnv.PYTHONPATH" in (tmp_path / "spark.properties").read_text()
    assert pods.command[-1] == "archive"
    listed = subprocess.run(
        [sys.executable, "-m", "zipfile", "-l", str(tmp_path / "fila.zip")],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "pyspark_fila/__init__.py" in listed
    assert "fila/spark/source/stream_reader.py" in listed


def test_a_new_project_runs(spark, client, queue, address, tmp_path, monkeypatch, capsys) -> None:
    folder = tmp_path / "mending"
    assert main(["pipeline", "init", str(folder), "--queue", queue]) == 0
    assert main(["pipeline", "init", str(folder)]) == 1
    assert "already" in capsys.readouterr().err
    client.enqueue(f"{queue}.dlq", None, b" 7 ")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["job.py", "--mend"])
    # On the shared session: its processes do not know this broker by the environment.
    job = (folder / "job.py").read_text()
    job = job.replace('.format("fila")', f'.format("fila").option("address", "{address}")')
    exec(compile(job, "job.py", "exec"), {"__name__": "__main__", "__file__": "job.py"})
    assert (folder / "checkpoint").is_dir()
    assert [one.payload for one in client.browse(queue)] == [b"7"]
    assert held(client, f"{queue}.dlq") == (0, 0)
    monkeypatch.syspath_prepend(str(folder))
    test: dict[str, Any] = {}
    exec(compile((folder / "test_job.py").read_text(), "test_job.py", "exec"), test)
    test["test_letters_are_counted_and_mended"]()
    sys.modules.pop("job", None)


@pytest.mark.parametrize("zone", ["America/Los_Angeles", "Asia/Tokyo"])
def test_the_day_of_an_archived_message_is_that_of_utc_in_every_zone(spark, zone: str) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        moments = spark.sql(
            "select timestamp_micros(1700006399999999L) enqueued_at, 1 ready_at, 2 state "
            "union all select timestamp_micros(1700006400000000L), 1, 2"
        )
        days = sorted(str(row.date) for row in dated(moments).collect())
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    assert days == ["2023-11-14", "2023-11-15"]
