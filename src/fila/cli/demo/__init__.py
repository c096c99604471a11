"""`fila demo`: a noisy tenant and three quiet ones, once in FIFO order and once in Fila's.

Owns the command; the broker it starts, the race and the screen have modules of their own.
"""

from __future__ import annotations

import argparse
import sys

from fila.cli.options import Subparsers, command, whole_number
from fila.cli.output import say, say_json


def add_parser(subparsers: Subparsers) -> None:
    parser = command(
        subparsers,
        "demo",
        "watch fair delivery next to FIFO, on a broker of its own",
        about="Start a broker of its own in a temporary directory and run one backlog through two\n"
        "queues: one without hooks, which is FIFO, and one whose on_enqueue hook makes the\n"
        "tenant the fairness key. Takes about fifteen seconds and leaves nothing behind.",
        examples="  fila demo\n  fila demo --noisy 50000 --rate 5000",
    )
    count = whole_number(1, "a number of messages")
    parser.add_argument(
        "--noisy",
        metavar="N",
        type=count,
        default=10_000,
        help="messages of the noisy tenant (default %(default)s)",
    )
    parser.add_argument(
        "--quiet",
        metavar="N",
        type=count,
        default=100,
        help="messages of each quiet tenant (default %(default)s)",
    )
    parser.add_argument(
        "--rate",
        metavar="N",
        type=count,
        default=1_000,
        help="messages a worker handles per second (default %(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    from fila.cli.demo import report, screen
    from fila.cli.demo.broker import own_broker
    from fila.cli.demo.race import Race

    race = Race(args.noisy, args.quiet, args.rate)
    if not args.json:
        say(report.opening(race))
        sys.stdout.flush()
    with own_broker() as addr:
        race.fill(addr)
        with race.running(addr):
            screen.show(race, silent=args.json)
    if args.json:
        say_json(report.document(race))
    else:
        say(report.closing(race))
    return 0
