"""`fila queue pause|resume|purge`: pause a queue, resume it, drop its pending messages."""

from __future__ import annotations

import argparse
import sys

from fila.cli import connection
from fila.cli.options import Subparsers, command
from fila.cli.output import count_of, note, say, say_json, shown

VERBS = ("pause", "resume", "purge")


def add_parsers(inner: Subparsers) -> None:
    pause = command(
        inner,
        "pause",
        "stop delivering from a queue",
        about="Stop delivering from a queue until it is resumed. Messages are still taken in, and\n"
        "what a consumer holds may be finished. It lasts through restarts.",
        examples='  fila queue pause orders --reason "database migration"',
    )
    pause.add_argument("name", metavar="NAME", help="the queue to pause")
    pause.add_argument("--reason", metavar="TEXT", default="", help="why; shown by fila explain")
    resume = command(
        inner, "resume", "resume a paused queue", examples="  fila queue resume orders"
    )
    resume.add_argument("name", metavar="NAME", help="the queue to resume")
    purge = command(
        inner,
        "purge",
        "drop the messages that wait in a queue",
        about="Drop the messages that wait in a queue, delayed ones too; what a consumer holds\n"
        "stays. It cannot be undone, so it asks first.",
        examples="  fila queue purge orders\n  fila queue purge orders --key acme --yes",
    )
    purge.add_argument("name", metavar="NAME", help="the queue to purge")
    purge.add_argument("--key", metavar="KEY", help="only messages of this fairness key")
    purge.add_argument("--yes", action="store_true", help="do not ask")


def run(args: argparse.Namespace) -> int:
    if args.verb == "purge":
        return purge(args)
    paused = args.verb == "pause"
    with connection.open_client(args) as client:
        if paused:
            client.pause_queue(args.name, args.reason)
        else:
            client.resume_queue(args.name)
    if args.json:
        say_json({"queue": args.name, "paused": paused})
    else:
        say(f'{"Paused" if paused else "Resumed"} queue "{shown(args.name)}"')
    return 0


def purge(args: argparse.Namespace) -> int:
    if not args.yes and not _agreed(args):
        note("Nothing was purged. With --yes it does not ask.")
        return 1
    with connection.open_client(args) as client:
        purged = client.purge(args.name, key=args.key)
    if args.json:
        say_json({"queue": args.name, "key": args.key, "purged": purged})
    else:
        say(f'Purged {count_of(purged, "message")} of queue "{shown(args.name)}"')
    return 0


def _agreed(args: argparse.Namespace) -> bool:
    if not sys.stdin.isatty():
        return False
    whose = f'of "{shown(args.key)}" in' if args.key is not None else "of"
    return agreed(f'Drop every waiting message {whose} queue "{shown(args.name)}"?')


def agreed(question: str) -> bool:
    """Ask the person at the terminal."""
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
