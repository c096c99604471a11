"""`fila pipeline run|status|watch`: the journal into tables, and what the last minutes were like.

Owns the command line; the work is in `fila.spark.tables`. Only `run` needs Spark.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fila.cli.failure import Failure
from fila.cli.options import Subparsers, command, whole_number
from fila.cli.output import note, say, say_json, shown, table

if TYPE_CHECKING:
    from fila.spark.tables.commits import Commit
    from fila.spark.tables.status import Status

VERBS: Final = frozenset(("run", "status", "watch"))
DEFAULT_TABLES: Final = "data/tables"
DEFAULT_JOURNAL: Final = "data/journal"


def add_parsers(verb: Subparsers, pair: Any, duration_s: Any) -> None:
    """`pair` and `duration_s` read NAME=VALUE and times, as for the reports."""
    run = command(
        verb,
        "run",
        "keep tables of what the broker does, continuously",
        about="Follow the journal and keep tables of it: events by hour, facts per queue, key and\n"
        "ten seconds, and products of them (fairness, slo, chargeback, capacity, anomalies,\n"
        "blame). Each event counts exactly once, also when this is killed: the next run goes on.\n"
        "Runs until interrupted, or with --available-now until it has read all there is.",
        examples="  fila pipeline run --journal data/journal --tables data/tables\n"
        "  fila pipeline run --available-now --master 'local[2]'",
    )
    _places(run)
    run.add_argument(
        "--trigger", metavar="TIME", type=duration_s, default=5.0,
        help="a batch every so often (default 5s)",
    )  # fmt: skip
    run.add_argument(
        "--available-now", action="store_true", help="end when all there is now was read"
    )
    run.add_argument(
        "--max-events", metavar="N", type=whole_number(1, "a number of events"), default=1_000_000,
        help="most events of a batch (default %(default)s)",
    )  # fmt: skip
    run.add_argument(
        "--late", metavar="TIME", type=duration_s, default=600.0,
        help="how long to wait for a part that is missing (default 10m)",
    )  # fmt: skip
    _objective(run)
    run.add_argument(
        "--format", metavar="NAME", default="",
        help="parquet, delta or iceberg (default: what the tables have, parquet if they are new)",
    )  # fmt: skip
    run.add_argument(
        "--master", metavar="URL", default="",
        help="Spark master, such as local[2] or spark://host:7077 (default: all local cores)",
    )  # fmt: skip
    run.add_argument(
        "--conf", metavar="NAME=VALUE", action="append", default=[],
        type=pair("a setting NAME=VALUE"), help="Spark setting; may be repeated",
    )  # fmt: skip
    state = command(
        verb,
        "status",
        "how far the tables are, and what they hold",
        about="What the tables hold and how far behind the journal they are. Starts no JVM. Exits\n"
        "with 1 when there are no tables.",
        examples="  fila pipeline status --tables data/tables\n  fila pipeline status --json",
    )
    _places(state)
    watch = command(
        verb,
        "watch",
        "fairness, objectives and blame of the last minutes, as they come",
        about="Who got how much of its fair share, who was served late, and who was served while\n"
        "others waited, in the last five minutes the tables know. Starts no JVM; `fila pipeline\n"
        "run` has to be running beside it.",
        examples="  fila pipeline watch\n"
        "  fila pipeline watch --objective '99%<1s' --objective 'orders/acme=99.9%<200ms'\n"
        "  fila pipeline watch --once --json",
    )
    watch.add_argument(
        "--tables", metavar="PATH", default=DEFAULT_TABLES,
        help="where the tables are (default %(default)s)",
    )  # fmt: skip
    _objective(watch)
    watch.add_argument(
        "--every", metavar="TIME", type=duration_s, default=2.0, help="look so often (default 2s)"
    )
    watch.add_argument("--once", action="store_true", help="look once, and end")


def _objective(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--objective", metavar="TEXT", action="append", default=[],
        help="so many of a tenant's deliveries in time: [QUEUE[/KEY]=]99%%<1s (the default); may "
        "be repeated, the first that fits counts",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    try:
        return {"status": _status, "watch": _watch, "run": _run}[args.verb](args)
    except Exception as error:
        if type(error).__name__ in ("TablesError", "ObjectiveError"):
            raise Failure(str(error)) from error
        raise


def _run(args: argparse.Namespace) -> int:
    from fila.spark.products.slo import DEFAULT, objective
    from fila.spark.tables.run import CONF, Asked, local_conf
    from fila.spark.tables.run import run as keep

    asked = Asked(
        tuple(args.journal or [DEFAULT_JOURNAL]),
        _tables(args),
        args.trigger,
        args.available_now,
        args.max_events,
        args.late,
        objectives=tuple(objective(text) for text in args.objective) or DEFAULT,
        form=args.format,
    )
    local = not args.master or args.master.startswith("local")
    conf = {**(local_conf() if local else CONF), **dict(args.conf)}
    spark = session(args.master, conf, asked.tables, args.format)
    note(f"{', '.join(asked.journals)} → {asked.tables}, Spark {spark.version} on "
         f"{spark.sparkContext.master}")  # fmt: skip
    signal.signal(signal.SIGTERM, signal.default_int_handler)

    def told(commit: Commit) -> None:
        note(said_of(commit))
        if local and "://" not in asked.tables:
            _exported(asked.tables, asked.journals)

    try:
        keep(spark, asked, told)
    except KeyboardInterrupt:
        note("stopped; the next run goes on from here")
    finally:
        spark.stop()
    return 0


def session(master: str, conf: dict[str, str], tables: str, form: str) -> Any:
    """A Spark session that can write the tables' format."""
    import pyspark

    from fila.spark.session import SparkUnavailable, get_spark
    from fila.spark.tables.formats import conf_for, unresolved
    from fila.spark.tables.lake import format_of

    form = form or format_of(tables)
    try:
        settings = conf_for(form, pyspark.__version__, conf)
        return get_spark(master, conf=settings, app="fila pipeline")
    except SparkUnavailable as error:
        raise Failure(unresolved(form, str(error)) or str(error)) from error


