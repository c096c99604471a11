"""`fila redrive`: bring dead letters back to the queue they came from."""

from __future__ import annotations

import argparse
from typing import Final

from fila.cli import connection
from fila.cli.options import Subparsers, command, whole_number
from fila.cli.output import count_of, say, say_json, shown
from fila.cli.progress import Progress

# Small enough for a progress line that moves, large enough that the round trips do not matter.
_CHUNK_MESSAGES: Final = 10_000


def add_parser(subparsers: Subparsers) -> None:
    parser = command(
        subparsers,
        "redrive",
        "move messages from a dead letter queue back to its queue",
        about="Move waiting messages from a dead letter queue back to its queue, oldest first.\n"
        "Their attempts start again at 0 and on_enqueue runs again. Messages that a consumer\n"
        "holds stay where they are.",
        examples="  fila redrive orders.dlq\n  fila redrive orders.dlq --count 10",
    )
    parser.add_argument("queue", metavar="DLQ", help="the dead letter queue, e.g. orders.dlq")
    add_count(parser)


def add_count(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--count",
        metavar="N",
        type=whole_number(0, "a number of messages"),
        default=0,
        help="move at most so many (default 0: all that wait now)",
    )


def run(args: argparse.Namespace) -> int:
    moved = 0
    with connection.open_client(args) as client:
        # "All" means what waits now: messages that fail again meanwhile are not moved twice.
        waiting = client.get_stats(args.queue).depth
        wanted = min(args.count, waiting) if args.count else waiting
        with Progress("moved", wanted) as progress:
            while True:
                # An empty queue is asked once as well: the broker says if it is no DLQ at all.
                chunk = max(1, min(_CHUNK_MESSAGES, wanted - moved))
                got = client.redrive(args.queue, chunk)
                moved += got
                progress.add(got)
                if got < chunk or moved >= wanted:
                    break
    if args.json:
        say_json({"queue": args.queue, "redriven": moved})
    else:
        say(f'Redrive complete: {count_of(moved, "message")} moved from "{shown(args.queue)}"')
    return 0
