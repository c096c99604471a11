"""Is everything there that the reports need? Java, Python on the workers, a whole journal.

Owns the list of checks. Each answers with what was found and, if it is not good, what to do.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fila.distribution import install
from fila.spark.java import JavaMissing, find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OK: Final = "ok"
WARNING: Final = "warning"
FAILED: Final = "failed"


class Check(NamedTuple):
    check: str
    status: str
    found: str


def local_checks() -> list[Check]:
    """What can be said without Spark: this Python, the packages, Java."""
    checks = [Check("python", OK, platform.python_version())]
    for package in ("pyspark", "pyarrow", "pandas"):
        try:
            checks.append(Check(package, OK, metadata.version(package)))
        except metadata.PackageNotFoundError:
            checks.append(Check(package, FAILED, f"missing: {install('spark')}"))
    try:
        java = find_java()
        checks.append(Check("java", OK, f"{java.version} in {java.home}"))
    except JavaMissing as error:
        checks.append(Check("java", FAILED, str(error)))
    return checks


def worker_check(spark: SparkSession) -> Check:
    """Ask a worker which Python it runs and whether it can work with us."""
    try:
        row = spark.range(1).mapInArrow(_introduce, "python string, pyarrow string").collect()[0]
    except Exception as error:
        last = str(error).strip().splitlines()[-1]
        return Check("workers", FAILED, f"no Python task ran ({last}); set PYSPARK_PYTHON")
    here = platform.python_version()
    found = f"Python {row['python']}, pyarrow {row['pyarrow']}"
    if row["python"].rsplit(".", 1)[0] != here.rsplit(".", 1)[0]:
        hint = f"{found}, but {here} here: set PYSPARK_PYTHON to the same version"
        return Check("workers", FAILED, hint)
    return Check("workers", OK, found)


def journal_checks(spark: SparkSession, root: str) -> list[Check]:
    """Is the journal there, and is it whole?"""
    from pyspark.sql import functions as fn

    from fila.journal import files
    from fila.spark.events import JournalMissing, covering, list_parts, read_events

    try:
        events = read_events(spark, root)
    except JournalMissing as error:
        return [Check("journal", FAILED, str(error))]
    parts = list_parts(spark, root)
    kept = covering(parts)
    hot = [] if "://" in root else files.hot_files(Path(root))
    row = events.agg(
        fn.sum("events").alias("events"),
        fn.min("ts").alias("first"),
        fn.max("ts").alias("last"),
        fn.sum(fn.when(fn.col("event") == "journal_gap", fn.col("events"))).alias("lost"),
    ).collect()[0]
    found = f"{row['events']:,} events from {row['first']} to {row['last']} UTC"
    checks = [
        Check("journal", OK, found),
        Check("parts", OK, f"{len(parts)} sealed, {len(hot)} hot"),
    ]
    holes = 0
    for before, after in pairwise(kept):
        if before[:2] == after[:2] and after.first > before.last + 1:
            holes += after.first - before.last - 1
    if holes:
        why = f"{holes:,} events lie between parts that are there: was one deleted or not copied?"
        checks.append(Check("holes", FAILED, why))
    if row["lost"]:
        why = (
            f"{row['lost']:,} events were dropped because the disk was slow: counts are short by "
            "that much, and verdicts around the gaps may be wrong"
        )
        checks.append(Check("gaps", WARNING, why))
    else:
        checks.append(Check("gaps", OK, "none"))
    if len(parts) > 1_000:
        checks.append(Check("small parts", WARNING, "many: run `fila pipeline compact`"))
    return checks


def _introduce(batches: Iterator[Any]) -> Iterator[Any]:
    import pyarrow as pa

    for _ in batches:
        row = {"python": platform.python_version(), "pyarrow": pa.__version__}
        yield pa.RecordBatch.from_pylist([row])
