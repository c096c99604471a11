"""A Spark session: embedded by default, on a cluster when asked, quiet either way.

Owns how Spark is started: Java, the Python its workers run, time zone, where its log goes, what is
shipped to a cluster, and the line that says how far it is. Knows nothing of the jobs.

The JVM inherits a file as its standard output and error, so a terminal sees results and our own
progress line, not what the JVM and libraries in it say, and JSON stays JSON; when Spark fails to
start, the end of that file is shown.
"""

from __future__ import annotations

import os
import socket
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final
from urllib.parse import urlsplit

from fila.distribution import install
from fila.spark.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONNECT_PORT: Final = 15_002
_CONNECT_S: Final = 10.0
EMBEDDED: Final = "local[*,4]"  # a task may fail three times, as on a cluster
_GATEWAY: Final = "PYSPARK_GATEWAY_PORT"
_CLEAR_LINE: Final = "\r\x1b[K"
_INTERVAL_S: Final = 0.2
_SHOWN_LINES: Final = 12

# What every session of ours has; `conf` overrides.
# Spark carries a condition on with every combination of old and new names of its columns. Reports
# rename columns often: a filter on their result made the driver run out of memory.
_PLANNING: Final = {"spark.sql.constraintPropagation.enabled": "false"}
_CONF: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",  # ours is shorter, and Spark's would go to its log
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "true",
    # Exact percentages and sums want the types the journal has.
    "spark.sql.ansi.enabled": "true",
    # Spark's old form of a time has no statistics, and few others read it.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    **_PLANNING,
}


class SparkUnavailable(Exception):  # noqa: N818
    """Spark cannot be used here; the message says what is missing and what to do."""


def get_spark(
    master: str = "",
    remote: str = "",
    conf: Mapping[str, str] | None = None,
    app: str = "fila",
) -> SparkSession:
    """A session on `remote` (Spark Connect), on `master`, or embedded in this machine."""
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise SparkUnavailable(
            f"{error.name} is missing; install the extra: {install('spark')}"
        ) from error
    settings = {**_CONF, **(conf or {})}
    # Workers run the Python this process runs, unless somebody said otherwise.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(app)
    if remote:
        return _connect(builder, remote, conf or {})
    java = find_java()
    os.environ["JAVA_HOME"] = str(java.home)
    if not master and _GATEWAY in os.environ:
        # spark-submit started this process: it has said where, and shipped the package.
        return _configured(builder, settings).getOrCreate()
    master = master or EMBEDDED
    if master.startswith("local"):
        # A laptop's name often resolves to nothing the driver could listen on.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        settings.setdefault("spark.driver.memory", "2g")
        settings.setdefault("spark.sql.shuffle.partitions", "4")
    package = None
    if not master.startswith("local"):
        # Executors get the package as a file of the application. The processes Spark starts beside
        # the driver (it plans reads and asks streams there) do not: they inherit this.
        package = package_zip()
        paths = [str(package), os.environ.get("PYTHONPATH", "")]
        os.environ["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    spark = _started(_configured(builder.master(master), settings), master)
    if package is not None:
        spark.sparkContext.addPyFile(str(package))
    return spark


@contextmanager
def working(spark: SparkSession, what: str) -> Iterator[None]:
    """Say on a terminal how many tasks are done while the block runs."""
    if not sys.stderr.isatty():
        yield
        return
    done = threading.Event()
    line = threading.Thread(target=_draw, args=(spark, what, done), daemon=True)
    line.start()
    try:
        yield
    finally:
        done.set()
        line.join()


def _configured(builder: SparkSession.Builder, settings: Mapping[str, str]) -> SparkSession.Builder:
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder


def _started(builder: SparkSession.Builder, master: str) -> SparkSession:
    if sys.stderr.isatty():
        sys.stderr.write(f"{_CLEAR_LINE}starting Spark on {master} …")
        sys.stderr.flush()
    with tempfile.NamedTemporaryFile("w+", prefix="fila-spark-", suffix=".log") as log:
        try:
            with _output_into(log):
                return builder.getOrCreate()
        except Exception as error:
            log.seek(0)
            tail = log.read().strip().splitlines()[-_SHOWN_LINES:]
            said = "\n".join(tail) or str(error)
            raise SparkUnavailable(f"Spark did not start on {master}:\n{said}") from error
        finally:
            if sys.stderr.isatty():
                sys.stderr.write(_CLEAR_LINE)


def _connect(builder: SparkSession.Builder, remote: str, conf: Mapping[str, str]) -> SparkSession:
    _answers(remote)
    try:
        spark = _configured(builder.remote(remote), conf).getOrCreate()
        for name, value in (("spark.sql.session.timeZone", "UTC"), *_PLANNING.items()):
            spark.conf.set(name, value)
        spark.addArtifacts(str(package_zip()), pyfile=True)
        return spark
    except ImportError as error:
        raise SparkUnavailable(
            f"{error}; Spark Connect needs more: pip install 'pyspark[connect]'"
        ) from error
    except Exception as error:
        raise SparkUnavailable(f"no Spark Connect server at {remote}: {error}") from error


def _answers(remote: str) -> None:
    """Is anybody there? Spark itself would go on trying for ten minutes."""
    place = urlsplit(remote)
    if place.scheme != "sc" or not place.hostname:
        raise SparkUnavailable(f"{remote} is no Spark Connect address; one is sc://host:15002")
    try:
        socket.create_connection((place.hostname, place.port or CONNECT_PORT), _CONNECT_S).close()
    except OSError as error:
        raise SparkUnavailable(f"no Spark Connect server at {remote}: {error}") from error


def package_zip() -> Path:
    """This package as one file, for workers that do not have it installed."""
    root = Path(__file__).resolve().parents[2]
    target = Path(tempfile.mkdtemp(prefix="fila-spark-")) / "fila.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in ("fila", "pyspark_fila", "pyspark_fila_journal"):
            for path in sorted((root / package).rglob("*")):
                if path.suffix in (".py", ".json", ".lua"):
                    archive.write(path, str(path.relative_to(root)))
    return target


@contextmanager
def _output_into(file: IO[str]) -> Iterator[None]:
    """Processes started in the block inherit this file as their standard output and error."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    os.dup2(file.fileno(), 1)
    os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        for number, before in enumerate(kept, 1):
            os.dup2(before, number)
            os.close(before)


def _draw(spark: SparkSession, what: str, done: threading.Event) -> None:
    started_at = time.monotonic()
    tracker = None
    try:
        tracker = spark.sparkContext.statusTracker()
    except Exception:  # Spark Connect has none
        pass
    while not done.wait(_INTERVAL_S):
        tasks = ""
        if tracker is not None:
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            known = [stage for stage in stages if stage is not None]
            if known:
                finished = sum(stage.numCompletedTasks for stage in known)
                tasks = f", task {finished} of {sum(stage.numTasks for stage in known)}"
        passed_s = time.monotonic() - started_at
        sys.stderr.write(f"{_CLEAR_LINE}{what}{tasks} ({passed_s:.0f} s)")
        sys.stderr.flush()
    sys.stderr.write(_CLEAR_LINE)
    sys.stderr.flush()
