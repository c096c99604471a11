"""`init`: a small project to start from: one job, one test, a page that says how to run them.

Owns the texts of its files. Never overwrites one that is there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from fila.distribution import requirement

_README: Final = """# {name}

A Spark job on Fila queues. It reads the dead letters of `{queue}`, counts them, and moves those
that can be mended back.

    python -m venv .venv && .venv/bin/pip install -r requirements.txt
    .venv/bin/python job.py                         # embedded in this machine
    .venv/bin/python job.py --mend                  # and move them back
    SPARK_MASTER=spark://host:7077 .venv/bin/python job.py
    .venv/bin/python -m pytest                      # no broker needed: the job is a pure function

`FILA_ADDR` names the broker (default localhost:5555), `FILA_API_KEY` holds the key.
"""

_REQUIREMENTS: Final = f"""{requirement("spark")}
pytest
"""

_JOB: Final = '''"""Dead letters of {queue}: count them, mend them, send them again."""

import os
import sys
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from fila.spark.session import get_spark

QUEUE = "{queue}"
CHECKPOINT = Path(__file__).resolve().parent / "checkpoint"


def by_key(letters: DataFrame) -> DataFrame:
    """How many of which tenant, and since when."""
    return letters.groupBy("fairness_key").agg(
        fn.count("*").alias("letters"), fn.min("enqueued_at").alias("oldest")
    )


def mended(letters: DataFrame) -> DataFrame:
    """The messages to send again. The id of the dead letter as idempotency key: each once."""
    return letters.select(
        fn.trim(fn.col("payload").cast("string")).alias("payload"),
        "headers",
        "fairness_key",
        fn.col("message_id").alias("idempotency_key"),
    )


def main() -> None:
    spark = get_spark(os.environ.get("SPARK_MASTER", ""), app="{name}")
    by_key(spark.read.format("fila").load(QUEUE + ".dlq")).show()
    if "--mend" in sys.argv:
        # A stream takes the letters out of the dead letter queue as it goes.
        query = (
            mended(spark.readStream.format("fila").load(QUEUE + ".dlq"))
            .writeStream.format("fila")
            .option("queue", QUEUE)
            .option("checkpointLocation", str(CHECKPOINT))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()


if __name__ == "__main__":
    main()
'''

_TEST: Final = """from fila.spark.session import get_spark
from job import by_key, mended


def test_letters_are_counted_and_mended():
    spark = get_spark("local[1]")
    letters = spark.createDataFrame(
        [("1", bytearray(b" a "), {{}}, "acme", None)],
        "message_id string, payload binary, headers map<string,string>, fairness_key string, "
        "enqueued_at timestamp",
    )
    assert by_key(letters).collect()[0].letters == 1
    assert mended(letters).collect()[0].payload == "a"
"""

_FILES: Final = {
    "README.md": _README,
    "requirements.txt": _REQUIREMENTS,
    "job.py": _JOB,
    "test_job.py": _TEST,
}


class ProjectExists(Exception):  # noqa: N818
    """Something of that name is there already."""


def create(folder: Path, queue: str) -> list[Path]:
    """Write the project; the files it has."""
    present = [name for name in _FILES if (folder / name).exists()]
    if present:
        raise ProjectExists(f"{folder} has a {present[0]} already; choose another folder")
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for name, text in _FILES.items():
        path = folder / name
        path.write_text(text.format(name=folder.resolve().name, queue=queue))
        made.append(path)
    return made
