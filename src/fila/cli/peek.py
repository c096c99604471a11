"""`fila queue peek`: look at a queue's messages without taking any."""

from __future__ import annotations

import argparse
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from fila.cli import connection
from fila.cli.options import Subparsers, command, whole_number
from fila.cli.output import message_fields, say, say_json, shown, shown_bytes

if TYPE_CHECKING:
    from fila.client.browsing import BrowsedMessage

_STATES: Final = ("ready", "delayed", "leased")


def add_parser(inner: Subparsers) -> None:
    peek = command(
        inner,
        "peek",
        "look at a queue's messages without taking any",
        about="Show messages as they are now, leased or not. Nothing is leased, no attempt\n"
        "is counted, and consumers notice nothing. Needs consume permission.",
        examples="  fila queue peek orders\n"
        "  fila queue peek orders --state delayed --state leased\n"
        "  fila queue peek orders.dlq --key acme --limit 100 --json | jq .payload",
    )
    peek.add_argument("name", metavar="NAME", help="the queue to look at")
    peek.add_argument(
        "--state",
        action="append",
        choices=_STATES,
        default=[],
        help="only messages in this state; repeatable",
    )
    peek.add_argument("--key", metavar="KEY", help="only messages of this fairness key")
    peek.add_argument(
        "--limit",
        metavar="N",
        type=whole_number(1, "a number of messages"),
        default=20,
        help="end after so many messages (default: 20)",
    )


def run(args: argparse.Namespace) -> int:
    with connection.open_client(args) as client:
        found = client.browse(
            args.name,
            states=args.state,
            fairness_key=args.key,
            page_messages=min(args.limit, 1_000),
        )
        try:
            for message in islice(found, args.limit):
                if args.json:
                    say_json(document(message))
                else:
                    say(_text(message))
        finally:
            found.close()
    return 0


def _text(message: BrowsedMessage) -> str:
    headers = ", ".join(f"{shown(key)}={shown(value)}" for key, value in message.headers.items())
    return (
        f"id={message.id} state={message.state} key={shown(message.fairness_key)} "
        f"attempts={message.attempt_count} headers={{{headers}}} "
        f"payload={shown_bytes(message.payload)}"
    )


def document(message: BrowsedMessage) -> dict[str, Any]:
    return {
        **message_fields(message),
        "state": message.state,
        "ready_at_ms": message.ready_at_ms,
    }
