"""A job from what was asked to what is reported: a session, the job, a few lines of result.

Owns how options of a command become options of `format("fila")`, and the path of the API key: into
the environment of driver and workers, never into an option.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from fila.spark.report import Report, Table
from fila.spark.session import get_spark, working

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

API_KEY: Final = "FILA_API_KEY"
# Spark shows settings on its pages; what this matches is hidden there.
_HIDDEN: Final = "(?i)secret|password|token|access[.]?key|api_?key"
_SHOWN_ROWS: Final = 20
_SAID: Final = re.compile(r"\bSourceError: (.+)")


class JobError(Exception):
    """The job cannot run as asked; the message says what to change."""


@dataclass
class Job:
    """What was asked."""

    verb: str
    broker: Mapping[str, str]  # options of format("fila") that say where and how
    api_key: str = ""
    master: str = ""
    remote: str = ""
    conf: dict[str, str] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)

    def session(self) -> SparkSession:
        conf = dict(self.conf)
        if self.api_key:
            os.environ[API_KEY] = self.api_key
            if not self.remote:
                conf.setdefault(f"spark.executorEnv.{API_KEY}", self.api_key)
                conf.setdefault("spark.redaction.regex", _HIDDEN)
        return get_spark(self.master, self.remote, conf, f"fila {self.verb}")


def run(job: Job, told: Callable[[str], None] = lambda line: None) -> Report:
    """The job's report. `told` hears how far a job that does not end has come."""
    jobs = {"archive": _archive, "replay": _replay, "import": _import}
    try:
        return jobs[job.verb](job, told)
    except Exception as error:
        # What the source said on the driver or a worker comes wrapped in Spark's own words.
        found = _SAID.search(str(error))
        if found is None:
            raise
        raise JobError(found[1]) from error


def _archive(job: Job, told: Callable[[str], None]) -> Report:
    from fila.spark.jobs.archive import Archived, archive

    asked = job.options
    options = {**job.broker, "queue": asked["queue"], "streamName": "archive"}
    if asked["rows"]:
        options["maxRowsPerBatch"] = str(asked["rows"])
    if asked["visibility"]:
        options["visibilityTimeoutSeconds"] = str(asked["visibility"])
    last = Archived(0, 0)

    def tell(so_far: Archived) -> None:
        nonlocal last
        if asked["every"] and so_far != last:
            told(f"{so_far.rows} messages in {so_far.batches} batches")
        last = so_far

    spark = job.session()
    done = archive(spark, options, asked["to"], asked["every"], tell)
    said = [f"{done.rows} messages of {asked['queue']} in {done.batches} batches to {asked['to']}."]
    table = Table("archived", ["queue", "path", "rows", "batches"],
                  [(asked["queue"], asked["to"], done.rows, done.batches)])  # fmt: skip
    return Report("archive", "Archived", said, [table])


def _replay(job: Job, told: Callable[[str], None]) -> Report:
    from fila.spark.jobs.replay import as_messages, chosen, run_name, send

    asked = job.options
    if bool(asked["archive"]) == bool(asked["queue"]):
        raise JobError("from where? Say --archive PATH or --queue QUEUE, one of them")
    source = {**job.broker, "queue": asked["queue"]} if asked["queue"] else None
    run_as = asked["run"] or run_name(
        asked["archive"] or asked["queue"], asked["where"], asked["to"]
    )
    spark = job.session()
    with working(spark, "replay"):
        frame = chosen(spark, asked["archive"], source, asked["where"]).cache()
        tables, count = _overview(frame)
        if not asked["execute"]:
            said = [f"{count} messages would be replayed to {asked['to']} as run {run_as}.",
                    "Nothing was sent; --execute sends them."]  # fmt: skip
            return Report("replay", "A dry run", said, tables)
        if count > asked["window_keys"]:
            raise JobError(
                f"{count:,} messages are more than the {asked['window_keys']:,} idempotency keys "
                f"that {asked['to']} remembers: after a failure half way the same command would "
                "send the first ones twice. Choose fewer with --where, one run after the other, or "
                "say --window-keys if the broker has a larger idempotency.max_keys"
            )
        send(as_messages(frame, run_as), {**job.broker, "queue": asked["to"]}, asked["rate"])
    said = [f"{count} messages replayed to {asked['to']} as run {run_as}.",
            "The same command again sends nothing twice; another --run would."]  # fmt: skip
    return Report("replay", "Replayed", said, tables)


def _overview(frame: DataFrame) -> tuple[list[Table], int]:
    """How many of which key, and some of them."""
    counts = frame.groupBy("queue", "fairness_key").count().orderBy("count", ascending=False)
    rows = [tuple(row) for row in counts.limit(_SHOWN_ROWS).collect()]
    sample = frame.selectExpr("message_id", "fairness_key", "attempts", "left(text, 60) as payload")
    some = [tuple(row) for row in sample.limit(5).collect()]
    tables = [
        Table("chosen", ["queue", "fairness_key", "messages"], list(rows)),
        Table("sample", ["message_id", "fairness_key", "attempts", "payload"], list(some)),
    ]
    return tables, frame.count()


def _import(job: Job, told: Callable[[str], None]) -> Report:
    from fila.spark.jobs.importing import Mapped, as_messages, read_files
    from fila.spark.jobs.replay import send

    asked = job.options
    mapped = Mapped(
        asked["payload"],
        asked["fairness_key"],
        asked["weight"],
        asked["delay_ms"],
        asked["idempotency_key"],
        asked["header"],
        asked["throttle_key"],
    )
    spark = job.session()
    with working(spark, "import"):
        messages = as_messages(
            read_files(spark, asked["path"], asked["format"], asked["where"]), mapped
        )
        count = messages.count()
        if not asked["dry_run"]:
            send(messages, {**job.broker, "queue": asked["to"]}, asked["rate"])
    verb = "would go" if asked["dry_run"] else "went"
    said = [f"{count} rows of {asked['path']} {verb} to {asked['to']}."]
    if not mapped.idempotency_key:
        said.append(
            "Without --idempotency-key a task that Spark repeats stores its rows again: at least "
            "once."
        )
    table = Table("imported", ["path", "queue", "rows"], [(asked["path"], asked["to"], count)])
    return Report("import", "Imported", said, [table])
