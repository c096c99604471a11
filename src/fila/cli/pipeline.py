"""`fila pipeline …`: reports over the lifecycle journal, on Spark; jobs are in `pipeline_jobs`.

Owns the command line and where a report goes. The jobs are in `fila.spark`, which is imported only
when one runs: the rest of the command line needs neither Spark nor Java.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fila.cli import pipeline_jobs, pipeline_maintain, pipeline_show, pipeline_tables
from fila.cli.durations import seconds
from fila.cli.failure import EXIT_FAILED, EXIT_UNDECIDED, Failure, usage
from fila.cli.options import Subparsers, command, verbs, whole_number
from fila.cli.output import note, say, say_json, shown, table
from fila.distribution import install

if TYPE_CHECKING:
    from fila.spark.report import Report

DEFAULT_JOURNAL: Final = "data/journal"
_PAIRS: Final = ("weight", "rate")  # options that are given as NAME=VALUE, several times


def add_parser(subparsers: Subparsers) -> None:
    parser = command(
        subparsers,
        "pipeline",
        "on Spark: reports over the journal, and jobs between queues and files",
        about="Read the journal a broker writes (journal.enabled = true), and archive, replay and\n"
        "import messages, with Spark: embedded in this machine by default, or on a cluster. Needs\n"
        f"{install('spark')} and Java 17+.",
        examples="  fila pipeline doctor --journal data/journal\n"
        "  fila pipeline fairness --from 1h --output html",
    )
    verb = verbs(parser)
    fairness = _verb(
        verb,
        "fairness",
        "deliveries against the fair share, with a verdict",
        "Per queue, window and fairness key: what was delivered against the weighted fair share,\n"
        "and PASS or FAIL for the bound that fair scheduling promises. Exits with 1 on FAIL, with\n"
        "3 if there was too little to judge by.",
        "  fila pipeline fairness\n  fila pipeline fairness --queue orders --window 5s --json",
    )
    _window(fairness)
    _top(fairness)
    delays = _verb(
        verb,
        "delays",
        "where the waiting time of each key went",
        "The keys that waited longest: how much of it was retry delay, throttling, lack of\n"
        "consumers, their own backlog or others' turns, and who was served meanwhile.",
        "  fila pipeline delays --from 30m\n  fila pipeline delays --key acme",
    )
    _top(delays)
    delays.add_argument("--key", metavar="KEY", default="", help="this fairness key alone")
    _verb(
        verb,
        "latency",
        "percentiles of the wait per key",
        "How long messages of each key waited to be delivered, and how old they were.",
        "  fila pipeline latency --queue orders --output csv",
    )
    funnel = _verb(
        verb,
        "funnel",
        "enqueued, delivered, acked, retried, dead-lettered",
        "How many messages took each step, per queue and key.",
        "  fila pipeline funnel --by queue",
    )
    funnel.add_argument(
        "--by", choices=("key", "queue"), default="key", help="one row per (default %(default)s)"
    )
    errors = _verb(
        verb,
        "errors",
        "failures grouped by what their texts have in common",
        "Nacks and expired leases, grouped by error text without ids and numbers.",
        "  fila pipeline errors --from 24h",
    )
    _top(errors)
    _whatif(verb)
    compact = _verb(
        verb,
        "compact",
        "merge the small parts of closed days",
        "Merge the journal's parts of days that are over (UTC) into few large ones. Safe while\n"
        "the broker writes and while others read: what was merged is removed by a later run.",
        "  fila pipeline compact --journal data/journal",
    )
    compact.add_argument(
        "--grace", metavar="TIME", type=seconds, default=3_600.0,
        help="keep small parts so long after they were merged, for readers under way (default 1h)",
    )  # fmt: skip
    _verb(
        verb,
        "doctor",
        "check Java, Python on the workers, and the journal",
        "Is everything there that the reports need, and is the journal whole? Exits with 1 if not.",
        "  fila pipeline doctor",
    )
    report = _verb(
        verb,
        "report",
        "fairness, delays, latency, funnel and errors on one page",
        "All reports at once; made for --output html.",
        "  fila pipeline report --output html:report.html",
    )
    _window(report)
    _top(report)
    pipeline_jobs.add_parsers(verb, _pair, seconds)
    pipeline_tables.add_parsers(verb, _pair, seconds)
    pipeline_maintain.add_parsers(verb, _pair, seconds)
    pipeline_show.add_parsers(verb, _moment)


def run(args: argparse.Namespace) -> int:
    destinations = _destinations(args)
    from fila.spark.java import JavaMissing
    from fila.spark.session import SparkUnavailable

    try:
        reports = _reports(args)
        if isinstance(reports, int):
            return reports
        for where in destinations:
            _write(reports, where, args)
    except (JavaMissing, SparkUnavailable) as error:
        raise Failure(str(error), "`fila pipeline doctor` checks everything") from error
    except ImportError as error:
        raise Failure(f"{error.name} is missing", install("spark")) from error
    except Exception as error:
        if type(error).__module__.startswith(("fila.spark.", "fila.journal.")):
            raise Failure(str(error)) from error
        raise
    if any(report.failed for report in reports):
        return EXIT_FAILED
    return EXIT_UNDECIDED if args.verb == "fairness" and reports[0].undecided else 0


def _reports(args: argparse.Namespace) -> list[Report] | int:
    if args.verb in pipeline_jobs.VERBS:
        made = pipeline_jobs.run(args)
        return made if isinstance(made, int) else [made]
    if args.verb in pipeline_tables.VERBS:
        return pipeline_tables.run(args)
    if args.verb in pipeline_maintain.VERBS:
        return pipeline_maintain.run(args)
    if args.verb in pipeline_show.VERBS:
        return pipeline_show.run(args)
    from fila.spark.command import Request
    from fila.spark.command import run as run_request

    return run_request(
        Request(
            args.verb,
            args.journal,
            args.start,
            args.end,
            args.queue,
            args.master,
            args.remote,
            dict(args.conf),
            {**vars(args), **{name: dict(vars(args).get(name, ())) for name in _PAIRS}},
            args.tables,
        )
    )


def _write(reports: list[Report], where: tuple[str, str], args: argparse.Namespace) -> None:
    from fila.spark.report import as_csv, as_document

    form, path = where
    if form == "json":
        documents = [as_document(report) for report in reports]
        say_json(documents[0] if len(documents) == 1 else documents)
    elif form == "csv":
        sys.stdout.write("\n".join(as_csv(report) for report in reports))
    elif form == "parquet":
        for report in reports:
            if report.frame is None:
                raise usage(f"{report.name} has no rows to store; use another --output")
            target = path if len(reports) == 1 else f"{path}/{report.name}"
            report.frame.coalesce(1).write.parquet(target)
            note(f"wrote {target}")
    elif form == "html":
        from fila.spark.page import page

        target = path or f"fila-{args.verb}.html"
        try:
            Path(target).write_text(page(reports, args.journal), "utf-8")
        except OSError as error:
            raise Failure(f"cannot write {target}: {error.strerror or error}") from error
        note(f"wrote {target}")
    else:
        say("\n\n".join(_text(report) for report in reports))


def _text(report: Report) -> str:
    from fila.spark.report import cell

    parts = [_lines(report.heading), *map(_lines, report.said)]
    for one in report.tables:
        if one.said:
            parts.append("\n" + _lines(one.said))
        rows = [[cell(value) for value in row] for row in one.rows]
        headers = [name.upper() for name in one.columns]
        parts.append("\n" + (table(headers, rows) if rows else "(nothing)"))
    return "\n".join(parts)


def _lines(text: str) -> str:
    """Sentences of a report, which name keys and errors as their senders wrote them."""
    return "\n".join(shown(line) for line in text.split("\n"))


def _verb(
    verb: Subparsers, name: str, summary: str, about: str, examples: str
) -> argparse.ArgumentParser:
    parser = command(verb, name, summary, about=about, examples=examples)
    parser.add_argument(
        "--journal",
        metavar="PATH",
        default=DEFAULT_JOURNAL,
        help="the broker's journal directory, or any place Spark can read (default %(default)s)",
    )
    parser.add_argument(
        "--tables",
        metavar="PATH",
        help="read the tables that `fila pipeline run` keeps there, and of the journal only what "
        "is newer (default: the folder tables beside the journal, if there are any; '' for none)",
    )
    parser.add_argument(
        "--from",
        dest="start",
        metavar="TIME",
        type=_moment,
        help="events from then on: 2026-01-31T12:00:00 (UTC), or 90s, 15m, 2h, 7d ago",
    )
    parser.add_argument(
        "--to", dest="end", metavar="TIME", type=_moment, help="events before then; same forms"
    )
    parser.add_argument("--queue", metavar="QUEUE", default="", help="one queue (default: all)")
    parser.add_argument(
        "--master",
        metavar="URL",
        default="",
        help="Spark master, such as local[2] or spark://host:7077 (default: all local cores)",
    )
    parser.add_argument(
        "--remote", metavar="URL", default="", help="Spark Connect server: sc://host:15002"
    )
    parser.add_argument(
        "--conf",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        type=_pair("a setting NAME=VALUE"),
        help="Spark setting; may be repeated",
    )
    parser.add_argument(
        "--output",
        metavar="FORM",
        action="append",
        help="table, json, csv, parquet:PATH, html or html:PATH (default table); may be repeated",
    )
    return parser


def _window(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--window",
        metavar="TIME",
        type=seconds,
        default=10.0,
        help="length of a window: 5s, 1m (default 10s)",
    )
    parser.add_argument(
        "--quantum",
        metavar="N",
        type=whole_number(1, "a quantum"),
        default=1,
        help="the quantum promised: the bound of the verdict (default %(default)s)",
    )


def _top(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--top",
        metavar="N",
        type=whole_number(1, "a number of rows"),
        default=20,
        help="rows to show (default %(default)s)",
    )


def _whatif(verb: Subparsers) -> None:
    parser = _verb(
        verb,
        "whatif",
        "replay the record with other weights, rates, quantum or consumers",
        "Run the broker's own scheduler over the recorded arrivals, first as it was, for\n"
        "calibration, then with the changes. Compares nothing if the record cannot be reproduced.",
        "  fila pipeline whatif --queue orders --weight acme=3\n"
        "  fila pipeline whatif --rate provider=50,50 --consumers 4",
    )
    parser.add_argument(
        "--weight",
        metavar="KEY=N",
        action="append",
        default=[],
        type=_pair("a weight KEY=N", int),
        help="another weight for a fairness key; may be repeated",
    )
    parser.add_argument(
        "--rate",
        metavar="KEY=RATE,BURST",
        action="append",
        default=[],
        type=_pair("a limit KEY=RATE,BURST"),
        help="another limit for a throttle key, without a value none; may be repeated",
    )
    count = whole_number(1, "a whole number above 0")
    parser.add_argument("--quantum", metavar="N", type=count, default=0, help="another quantum")
    parser.add_argument(
        "--consumers", metavar="N", type=count, default=0, help="another number of consumers"
    )
    parser.add_argument(
        "--recorded-quantum",
        metavar="N",
        type=count,
        default=0,
        help="the quantum the broker ran with (default: what the journal says)",
    )


def _destinations(args: argparse.Namespace) -> list[tuple[str, str]]:
    """Where the report goes: a form, and for some a path."""
    found = []
    for text in getattr(args, "output", None) or ["json" if args.json else "table"]:
        form, _, path = text.partition(":")
        if form not in ("table", "json", "csv", "parquet", "html"):
            raise usage(f'"{text}" is no output; use table, json, csv, parquet:PATH or html')
        if form == "parquet" and not path:
            raise usage("--output parquet needs a place: parquet:PATH")
        found.append((form, path))
    return found


def _pair(what: str, kind: Callable[[str], Any] = str) -> Callable[[str], tuple[str, Any]]:
    def read(text: str) -> tuple[str, Any]:
        name, equals, value = text.partition("=")
        try:
            if not name or not equals:
                raise ValueError
            return name, kind(value)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not {what}") from None

    return read


def _moment(text: str) -> datetime:
    if re.fullmatch(r"\d+(?:\.\d+)?[smhd]", text):
        return datetime.now(UTC) - timedelta(seconds=seconds(text))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither a time such as 2026-01-31T12:00:00 nor one ago such as 15m"
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
