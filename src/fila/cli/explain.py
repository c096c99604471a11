"""`fila explain`: why a message, a tenant or a queue waits, and what would change it.

Owns the text form of an explanation; the document and its sentence come from the broker.
"""

from __future__ import annotations

import argparse
from typing import Any, Final

from fila.cli import connection
from fila.cli.options import Subparsers, command, whole_number
from fila.cli.output import duration, say, say_json, shown, table

_NS_PER_MS: Final = 1_000_000
PARTS: Final = {
    "earlier": "earlier attempts, before it came back to the line",
    "retry": "a delay, until it was ready",
    "paused": "its queue or its key was paused",
    "throttled": "a bucket of its own was empty",
    "capped": "as many of its key as may be were in flight",
    "no_consumer": "no consumer was connected, or all were held",
    "busy_own": "consumers were busy: with its own key's messages",
    "busy_others": "consumers were busy: with other keys' messages",
    "own": "older messages of its own key stood before it",
    "turn": "other keys had their turns",
}


_OUTLOOK: Final = {
    "add_consumer": "with one more consumer like the others",
    "raise_weight": "with twice the weight",
    "raise_rate": "with twice the rate of its bucket",
}


def add_parser(subparsers: Subparsers) -> None:
    parser = command(
        subparsers,
        "explain",
        "say why a queue, a tenant or a message waits",
        about="Say why something waits: which tenants of a queue wait longest and for what, or,\n"
        "with --key or --message, where the time of one message went, who was served\n"
        "meanwhile, when it will be delivered, and what would change that.\n"
        "Needs admin permission on the queue.",
        examples="  fila explain orders\n"
        "  fila explain orders --key acme\n"
        "  fila explain orders --message 0198c2a4-6a00-7000-8000-000000000001\n"
        "  fila explain orders --key acme --json | jq .eta_ms",
    )
    parser.add_argument("queue", metavar="QUEUE", help="the queue to look into")
    parser.add_argument("--key", metavar="KEY", help="the next message of this fairness key")
    parser.add_argument("--message", metavar="ID", help="this message")
    parser.add_argument(
        "--limit",
        metavar="N",
        type=whole_number(1, "a number of keys"),
        default=10,
        help="how many keys to show without --key and --message (default: 10)",
    )


def run(args: argparse.Namespace) -> int:
    with connection.open_client(args) as client:
        found = client.explain(
            args.queue, key=args.key, message_id=args.message, keys_max=args.limit
        )
    if args.json:
        say_json(found)
    else:
        say(text(found))
    return 0


def text(found: dict[str, Any]) -> str:
    """A sentence first, then the tables."""
    pieces = [shown(found["sentence"])]
    if "parts_ns" in found:
        pieces.append(_parts(found))
        others = found["served_meanwhile"]["others"]
        if others:
            pieces.append(_others(found["served_meanwhile"]))
    elif found.get("keys"):
        pieces.append(keys_table(found["keys"]))
    if found.get("changes"):
        pieces.append(_changes(found["changes"]))
    if found.get("outlook", {}).get("changes"):
        pieces.append(_outlook(found["outlook"]))
    return "\n\n".join(pieces)


def _outlook(outlook: dict[str, Any]) -> str:
    lines = [f"A message sent now goes in about {duration(outlook['eta_ms'])}:"]
    for one in outlook["changes"]:
        lines.append(f"  - {_OUTLOOK[one['do']]}: in about {duration(one['eta_ms'])}")
    return "\n".join(lines)


def keys_table(keys: list[dict[str, Any]]) -> str:
    overridden = any(one.get("override") is not None for one in keys)
    return _keys(keys) + ("\n* overridden: see `fila key list`" if overridden else "")


def _keys(keys: list[dict[str, Any]]) -> str:
    return table(
        ("KEY", "PENDING", "WEIGHT", "RATE/S", "DELIVERED", "OLDEST", "WAITS FOR"),
        [
            (
                one["key"],
                one["pending"],
                _weight(one),
                one["rate_per_second"],
                one["delivered"],
                duration(one["oldest_ms"]) if one["pending"] else "-",
                _waits_for(one),
            )
            for one in keys
        ],
    )


def paused_text(pause: dict[str, Any]) -> str:
    by = f" by {pause['by']}" if pause["by"] else ""
    return f"paused{by}: {pause['reason']}" if pause["reason"] else f"paused{by}"


def _waits_for(key: dict[str, Any]) -> str:
    if key["paused"] is not None:
        return paused_text(key["paused"])
    return key["waiting_for"] or "-"


def _weight(key: dict[str, Any]) -> str:
    """A star where an override says it, or limits the rate."""
    return f"{key['weight']}*" if key.get("override") is not None else str(key["weight"])


def _parts(found: dict[str, Any]) -> str:
    parts = found["parts_ns"]
    age = max(found["age_ns"], 1)
    rows = [
        (duration(parts[name] / _NS_PER_MS), f"{100 * parts[name] / age:.0f} %", name, meaning)
        for name, meaning in PARTS.items()
        if parts[name]
    ]
    rows.append((duration(found["age_ns"] / _NS_PER_MS), "100 %", "in all", "since its enqueue"))
    return table(("TIME", "SHARE", "PART", "MEANING"), rows)


def _others(served: dict[str, Any]) -> str:
    rows = [
        (one["key"], one["messages"], one["weight"], one["pending"]) for one in served["others"]
    ]
    title = f"Delivered meanwhile: {served['messages']}, of its own key {served['own']}\n"
    return title + table(("KEY", "MESSAGES", "WEIGHT", "PENDING"), rows)


def _changes(changes: list[dict[str, Any]]) -> str:
    lines = ["What would change it:"]
    for one in changes:
        line = f"  - {one['text']}"
        if one["eta_ms"] is not None:
            line += f" (then about {duration(one['eta_ms'])})"
        if one["command"]:
            line += f": {one['command']}"
        lines.append(shown(line))
    return "\n".join(lines)