def _exported(tables: str, journals: tuple[str, ...]) -> None:
    """For the dashboard. The tables go on whatever happens to it."""
    from fila.spark.tables.live import export

    try:
        export(tables, journals, time.time())
    except (OSError, ValueError) as error:
        note(f"the dashboard's page could not be written: {error}")


def said_of(commit: Commit) -> str:
    """A batch in a line."""
    counts: dict[str, int] = {}
    for one in commit.files:
        counts[one.table] = counts.get(one.table, 0) + one.rows
    made = ", ".join(f"{count:,} {name}" for name, count in counts.items())
    reached = min((us for us, _ in commit.reached.values()), default=0)
    rate = commit.events / max(commit.took_ms, 1) * 1_000
    return (
        f"{_moment(commit.at_ms)} batch {commit.batch}: {made} in {commit.took_ms / 1_000:.1f} s "
        f"({rate:,.0f} events/s), reached {_moment(reached // 1_000)}"
    )


def _watch(args: argparse.Namespace) -> int:
    from fila.spark.products.slo import DEFAULT, objective
    from fila.spark.tables.live import live

    objectives = [objective(text) for text in args.objective] or DEFAULT
    try:
        while True:
            found = live(args.tables, time.time(), objectives)
            if args.json:
                say_json(found)
            else:
                clear = "\x1b[H\x1b[2J" if sys.stdout.isatty() and not args.once else ""
                say(clear + live_text(found))
            if args.once:
                return 0
            sys.stdout.flush()
            time.sleep(args.every)
    except KeyboardInterrupt:
        return 0


