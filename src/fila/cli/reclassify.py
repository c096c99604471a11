"""`fila queue reclassify`: let the hook judge again what waits in a queue."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any, Final

from fila.cli import connection
from fila.cli.failure import Failure
from fila.cli.options import Subparsers, command, whole_number
from fila.cli.output import say, say_json, shown, table
from fila.cli.progress import Progress

if TYPE_CHECKING:
    from fila.client.sync import FilaClient

_POLL_S: Final = 0.2
_SHOWN: Final = 20  # kinds of differences


def add_parser(inner: Subparsers) -> None:
    parser = command(
        inner,
        "reclassify",
        "let the hook judge again what waits",
        about="Run the queue's on_enqueue again over the messages that wait in it. Those it\n"
        "places elsewhere move there, with their age and attempts; where only the weight differs\n"
        "it is rewritten; where the hook fails a message stays. Messages in flight are left\n"
        "alone.\n\n"
        "It is done in the background, in small steps, and goes on after a restart. This command\n"
        "waits for it; --no-wait returns at once, and ^C leaves it running.",
        examples="  fila queue reclassify orders --dry-run\n"
        "  fila queue reclassify orders --rate 5000\n"
        "  fila queue reclassify orders --status\n"
        "  fila queue reclassify orders --cancel",
    )
    parser.add_argument("name", metavar="NAME", help="the queue")
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--dry-run", action="store_true", help="show what would change, and change nothing"
    )
    what.add_argument("--status", action="store_true", help="show how far it is, or came")
    what.add_argument("--cancel", action="store_true", help="end it; what is done stays done")
    parser.add_argument(
        "--rate",
        metavar="N",
        type=whole_number(1, "a rate"),
        default=0,
        help="messages per second at most (default: as the broker has room)",
    )
    parser.add_argument("--no-wait", action="store_true", help="do not wait for the end")


def run(args: argparse.Namespace) -> int:
    with connection.open_client(args) as client:
        if args.status:
            found = client.get_reclassify(args.name)
        else:
            found = client.reclassify(
                args.name, rate=args.rate, dry_run=args.dry_run, cancel=args.cancel
            )
            if not (args.no_wait or args.cancel):
                found = _wait(client, args.name, found)
    if args.json:
        say_json(found)
    else:
        say(text(found))
    if found["state"] == "failed":
        raise Failure(f'queue "{shown(args.name)}" was not reclassified: {shown(found["why"])}')
    return 0


def _wait(client: FilaClient, name: str, found: dict[str, Any]) -> dict[str, Any]:
    with Progress("judged", found["waiting"]) as progress:
        seen = 0
        while found["state"] == "running":
            time.sleep(_POLL_S)
            found = client.get_reclassify(name)
            if found["state"] == "none":
                break
            progress.add(found["judged"] - seen)
            seen = found["judged"]
    return found


def text(found: dict[str, Any]) -> str:
    if found["state"] == "none":
        return f'Queue "{shown(found["queue"])}" was not reclassified since the broker started'
    would = "would move" if found["dry_run"] else "moved"
    rewritten = "would get" if found["dry_run"] else "got"
    lines = [
        f"{_STATES[found['state']]}: {found['judged']} messages judged by version "
        f"{found['version']}, {found['moved']} {would}, {found['reweighed']} {rewritten} another "
        f"weight, {found['undecided']} stay because the hook failed"
    ]
    kinds = found["differences"]
    if kinds:
        rows = [(one["messages"], _stand(one["from"]), _stand(one["to"])) for one in kinds[:_SHOWN]]
        lines.append("\n" + table(("MESSAGES", "FROM", "TO"), rows))
    rest = found["other_differences"] + sum(one["messages"] for one in kinds[_SHOWN:])
    if rest:
        lines.append(f"and {rest} messages in other ways")
    return "\n".join(lines)


_STATES: Final = {
    "running": "Under way",
    "done": "Done",
    "cancelled": "Cancelled",
    "failed": "Failed",
}


def _stand(one: dict[str, Any]) -> str:
    throttled = f" [{', '.join(one['throttle_keys'])}]" if one["throttle_keys"] else ""
    return shown(f"{one['key']} ×{one['weight']}{throttled}")
