"""Formats of tables, and what Spark needs to write each of them.

Owns which runtime belongs to which Spark, and what is said when there is none. Tables are Parquet
in every format, and Fila reads them as such; a runtime is needed for writing and maintenance alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fila.distribution import install
from fila.spark.tables.commits import TablesError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARQUET: Final = "parquet"
DELTA: Final = "delta"
ICEBERG: Final = "iceberg"
FORMATS: Final = (PARQUET, DELTA, ICEBERG)
_PACKAGES: Final = "spark.jars.packages"
_EXTENSIONS: Final = "spark.sql.extensions"


class Runtime(NamedTuple):
    name: str
    packages: Mapping[str, str]  # by Spark's version what Maven has for it
    extension: str
    conf: Mapping[str, str]


RUNTIMES: Final = {
    DELTA: Runtime(
        "Delta",
        {
            "4.1": "io.delta:delta-spark_4.1_2.13:4.4.0",
            "4.2": "io.delta:delta-spark_4.2_2.13:4.4.0",
        },
        "io.delta.sql.DeltaSparkSessionExtension",
        {
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            # Spark has them.
            "spark.jars.excludes": "org.apache.hadoop:hadoop-client-api,"
            "org.apache.hadoop:hadoop-client-runtime",
            # A vacuum lists folders in so many tasks; Spark's default is 10,000.
            "spark.sql.sources.parallelPartitionDiscovery.parallelism": "32",
            # The job reads the files of its own batch by their names.
            "spark.databricks.delta.formatCheck.enabled": "false",
        },
    ),
    ICEBERG: Runtime(
        "Iceberg",
        {"4.1": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"},
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        {},
    ),
}


def conf_for(form: str, spark_version: str, conf: Mapping[str, str]) -> dict[str, str]:
    """Settings of a session that is to write this format. Jars that `conf` names are taken as the
    runtime; else the one for this Spark is fetched from Maven when the session starts."""
    if form not in FORMATS:
        raise TablesError(f'"{form}" is no format of tables; there are: {", ".join(FORMATS)}')
    if form == PARQUET:
        return dict(conf)
    runtime = RUNTIMES[form]
    given = " ".join(conf.get(name, "") for name in (_PACKAGES, "spark.jars"))
    found = {**runtime.conf, **conf}
    if form not in given:
        package = runtime.packages.get(minor(spark_version))
        if package is None:
            raise TablesError(_none_for(form, spark_version))
        found[_PACKAGES] = ",".join(one for one in (conf.get(_PACKAGES), package) if one)
    found[_EXTENSIONS] = ",".join(one for one in (conf.get(_EXTENSIONS), runtime.extension) if one)
    return found


def check(spark: SparkSession, form: str) -> None:
    """Whether this session can write the format: it may have been started by others."""
    if form not in FORMATS:
        raise TablesError(f'"{form}" is no format of tables; there are: {", ".join(FORMATS)}')
    if form == PARQUET:
        return
    runtime = RUNTIMES[form]
    asked = (spark.conf.get(_EXTENSIONS, "") or "").split(",")
    if runtime.extension in asked and _there(spark, runtime.extension):
        return
    package = runtime.packages.get(minor(spark.version))
    if package is None:
        raise TablesError(_none_for(form, spark.version))
    raise TablesError(
        f"this Spark session has no runtime for {runtime.name}: start it with {_PACKAGES}={package}"
        f" and {_EXTENSIONS}={runtime.extension}"
    )


def minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def unresolved(form: str, said: str) -> str:
    """One line of what Spark says at length when a runtime cannot be fetched; empty: not that."""
    if form == PARQUET or not re.search(r"unresolved dependency|not found|download failed", said):
        return ""
    return (
        f"the runtime for {RUNTIMES[form].name} could not be fetched from Maven: give the jar with "
        "--conf spark.jars=PATH, or another repository with --conf spark.jars.repositories=URL"
    )


def _there(spark: SparkSession, name: str) -> bool:
    jvm: Any = spark.sparkContext._jvm
    try:
        jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(name)
    except Exception:  # Spark goes on without an extension that it cannot find
        return False
    return True


def _none_for(form: str, spark_version: str) -> str:
    runtime = RUNTIMES[form]
    known = sorted(runtime.packages)
    return (
        f"{runtime.name} has no runtime for Spark {spark_version}, but for "
        f"{' and '.join(known)}: {install('lakehouse')}, or name a jar with "
        f"--conf {_PACKAGES}=…"
    )