def live_text(found: dict[str, Any]) -> str:
    """The last minutes on a screen."""
    several = len({one["broker"] for one in found["queues"]}) > 1

    def where(one: dict[str, Any]) -> str:
        name = f"{one['broker']}:{one['queue']}" if several else one["queue"]
        return shown(name)

    def by(one: dict[str, Any]) -> str:
        return ", ".join(f"{shown(other['key'])} {other['s']:,.1f} s" for other in one["by"])

    late = [[where(one), shown(one["key"]), one["deliveries"], one["slow"],
             f"{one['target']:.4g} < {one['within_ms']:g} ms", one["burn_rate"]]
            for one in found["slo"]]  # fmt: skip
    parts = [
        f"The last {found['minutes']:g} minutes, up to {_moment(found['reached_ms'])} "
        f"({found['lag_s']:g} s ago)",
        "",
        "FAIRNESS (estimated; `fila pipeline fairness` gives the verdict)",
        table(
            ["QUEUE", "KEY", "WEIGHT", "GOT", "FAIR", "RATIO", "BEHIND", "PENDING"],
            [[where(one), shown(one["key"]), one["weight"], one["delivered"], one["fair"],
              "-" if one["ratio"] is None else one["ratio"], one["behind"], one["pending"]]
             for one in found["fairness"]],
        ),
        "",
        "OBJECTIVES (above 1 a tenant burns its error budget)",
        table(["QUEUE", "KEY", "DELIVERED", "LATE", "OBJECTIVE", "BURN"], late),
        "",
        "WHO WAS SERVED WHILE OTHERS WAITED FOR THEIR TURN",
        table(
            ["QUEUE", "KEY", "WAITED_S", "MESSAGES", "WHILE"],
            [[where(one), shown(one["key"]), one["waited_s"], one["messages"], by(one)]
             for one in found["blame"]],
        ),
    ]  # fmt: skip
    return "\n".join(parts)


def _status(args: argparse.Namespace) -> int:
    from fila.spark.tables.status import status

    found = status(_tables(args), tuple(args.journal or [DEFAULT_JOURNAL]))
    if args.json:
        say_json(found.document())
    else:
        say(_text(found))
    return 0


def _text(found: Status) -> str:
    rate = found.batch_events / max(found.batch_took_ms, 1) * 1_000
    lines = [
        f"{found.events:,} events in {found.batch + 1:,} batches; the last at "
        f"{_moment(found.committed_ms)}: {found.batch_events:,} events in "
        f"{found.batch_took_ms / 1_000:.1f} s ({rate:,.0f}/s)",
        "",
        table(
            ["BROKER", "REACHED", "BEHIND", "LAG_S"],
            [[b.broker, _moment(b.reached_ms), b.behind, b.lag_s] for b in found.brokers],
        ),
        "",
        table(
            ["TABLE", "ROWS", "FILES", "MB", "FIRST", "LAST"],
            [
                [t.table, t.rows, t.files, round(t.size / 1e6, 1), _moment(t.first_ms),
                 _moment(t.last_ms)]
                for t in found.stored
            ],
        ),
    ]  # fmt: skip
    return "\n".join(lines)


def _places(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--journal", metavar="PATH", action="append",
        help=f"the broker's journal; repeat it for several nodes (default {DEFAULT_JOURNAL})",
    )  # fmt: skip
    parser.add_argument(
        "--tables", metavar="PATH",
        help="where the tables are (default: the folder tables beside the journal, where reports "
        f"look for them: {DEFAULT_TABLES}; of a journal in an object store {DEFAULT_TABLES}, too)",
    )  # fmt: skip


def _tables(args: argparse.Namespace) -> str:
    """Where reports over the same journal look for tables."""
    if args.tables or not args.journal or "://" in args.journal[0]:
        return args.tables or DEFAULT_TABLES
    return str(Path(args.journal[0]).absolute().with_name(Path(DEFAULT_TABLES).name))


def _moment(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1_000, UTC).strftime("%Y-%m-%d %H:%M:%S") if ms else "-"
