"""`fila config set|get|list`: the broker's runtime settings, which hooks read with fila.get."""

from __future__ import annotations

import argparse
from typing import Final

from fila.cli import connection
from fila.cli.failure import EXIT_FAILED
from fila.cli.options import Subparsers, command, verbs
from fila.cli.output import note, say, say_json, shown

# How the names of settings begin that mean something to the broker itself.
FAMILIES: Final = ("throttle.", "throttle:", "lua:")


def add_parser(subparsers: Subparsers) -> None:
    parser = command(
        subparsers,
        "config",
        "read and write the broker's runtime settings",
        about="Read and write the broker's runtime settings. They survive restarts, hooks read\n"
        'them with fila.get("key"), and those that begin with throttle. limit delivery.',
        examples="  fila config set throttle.provider:stripe 100,150\n"
        "  fila config get throttle.provider:stripe\n"
        "  fila config list --prefix throttle.",
    )
    inner = verbs(parser)

    set_ = command(
        inner,
        "set",
        "set one setting",
        about="Set one setting. An empty value removes it.",
        examples="  fila config set max_retries 5\n"
        "  fila config set throttle.provider:stripe 100,150   # rate per second, burst\n"
        "  fila config set throttle:provider:stripe:max_in_flight 5   # leased at once\n"
        '  fila config set max_retries ""                     # remove it',
    )
    set_.add_argument("key", metavar="KEY", help="the name of the setting")
    set_.add_argument("value", metavar="VALUE", help="any text; empty removes the setting")

    get = command(
        inner,
        "get",
        "show one setting",
        about="Show one setting. The exit code is 1 if it is not set.",
        examples="  fila config get max_retries",
    )
    get.add_argument("key", metavar="KEY", help="the name of the setting")

    list_ = command(
        inner,
        "list",
        "list settings",
        examples="  fila config list\n  fila config list --prefix throttle.",
    )
    list_.add_argument("--prefix", metavar="TEXT", default="", help="only keys that begin with it")


def run(args: argparse.Namespace) -> int:
    if args.verb == "set":
        return _set(args)
    if args.verb == "get":
        return _get(args)
    return _list(args)


def _set(args: argparse.Namespace) -> int:
    with connection.open_client(args) as client:
        client.set_config(args.key, args.value)
    if args.json:
        say_json({"key": args.key, "value": args.value or None})
    elif args.value:
        say(f'Set "{shown(args.key)}" = "{shown(args.value)}"')
    else:
        say(f'Removed "{shown(args.key)}"')
    near = _near_family(args.key)
    if near and args.value:
        note(
            f"Note: the broker itself reads settings that begin with {near}; "
            f'"{shown(args.key)}" is for hooks alone'
        )
    return 0


def _near_family(key: str) -> str:
    """The family of settings the broker reads whose name this one nearly has, or nothing."""
    import difflib
    import re

    head = re.match(r"[^.:]*[.:]?", key)
    word = head[0] if head else ""
    if word in FAMILIES:
        return ""
    near = difflib.get_close_matches(word, FAMILIES, 1, cutoff=0.7)
    return near[0] if near else ""


def _get(args: argparse.Namespace) -> int:
    with connection.open_client(args) as client:
        value = client.get_config(args.key)
    if args.json:
        say_json({"key": args.key, "value": value})
    else:
        say(f"{shown(args.key)}: {'(not set)' if value is None else shown(value)}")
    return EXIT_FAILED if value is None else 0


def _list(args: argparse.Namespace) -> int:
    with connection.open_client(args) as client:
        entries = client.list_config(args.prefix)
    if args.json:
        say_json({"entries": [{"key": key, "value": value} for key, value in entries.items()]})
    elif entries:
        for key, value in entries.items():
            say(f"{shown(key)}: {shown(value)}")
    else:
        say("No settings found.")
    return 0
