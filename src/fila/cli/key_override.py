"""`fila key set|list|clear`: what an operator says of one tenant of a queue instead of the hook."""

from __future__ import annotations

import argparse
import time
from typing import Any, Final

from fila.cli import connection
from fila.cli.durations import milliseconds
from fila.cli.failure import usage
from fila.cli.options import Subparsers, command
from fila.cli.output import duration, say, say_json, shown, table

VERBS: Final = ("set", "list", "clear")
NEVER: Final = "never"


def add_parsers(inner: Subparsers) -> None:
    put = command(
        inner,
        "set",
        "override a key's weight and rate",
        about="Override what the messages of a fairness key say: its weight, and how many a\n"
        "second it may have. It holds at once, for what waits already too, through restarts\n"
        "and whatever the hook says, until it is cleared or its time is over. What is not\n"
        "named stays as it is; the word none takes a weight or a rate away.",
        examples="  fila key set orders acme --weight 10 --expires-in 2h --note 'ticket 812'\n"
        "  fila key set orders acme --rate 50 --burst 100\n"
        "  fila key set orders acme --rate none --expires-in never",
    )
    put.add_argument("queue", metavar="QUEUE", help="the queue")
    put.add_argument("key", metavar="KEY", help="the fairness key")
    put.add_argument("--weight", metavar="N", help="its weight, from 1 on")
    put.add_argument("--rate", metavar="R", help="messages per second at most")
    put.add_argument("--burst", metavar="N", help="so many at once (default: the rate, at least 1)")
    put.add_argument(
        "--expires-in", metavar="TIME", type=_time, help="for how long: 30m, 2h, or never"
    )
    put.add_argument("--note", metavar="TEXT", default="", help="why; shown by fila key list")
    listing = command(
        inner,
        "list",
        "show the overrides of a queue",
        about="Show the keys of a queue that have an override, with who set it, when and why.",
        examples="  fila key list orders\n  fila key list orders --json | jq -r '.overrides[].key'",
    )
    listing.add_argument("queue", metavar="QUEUE", help="the queue")
    clear = command(
        inner,
        "clear",
        "end a key's override",
        about="End a key's override: its messages say again what holds for it.",
        examples="  fila key clear orders acme",
    )
    clear.add_argument("queue", metavar="QUEUE", help="the queue")
    clear.add_argument("key", metavar="KEY", help="the fairness key")


def run(args: argparse.Namespace) -> int:
    if args.verb == "list":
        return _list(args)
    if args.verb == "set":
        return _set(args)
    with connection.open_client(args) as client:
        client.clear_override(args.queue, args.key)
    if args.json:
        say_json({"queue": args.queue, "key": args.key, "override": None})
    else:
        say(f'Key "{shown(args.key)}" of queue "{shown(args.queue)}" has no override')
    return 0


def _set(args: argparse.Namespace) -> int:
    named = {"weight": args.weight, "rate": args.rate, "burst": args.burst}
    settings = {
        name: "" if text == "none" else text for name, text in named.items() if text is not None
    }
    if args.expires_in is not None:
        settings["expires_in_ms"] = str(args.expires_in or "")
    if not settings:
        raise usage("name what is to hold: --weight, --rate, --burst or --expires-in")
    with connection.open_client(args) as client:
        client.set_override(args.queue, args.key, settings, note=args.note)
        found = [one for one in client.list_overrides(args.queue) if one["key"] == args.key]
    one = found[0] if found else None
    if args.json:
        say_json({"queue": args.queue, "key": args.key, "override": one})
    elif one is None:
        say(f'Key "{shown(args.key)}" of queue "{shown(args.queue)}" has no override')
    else:
        say(f'Key "{shown(args.key)}" of queue "{shown(args.queue)}": {terms_text(one)}')
    return 0


def _list(args: argparse.Namespace) -> int:
    with connection.open_client(args) as client:
        found = client.list_overrides(args.queue)
    if args.json:
        say_json({"queue": args.queue, "overrides": found})
        return 0
    rows = [
        (
            one["key"],
            one["weight"] or "-",
            "-" if one["rate"] is None else f"{one['rate']:g}",
            "-" if one["burst"] is None else f"{one['burst']:g}",
            _left(one),
            one["by"] or "-",
            one["note"] or "-",
        )
        for one in found
    ]
    say(table(("KEY", "WEIGHT", "RATE/S", "BURST", "ENDS IN", "BY", "NOTE"), rows))
    return 0


def terms_text(one: dict[str, Any]) -> str:
    """What holds, in a few words."""
    parts = [f"weight {one['weight']}"] if one["weight"] else []
    if one["rate"] is not None:
        parts.append(f"{one['rate']:g} messages a second (burst {one['burst']:g})")
    ends = _left(one)
    until = "until it is cleared" if ends == NEVER else f"for {ends}"
    return f"{', '.join(parts)}, {until}"


def _left(one: dict[str, Any]) -> str:
    if one["expires_ms"] is None:
        return NEVER
    return duration(max(one["expires_ms"] - time.time() * 1000, 0))


def _time(text: str) -> int:
    return 0 if text == NEVER else milliseconds(1)(text)
