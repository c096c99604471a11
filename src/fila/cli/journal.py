"""`fila journal`: look at a broker's journal, without Spark and without the broker."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fila.cli import journal_ship
from fila.cli.failure import Failure
from fila.cli.options import Subparsers, command, verbs, whole_number
from fila.cli.output import count_of, say, say_json, table
from fila.distribution import install

_POLL_S = 0.25
_WAITS = (
    *("retry", "throttled", "no_consumer", "own", "turn", "paused"),
    *("busy_own", "busy_others", "capped"),
)


def add_parser(subparsers: Subparsers) -> None:
    parser = command(
        subparsers,
        "journal",
        "look at a broker's journal of scheduling decisions",
        about="Look at the journal a broker writes with [journal] enabled = true. Reads files,\n"
        f"not the broker; needs pyarrow ({install('journal')}).",
        examples="  fila journal tail data/journal --follow\n  fila journal stats data/journal",
    )
    inner = verbs(parser)
    tail = command(
        inner,
        "tail",
        "show the newest events",
        examples="  fila journal tail data/journal --limit 20 --queue orders\n"
        "  fila journal tail data/journal --event delivered --key acme --follow --json",
    )
    _add_path(tail)
    tail.add_argument(
        "--limit", metavar="N", type=whole_number(0, "a number of events"), default=20,
        help="how many to begin with (default 20)",
    )  # fmt: skip
    tail.add_argument("--queue", metavar="NAME", help="only this queue")
    tail.add_argument("--key", metavar="KEY", help="only this fairness key")
    tail.add_argument("--event", metavar="EVENT", help="only this kind of event")
    tail.add_argument("--follow", action="store_true", help="go on as events are written")
    stats = command(
        inner, "stats", "count events", examples="  fila journal stats data/journal --json"
    )
    _add_path(stats)
    recover = command(
        inner,
        "recover",
        "seal what a stopped broker left unsealed",
        about="Seal what a broker that was killed left unsealed. A starting broker does the same\n"
        "by itself; never run this beside a running broker.",
        examples="  fila journal recover data/journal",
    )
    _add_path(recover)
    journal_ship.add_parser(inner, _add_path)


def run(args: argparse.Namespace) -> int:
    root = Path(args.path)
    if not root.is_dir():
        raise Failure(f"there is no journal in {args.path}", "is [journal] enabled on the broker?")
    try:
        import fila.journal.reader  # noqa: F401
    except ImportError as error:
        raise Failure(f"{error.name} is missing", install("journal")) from error
    from fila.journal.versions import OtherVersion

    try:
        if args.verb == "tail":
            return _tail(args, root)
        if args.verb == "ship":
            return journal_ship.run(args, root)
        return _stats(args, root) if args.verb == "stats" else _recover(args, root)
    except OtherVersion as error:
        raise Failure(str(error)) from error


def _tail(args: argparse.Namespace, root: Path) -> int:
    seen: dict[tuple[str, int], int] = {}
    rows = [row for row in _new_rows(root, seen) if _wanted(args, row)]
    for row in rows[len(rows) - args.limit :] if args.limit else []:
        _show(args, row)
    while args.follow:
        time.sleep(_POLL_S)
        for row in _new_rows(root, seen):
            if _wanted(args, row):
                _show(args, row)
    return 0


def _stats(args: argparse.Namespace, root: Path) -> int:
    from fila.journal.reader import totals

    found = totals(root)
    if args.json:
        say_json(
            {"counts": [{"queue": q, "event": e, "count": n} for (q, e), n in
                        sorted(found.counts.items())],
             "lost": found.lost, "parts": found.parts, "hot_files": found.hot_files,
             "first": found.first, "last": found.last}
        )  # fmt: skip
        return 0
    if not found.counts:
        say("The journal is empty.")
        return 0
    rows = [(queue or "-", event, count) for (queue, event), count in sorted(found.counts.items())]
    say(table(("QUEUE", "EVENT", "COUNT"), rows))
    say(f"\nFrom {found.first} to {found.last}")
    say(f"{count_of(found.parts, 'sealed part')}, {count_of(found.hot_files, 'unsealed file')}")
    if found.lost:
        lost = count_of(found.lost, "event")
        say(f"{lost} lost: the disk could not keep up, or the broker was killed")
    return 0


def _recover(args: argparse.Namespace, root: Path) -> int:
    from fila.journal.recovery import recover

    parts = recover(root)
    if args.json:
        say_json({"sealed": [str(part) for part in parts]})
    else:
        say(f"Sealed {count_of(len(parts), 'part')}")
    return 0


def _new_rows(root: Path, seen: dict[tuple[str, int], int]) -> Iterator[dict[str, Any]]:
    """Rows not shown before; `seen` holds the newest number of every run."""
    from fila.journal.reader import events

    for events_table in events(root, dict(seen)):
        for row in events_table.to_pylist():
            run_of = (row["broker"], row["epoch"])
            if row["seq"] > seen.get(run_of, 0):
                seen[run_of] = row["seq"]
                yield row


def _wanted(args: argparse.Namespace, row: dict[str, Any]) -> bool:
    return (
        (args.queue is None or row["queue"] == args.queue)
        and (args.key is None or row["fairness_key"] == args.key)
        and (args.event is None or row["event"] == args.event)
    )


def _show(args: argparse.Namespace, row: dict[str, Any]) -> None:
    if args.json:
        say_json({key: _plain(value) for key, value in row.items()})
        return
    parts = [f"{row['ts']:%H:%M:%S.%f}", f"{row['event']:<16}", row["queue"] or "-"]
    if row["fairness_key"]:
        parts.append(f"key={row['fairness_key']}")
    if row["message_id"]:
        parts.append(row["message_id"])
    if row["wait_own_us"] is not None:
        waits = [(name, row[f"wait_{name}_us"]) for name in _WAITS]
        parts.append("waited " + ", ".join(f"{n} {us / 1000:g} ms" for n, us in waits if us))
    if row["error"]:
        parts.append(f"error={row['error']!r}")
    from fila.cli.output import shown

    say(shown("  ".join(parts)))


def _plain(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else value


def _add_path(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="JOURNAL", help="its directory, e.g. data/journal")
