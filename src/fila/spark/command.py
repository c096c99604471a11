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
        cells = _cells(spark, request)
        whole = cells is not None and cells.where("lost > 0").isEmpty()
        gaps = [] if whole else gaps_of(events)
        made = _reports(spark, request, events, cells, gaps)
        for one in made:
            one.said += reports.gaps_said(gaps)
        return made


def _reports(
    spark: SparkSession,
    request: Request,
    events: DataFrame,
    cells: DataFrame | None,
    gaps: list[Gap],
) -> list[Report]:
    from fila.spark import reports
    from fila.spark.replay import Changes

    options = request.options
    if request.verb == "fairness":
        return [_fairness(spark, request, gaps)]
    if request.verb == "delays":
        return [_delays(spark, request, cells, options["key"])]
    if request.verb == "latency":
        return [_latency(events, cells)]
    if request.verb == "funnel":
        return [_funnel(spark, request, cells, options["by"] == "key")]
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
        _delays(spark, request, cells, ""),
        _latency(events, cells),
        _funnel(spark, request, cells, False),
        reports.errors_report(events, options["top"]),
    ]


def _fairness(spark: SparkSession, request: Request, gaps: list[Gap]) -> Report:
    from fila.spark.fairness import fairness, judged
    from fila.spark.fairness_report import fairness_report
    from fila.spark.presence import NEEDS
    from fila.spark.tables.cells import WINDOW_US
    from fila.spark.tables.known import presence_of

    options = request.options
    window_us = round(options["window"] * 1e6)
    start = request.start
    if start is not None:
        # From the start of a window: the same whether it is read as a fact or event by event.
        start = datetime.fromtimestamp((start - _LOOK_BACK).timestamp() // 10 * 10, UTC)
    cells = _cells(spark, request, start, NEEDS) if window_us % WINDOW_US == 0 else None
    if cells is None:
        events = _events(spark, request, start=start, needs=NEEDS)
        shares = fairness(events, options["window"], options["quantum"], gaps)
    else:
        shares = judged(presence_of(cells, window_us), window_us, options["quantum"], gaps)
    return fairness_report(
        shares, options["window"], options["quantum"], request.start, options["top"]
    )


def _delays(spark: SparkSession, request: Request, cells: DataFrame | None, key: str) -> Report:
    from fila.spark import reports
    from fila.spark.presence import NEEDS

    events = _events(spark, request, needs=NEEDS)
    return reports.delays_report(events, request.options["top"], key, cells)


def _latency(events: DataFrame, cells: DataFrame | None) -> Report:
    from fila.spark.latency import latency, latency_of_cells
    from fila.spark.reports import latency_report

    if cells is None:
        return latency_report(latency(events))
    return latency_report(latency_of_cells(cells), exact=False)


def _funnel(spark: SparkSession, request: Request, cells: DataFrame | None, by_key: bool) -> Report:
    from fila.spark.funnel import funnel, funnel_of_cells
    from fila.spark.reports import funnel_report

    if cells is not None:
        return funnel_report(funnel_of_cells(cells, by_key))
    events = _events(spark, request, moved=True)
    return funnel_report(funnel(events, by_key, request.queue))


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


def _cells(
    spark: SparkSession, request: Request, start: Any = _AS_ASKED, needs: Collection[str] = ()
) -> DataFrame | None:
    """The same time as cells, if there are tables that have them."""
    from fila.spark.tables.known import known

    tables = _tables(request)
    if not tables:
        return None
    first = request.start if start is _AS_ASKED else start
    return known(spark, tables, request.journal, first, request.end, request.queue, needs)


def _tables(request: Request) -> str:
    from fila.spark.tables.recorded import tables_beside

    return tables_beside(request.journal) if request.tables is None else request.tables


def _events(
    spark: SparkSession,
    request: Request,
    start: Any = _AS_ASKED,
    queue: Any = _AS_ASKED,
    moved: bool = False,
    needs: Collection[str] = (),
) -> DataFrame:
    from fila.spark.events import read_events
    from fila.spark.tables.recorded import recorded

    asked = (
        request.journal,
        request.start if start is _AS_ASKED else start,
        request.end,
        request.queue if queue is _AS_ASKED else queue,
        moved,
        needs,
    )
    tables = _tables(request)
    return recorded(spark, tables, *asked) if tables else read_events(spark, *asked)
