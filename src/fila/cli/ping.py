"""`fila ping`: does the broker answer? For health checks of containers and for people."""

from __future__ import annotations

import argparse
import time

from fila.cli import connection
from fila.cli.options import Subparsers, command
from fila.cli.output import say, say_json, shown


def add_parser(subparsers: Subparsers) -> None:
    command(
        subparsers,
        "ping",
        "say whether the broker answers",
        about="Connect, greet the broker and say how long that took. The exit code is 0 if it\n"
        "answers, also if only to ask for an API key; 1 if it does not.",
        examples="  fila ping\n  fila ping --addr broker.example:5555 --tls",
    )


def run(args: argparse.Namespace) -> int:
    from fila.client.errors import UnauthorizedError

    addr = connection.target(args).addr
    begin = time.monotonic()
    authorized = True
    try:
        with connection.open_client(args):
            took_ms = (time.monotonic() - begin) * 1_000
    except UnauthorizedError:
        took_ms = (time.monotonic() - begin) * 1_000
        authorized = False
    if args.json:
        say_json({"addr": addr, "took_ms": round(took_ms, 3), "authorized": authorized})
    else:
        tail = "" if authorized else "; it asks for an API key"
        say(f"{shown(addr)} answers in {took_ms:.1f} ms{tail}")
    return 0
