"""Which runtime a Spark gets, what is said when there is none, and the lowest Spark as a whole."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fila.cli.main import main
from fila.spark.tables.commits import Commit, CommitLog, TablesError
from fila.spark.tables.formats import DELTA, FORMATS, ICEBERG, check, conf_for, unresolved
from fila.spark.tables.lake import format_of, store_of
from fila.spark.tables.place import LocalPlace
from fila.spark.tables.schemas import schemas

ROOT = Path(__file__).resolve().parents[3]


def test_parquet_needs_nothing() -> None:
    assert conf_for("parquet", "4.3.0", {"a": "b"}) == {"a": "b"}


@pytest.mark.parametrize(
    ("form", "spark"), [(DELTA, "4.1.4"), (DELTA, "4.2.1"), (ICEBERG, "4.1.4")]
)
def test_a_runtime_is_asked_for_by_sparks_version(form: str, spark: str) -> None:
    mine = {"spark.jars.packages": "a:b:1", "spark.sql.extensions": "c.D"}
    found = conf_for(form, spark, mine)
    first, package = found["spark.jars.packages"].split(",")
    assert first == "a:b:1"
    assert f"_{'.'.join(spark.split('.')[:2])}_2.13:" in package.replace("-runtime-", "_")
    assert form in package
    assert found["spark.sql.extensions"].startswith("c.D,")


@pytest.mark.parametrize("name", ["spark.jars.packages", "spark.jars"])
def test_a_runtime_that_was_named_is_taken(name: str) -> None:
    conf = {name: "/opt/my-iceberg-spark-runtime-4.9.jar"}
    found = conf_for(ICEBERG, "4.9.0", conf)
    assert found[name] == conf[name]
    assert "Iceberg" in found["spark.sql.extensions"]


def test_what_is_missing_is_said_in_a_line(spark, tmp_path: Path, capsys) -> None:
    with pytest.raises(TablesError, match='"orc" is no format of tables; there are: parquet, delt'):
        conf_for("orc", "4.1.0", {})
    for form in (DELTA, ICEBERG):
        with pytest.raises(TablesError) as caught:
            conf_for(form, "4.9.0", {})
        assert "has no runtime for Spark 4.9.0, but for 4.1" in str(caught.value)
        assert "pip install 'fila-broker[lakehouse]'" in str(caught.value)
        with pytest.raises(TablesError, match="no runtime for"):  # this session was given none
            store_of(spark, str(tmp_path), schemas(), form)
    assert main(["pipeline", "run", "--format", "orc", "--tables", str(tmp_path)]) == 1
    assert '"orc" is no format of tables' in capsys.readouterr().err
    check(spark, "parquet")


def test_a_runtime_that_cannot_be_fetched_is_one_line() -> None:
    said = "unresolved dependency: io.delta#delta-spark_4.1_2.13;4.4.0: not found"
    assert unresolved(DELTA, said).startswith("the runtime for Delta could not be fetched from Mav")
    assert unresolved(DELTA, "no space left on device") == ""
    assert unresolved("parquet", said) == ""


def test_tables_say_which_format_they_have(tmp_path: Path) -> None:
    assert format_of(str(tmp_path)) == "parquet"
    log = CommitLog(LocalPlace(tmp_path))
    for form in FORMATS:
        log.add(Commit(0, details={"format": form}))
        assert format_of(str(tmp_path)) == form
    log.add(Commit(0))  # as an earlier Fila wrote it
    assert format_of(str(tmp_path)) == "parquet"


@pytest.mark.slow
def test_the_lowest_spark() -> None:
    """In an environment of its own: Delta and Iceberg have no runtime for the newest Spark."""
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("PYTEST_", "PYSPARK_", "SPARK_"))}  # fmt: skip
    done = subprocess.run(
        ["make", "--no-print-directory", "lowest-spark", f"BIN={Path(sys.executable).parent}"],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=2_400,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-8_000:]
    assert " passed" in done.stdout and "skipped" not in done.stdout
