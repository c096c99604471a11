"""`fila pipeline …` from its arguments to its report: a session, the events asked for, one job.

Owns what the common options mean. The command line itself is `fila.cli.pipeline`; nothing of Spark
is imported before it is needed, so `doctor` can say what is missing.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from fila.spark import doctor
from fila.spark.session import get_spark, working

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from fila.spark.gaps import Gap
    from fila.spark.report import Report

# What keys held before the time asked for is known from the snapshots, one a minute by default.
_LOOK_BACK: Final = timedelta(minutes=3)


@dataclass
class Request:
    """What was asked."""

    verb: str
    journal: str
    start: datetime | None = None
    end: datetime | None = None
    queue: str = ""
    master: str = ""
    remote: str = ""
    conf: dict[str, str] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    tables: str | None = None  # None: those beside the journal, if there are any; "": none


def run(request: Request) -> list[Report]:
    """The reports asked for."""
    if request.verb == "doctor":
        return [_doctor(request)]
    spark = get_spark(request.master, request.remote, request.conf, f"fila {request.verb}")
    with working(spark, request.verb):
        from fila.spark import reports
        from fila.spark.gaps import gaps_of

        if request.verb == "compact":
            today = datetime.now(UTC).date()
            grace_s = request.options["grace"]
            return [reports.compact_report(spark, request.journal, today, grace_s)]
        events = _events(spark, request)
        gaps = gaps_of(events)
        made = _reports(spark, request, events, gaps)
        for one in made:
            one.said += reports.gaps_said(gaps)
        return made


def _reports(
    spark: SparkSession, request: Request, events: DataFrame, gaps: list[Gap]
) -> list[Report]:
    from fila.spark import reports
    from fila.spark.replay import Changes

    options = request.options
    if request.verb == "fairness":
        return [_fairness(spark, request, gaps)]
    if request.verb == "delays":
        return [_delays(spark, request, options["key"])]
    if request.verb == "latency":
        return [reports.latency_report(events)]
    if request.verb == "funnel":
        moved = _events(spark, request, moved=True)
        return [reports.funnel_report(moved, options["by"] == "key", request.queue)]
    if request.verb == "errors":
        return [reports.errors_report(events, options["top"])]
    if request.verb == "whatif":
        changes = Changes(
            options["weight"], options["rate"], options["quantum"], options["consumers"]
        )
        settings = _events(spark, request, start=None, queue="")
        return [reports.whatif_report(events, settings, changes, options["recorded_quantum"])]
    assert request.verb == "report"
    return [
        _fairness(spark, request, gaps),
        _delays(spark, request, ""),
        reports.latency_report(events),
        reports.funnel_report(_events(spark, request, moved=True), False, request.queue),
        reports.errors_report(events, options["top"]),
    ]


def _fairness(spark: SparkSession, request: Request, gaps: list[Gap]) -> Report:
    from fila.spark.fairness_report import fairness_report
    from fila.spark.presence import NEEDS

    start = request.start - _LOOK_BACK if request.start is not None else None
    events = _events(spark, request, start=start, needs=NEEDS)
    options = request.options
    return fairness_report(
        events, options["window"], options["quantum"], request.start, gaps, options["top"]
    )


def _delays(spark: SparkSession, request: Request, key: str) -> Report:
    from fila.spark import reports
    from fila.spark.presence import NEEDS

    events = _events(spark, request, needs=NEEDS)
    return reports.delays_report(events, request.options["top"], key)


def _doctor(request: Request) -> Report:
    checks = doctor.local_checks()
    if all(one.status == doctor.OK for one in checks) or request.remote:
        spark = get_spark(request.master, request.remote, request.conf, "fila doctor")
        checks.append(doctor.Check("spark", doctor.OK, spark.version))
        with working(spark, "doctor"):
            checks.append(doctor.worker_check(spark))
            checks += doctor.journal_checks(spark, request.journal)
    from fila.spark.report import Report, Table

    failed = [one for one in checks if one.status == doctor.FAILED]
    said = [f"{len(failed)} checks failed." if failed else "All is well."]
    found = Table("checks", list(doctor.Check._fields), list(checks))
    return Report("doctor", "Is everything there?", said, [found], failed=bool(failed))


_AS_ASKED: Final = object()


def _events(
    spark: SparkSession,
    request: Request,
    start: Any = _AS_ASKED,
    queue: Any = _AS_ASKED,
    moved: bool = False,
    needs: Collection[str] = (),
) -> DataFrame:
    from fila.spark.events import read_events
    from fila.spark.tables.recorded import recorded, tables_beside

    asked = (
        request.journal,
        request.start if start is _AS_ASKED else start,
        request.end,
        request.queue if queue is _AS_ASKED else queue,
        moved,
        needs,
    )
    tables = tables_beside(request.journal) if request.tables is None else request.tables
    return recorded(spark, tables, *asked) if tables else read_events(spark, *asked)
