"""`fila pipeline maintain`: compaction, retention and vacuum of the tables.

Owns the command line; the work is in `fila.spark.tables.maintain`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any, Final

from fila.cli.failure import Failure
from fila.cli.options import Subparsers, command
from fila.cli.output import note, say, say_json, table
from fila.cli.pipeline_tables import DEFAULT_TABLES, session

VERBS: Final = frozenset(("maintain",))


def add_parsers(verb: Subparsers, pair: Callable[..., Any], duration_s: Any) -> None:
    """`pair` and `duration_s` read NAME=VALUE and times, as for the reports."""
    parser = command(
        verb,
        "maintain",
        "merge small files of the tables, drop what is too old, free the disk",
        about="Merge the files of hours that are over, take out of a table what is older than its\n"
        "retention, and remove from the disk what left the tables longer than a grace ago. Safe\n"
        "beside `fila pipeline run` and while others read; run it once an hour or once a day.",
        examples="  fila pipeline maintain --tables data/tables\n"
        "  fila pipeline maintain --retention events=30d --retention facts=400d",
    )
    parser.add_argument(
        "--tables", metavar="PATH", default=DEFAULT_TABLES,
        help="where the tables are (default %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--retention", metavar="TABLE=TIME", action="append", default=[],
        type=pair("a retention TABLE=TIME", duration_s),
        help="drop rows of a table that are older, by whole hours: events=30d; may be repeated "
        "(default: keep all)",
    )  # fmt: skip
    parser.add_argument(
        "--grace", metavar="TIME", type=duration_s, default=3_600.0,
        help="keep files so long after they left the tables, for readers under way (default 1h)",
    )  # fmt: skip
    parser.add_argument(
        "--format", metavar="NAME", default="",
        help="parquet, delta or iceberg (default: what the tables have)",
    )  # fmt: skip
    parser.add_argument(
        "--master", metavar="URL", default="",
        help="Spark master, such as local[2] or spark://host:7077 (default: all local cores)",
    )  # fmt: skip
    parser.add_argument(
        "--conf", metavar="NAME=VALUE", action="append", default=[],
        type=pair("a setting NAME=VALUE"), help="Spark setting; may be repeated",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    from fila.spark.tables.commits import TablesError

    try:
        return _run(args)
    except TablesError as error:
        raise Failure(str(error)) from error


def _run(args: argparse.Namespace) -> int:
    from fila.spark.tables.maintain import maintain

    spark = session(args.master, dict(args.conf), args.tables, args.format)
    try:
        done = maintain(
            spark, args.tables, time.time(), dict(args.retention), args.grace, args.format
        )
    finally:
        spark.stop()
    if args.json:
        say_json([one._asdict() for one in done])
        return 0
    rows = [(one.table, one.merged, one.into, one.dropped, one.removed) for one in done]
    say(table(["TABLE", "MERGED", "INTO", "DROPPED", "REMOVED"], rows))
    for one in done:
        if one.waits:
            note(f"{one.table}: not vacuumed; {one.waits}")
    return 0
