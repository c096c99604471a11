"""`fila pipeline show`: rows of the tables that `fila pipeline run` keeps, without a JVM.

Owns the command line; which rows, `fila.spark.tables.shown` says.
"""

from __future__ import annotations

import argparse
from typing import Any, Final

from fila.cli.options import Subparsers, command, whole_number
from fila.cli.output import say, say_json, table

VERBS: Final = ("show",)
PRODUCTS: Final = ("anomalies", "blame", "capacity", "chargeback", "fairness", "slo")


def add_parsers(verb: Subparsers, moment: Any) -> None:
    """`moment` reads a time, as for the reports."""
    show = command(
        verb,
        "show",
        "the newest rows of a product: who was blamed, charged, late",
        about="Rows of a product that `fila pipeline run` keeps, the newest first. Starts no JVM.\n"
        "Exits with 1 when there are no tables.",
        examples="  fila pipeline show blame --queue orders --key acme\n"
        "  fila pipeline show chargeback --from 1h --top 1000 --json",
    )
    show.add_argument("table", metavar="TABLE", choices=PRODUCTS, help=", ".join(PRODUCTS))
    show.add_argument(
        "--tables", metavar="PATH", default="data/tables",
        help="where the tables are (default %(default)s)",
    )  # fmt: skip
    show.add_argument(
        "--from", dest="start", metavar="TIME", type=moment,
        help="from then on: 2026-01-31T12:00:00 (UTC), or 90s, 15m, 2h, 7d ago",
    )  # fmt: skip
    show.add_argument("--to", dest="end", metavar="TIME", type=moment, help="before then")
    show.add_argument("--queue", metavar="NAME", default="", help="one queue (default: all)")
    show.add_argument("--key", metavar="KEY", default="", help="one fairness key (default: all)")
    show.add_argument(
        "--top", metavar="N", type=whole_number(1, "a number of rows"), default=20,
        help="so many rows (default %(default)s)",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    from fila.spark.report import Table, cell
    from fila.spark.tables.shown import shown

    columns, rows = shown(
        args.tables, args.table, args.start, args.end, args.queue, args.key, args.top
    )
    found = Table(args.table, columns, rows)
    if args.json:
        say_json({args.table: found.documents()})
        return 0
    if not rows:
        say("No rows.")
        return 0
    say(table(columns, [[cell(value) for value in row] for row in rows]))
    return 0
