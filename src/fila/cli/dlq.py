"""`fila dlq list|groups|show|redrive|delete|export`: dead letters, and why they died.

Owns what stands in a dead letter's headers and the filters over it. What is listed is browsed: a
snapshot is read page by page, nothing is leased.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fila.cli import connection, pause_purge, peek, redrive
from fila.cli.durations import seconds
from fila.cli.failure import Failure, usage
from fila.cli.options import Subparsers, command, verbs, whole_number
from fila.cli.output import count_of, moment, note, say, say_json, shown, shown_bytes, table
from fila.cli.progress import Progress
from fila.text import json_line

if TYPE_CHECKING:
    from fila.client.browsing import BrowsedMessage
    from fila.client.sync import FilaClient

_PREFIX: Final = "fila.dead."
_SUFFIX: Final = ".dlq"
_ERROR_CHARS: Final = 100  # of an error, in a table
_GROUPS_MAX: Final = 10_000  # different errors that are told apart


class Death(NamedTuple):
    """What a dead letter says of its end; empty or 0 where it says nothing."""

    reason: str
    error: str
    at_ms: int
    attempts: int
    queue: str


def death_of(message: BrowsedMessage) -> Death:
    told = message.headers
    at_ms = told.get(_PREFIX + "at_ms", "")
    attempts = told.get(_PREFIX + "attempts", "")
    return Death(
        told.get(_PREFIX + "reason", ""),
        told.get(_PREFIX + "error", ""),
        int(at_ms) if at_ms.isascii() and at_ms.isdigit() else 0,
        int(attempts) if attempts.isascii() and attempts.isdigit() else message.attempt_count,
        told.get(_PREFIX + "queue", ""),
    )


def add_parser(subparsers: Subparsers) -> None:
    parser = command(
        subparsers,
        "dlq",
        "dead letters: why they died, and what becomes of them",
        examples="  fila dlq groups orders\n"
        "  fila dlq list orders --error timeout --since 1h\n"
        "  fila dlq redrive orders",
    )
    inner = verbs(parser)
    found = command(
        inner,
        "list",
        "list dead letters with the reason of each",
        about="List the dead letters of a queue, with the reason, the error and the time of each.\n"
        "Nothing is leased, and consumers notice nothing. Needs consume permission.",
        examples="  fila dlq list orders\n"
        "  fila dlq list orders --error timeout --key acme --since 2h --limit 100\n"
        "  fila dlq list orders --header region=eu --json | jq .error",
    )
    _add_filters(found)
    _add_limit(found, 20)

    groups = command(
        inner,
        "groups",
        "count dead letters by reason and error",
        about="Count dead letters by reason and error, the most frequent first.",
        examples="  fila dlq groups orders\n  fila dlq groups orders --since 1d --json",
    )
    _add_filters(groups)

    show = command(
        inner,
        "show",
        "show one dead letter whole",
        about="Show one dead letter: why it died, its headers, its payload.",
        examples="  fila dlq show orders 0190a0b1-c2d3-7e4f-8a5b-6c7d8e9f0a1b",
    )
    show.add_argument("queue", metavar="QUEUE", help="the queue, or its dead letter queue")
    show.add_argument("id", metavar="ID", help="the message's id")

    export = command(
        inner,
        "export",
        "write dead letters as JSON lines",
        about="Write dead letters as JSON lines; payload_base64 is always exact.",
        examples="  fila dlq export orders --output letters.jsonl\n"
        "  fila dlq export orders --since 1d | gzip > letters.jsonl.gz",
    )
    _add_filters(export)
    export.add_argument("--output", metavar="FILE", help="write there (default: stdout)")

    again = command(
        inner,
        "redrive",
        "move dead letters back to their queue, oldest first",
        about="Move waiting dead letters back to their queue, oldest first, as their producers\n"
        "sent them: attempts start again at 0, on_enqueue runs again.",
        examples="  fila dlq redrive orders\n  fila dlq redrive orders --count 10",
    )
    again.add_argument("queue", metavar="QUEUE", help="the queue, or its dead letter queue")
    redrive.add_count(again)

    delete = command(
        inner,
        "delete",
        "drop the dead letters that wait, of one key or all",
        about="Drop the dead letters that wait; what a consumer holds stays. It cannot be undone,\n"
        "so it asks first.",
        examples="  fila dlq delete orders --key acme\n  fila dlq delete orders --yes",
    )
    delete.add_argument("name", metavar="QUEUE", help="the queue, or its dead letter queue")
    delete.add_argument("--key", metavar="KEY", help="only those of this fairness key")
    delete.add_argument("--yes", action="store_true", help="do not ask")


def run(args: argparse.Namespace) -> int:
    if args.verb == "delete":
        args.name = _dlq(args.name)
        return pause_purge.purge(args)
    args.queue = _dlq(args.queue)
    if args.verb == "redrive":
        return redrive.run(args)
    return {"list": _list, "groups": _groups, "show": _show, "export": _export}[args.verb](args)


def _list(args: argparse.Namespace) -> int:
    rows = []
    with connection.open_client(args) as client:
        for message, death in islice(_found(client, args), args.limit):
            if args.json:
                say_json(_document(message, death))
            else:
                who = (message.id, moment(death.at_ms), message.fairness_key)
                rows.append((*who, death.attempts, death.reason, first_line(death.error)))
    if rows:
        say(table(("ID", "DIED", "KEY", "ATTEMPTS", "REASON", "ERROR"), rows))
    elif not args.json:
        say(f'No dead letters found in "{shown(args.queue)}".')
    return 0


def _groups(args: argparse.Namespace) -> int:
    counts: Counter[tuple[str, str]] = Counter()
    last: dict[tuple[str, str], int] = {}
    others = 0
    with connection.open_client(args) as client, Progress("read") as progress:
        for _, death in _found(client, args):
            progress.add(1)
            group = (death.reason, first_line(death.error))
            if group not in counts and len(counts) >= _GROUPS_MAX:
                others += 1
                continue
            counts[group] += 1
            last[group] = max(last.get(group, 0), death.at_ms)
    found = [(count, *group, last[group]) for group, count in counts.most_common()]
    if args.json:
        names = ("count", "reason", "error", "last_at_ms")
        groups = [dict(zip(names, one, strict=True)) for one in found]
        say_json({"queue": args.queue, "groups": groups, "others": others})
    elif found:
        rows = [(count, reason, error, moment(at)) for count, reason, error, at in found]
        say(table(("COUNT", "REASON", "ERROR", "LAST"), rows))
        if others:
            say(f"and {count_of(others, 'dead letter')} with other errors")
    else:
        say(f'No dead letters found in "{shown(args.queue)}".')
    return 0


def _show(args: argparse.Namespace) -> int:
    with connection.open_client(args) as client, Progress("read") as progress:
        for message in _browse(client, args.queue, None):
            progress.add(1)
            if message.id == args.id.lower():
                break
        else:
            raise Failure(
                f'no dead letter "{args.id}" in "{args.queue}"',
                "it may have been redriven or deleted; `fila dlq list` shows those there are",
            )
    death = death_of(message)
    if args.json:
        say_json(_document(message, death))
        return 0
    own = {name: value for name, value in message.headers.items() if not _is_ours(name)}
    lines = [
        ("id", message.id),
        ("died", moment(death.at_ms) or "not told"),
        ("reason", death.reason or "not told"),
        ("error", death.error or "none given"),
        ("attempts", str(death.attempts)),
        ("queue", death.queue or args.queue.removesuffix(_SUFFIX)),
        ("key", message.fairness_key),
        ("state", message.state),
        ("enqueued", moment(message.enqueued_at_ms)),
        *[(f"header {name}", value) for name, value in own.items()],
    ]
    width = max(len(shown(name)) for name, _ in lines)
    for name, value in lines:
        say(f"{shown(name):{width}}  {shown(value)}")
    say(f"{'payload':{width}}  {shown_bytes(message.payload)}")
    return 0


def _export(args: argparse.Namespace) -> int:
    count = 0
    with ExitStack() as stack:
        client = stack.enter_context(connection.open_client(args))
        progress = stack.enter_context(Progress("exported"))
        to = sys.stdout
        if args.output is not None:
            try:
                to = stack.enter_context(open(args.output, "w", encoding="utf-8"))
            except OSError as error:
                raise Failure(f"cannot write {args.output}: {error.strerror or error}") from None
        for message, death in _found(client, args):
            to.write(json_line(_document(message, death)) + "\n")
            count += 1
            progress.add(1)
    if args.output is not None:
        note(f"Exported {count_of(count, 'dead letter')} to {args.output}")
    return 0


def _found(client: FilaClient, args: argparse.Namespace) -> Iterator[tuple[BrowsedMessage, Death]]:
    """Those the filters let through."""
    now_ms = int(time.time() * 1000)
    since_ms = now_ms - int(args.since * 1000) if args.since else 0
    until_ms = now_ms - int(args.until * 1000) if args.until else None
    wanted = [one.partition("=") for one in args.header]
    for name, sign, _ in wanted:
        if not sign or not name:
            raise usage(f"--header wants NAME=VALUE, not {name!r}")
    for message in _browse(client, args.queue, args.key):
        death = death_of(message)
        if args.error is not None and args.error.casefold() not in death.error.casefold():
            continue
        if args.reason is not None and args.reason != death.reason:
            continue
        if death.at_ms < since_ms or (until_ms is not None and death.at_ms > until_ms):
            continue
        headers = message.headers
        if any(headers.get(name) != value for name, _, value in wanted):
            continue
        yield message, death


def _browse(client: FilaClient, queue: str, key: str | None) -> Iterator[BrowsedMessage]:
    found = client.browse(queue, fairness_key=key)
    try:
        yield from found
    finally:
        found.close()


def _document(message: BrowsedMessage, death: Death) -> dict[str, Any]:
    document = peek.document(message)
    document["headers"] = {
        name: value for name, value in message.headers.items() if not _is_ours(name)
    }
    return {**document, "dead": death._asdict()}


def _is_ours(header: str) -> bool:
    return header.startswith(_PREFIX)


def first_line(error: str) -> str:
    """Enough of an error to tell it from others."""
    line = error.strip().partition("\n")[0]
    return line if len(line) <= _ERROR_CHARS else line[: _ERROR_CHARS - 1] + "…"


def _dlq(name: str) -> str:
    return name if name.endswith(_SUFFIX) else name + _SUFFIX


def _add_filters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("queue", metavar="QUEUE", help="the queue, or its dead letter queue")
    parser.add_argument("--error", metavar="TEXT", help="only errors with this text in them")
    parser.add_argument(
        "--reason", choices=("hook", "max_attempts", "expired"), help="only of this reason"
    )
    parser.add_argument("--key", metavar="KEY", help="only of this fairness key")
    parser.add_argument(
        "--header", metavar="NAME=VALUE", action="append", default=[], help="repeatable"
    )
    parser.add_argument("--since", metavar="TIME", type=seconds, help="died within: 30m, 2h, 7d")
    parser.add_argument("--until", metavar="TIME", type=seconds, help="died longer ago than this")


def _add_limit(parser: argparse.ArgumentParser, default: int) -> None:
    parser.add_argument(
        "--limit",
        metavar="N",
        type=whole_number(1, "a number of messages"),
        default=default,
        help=f"end after so many (default: {default})",
    )
