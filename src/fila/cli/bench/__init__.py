"""`fila bench`: how fast is this broker, from here?

Owns the command line. What is measured is in `categories`, what the loading processes do in `work`,
how they are started and watched in `crew`.
"""

from __future__ import annotations

import argparse
import re
import sys
from typing import Final

from fila.cli.durations import seconds
from fila.cli.options import Subparsers, command, whole_number

CATEGORIES: Final = (
    "enqueue_throughput",
    "consume_throughput",
    "enqueue_consume_mixed",
    "enqueue_latency",
    "fairness",
)
_UNITS: Final = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}


def program() -> int:
    """`fila-bench`, the same by its own name."""
    from fila.cli.main import main

    return main(["bench", *sys.argv[1:]])


def add_parser(subparsers: Subparsers) -> None:
    parser = command(
        subparsers,
        "bench",
        "measure throughput, latency and fairness of a broker",
        about="Load a broker and tell what it did: messages per second, percentiles, shares. The\n"
        "load comes from processes of its own on this machine and goes to queues of its own,\n"
        "which are removed at the end. Without --category every one of them is measured.\n\n"
        "  enqueue_throughput     producers alone, batch by batch\n"
        "  consume_throughput     consumers that empty a queue filled beforehand\n"
        "  enqueue_consume_mixed  both at once; the time from enqueue to receipt\n"
        "  enqueue_latency        one message at a time; the time until it is stored\n"
        "  fairness               one key with half of all messages, enqueued first",
        examples="  fila bench\n"
        "  fila bench --category enqueue_consume_mixed --duration 30s --producers 2 --consumers 2\n"
        "  fila bench --category enqueue_latency --rate 500 --size 64\n"
        "  fila bench --addr node1:5555,node2:5555,node3:5555 --queues 3 --producers 3 --json",
    )
    parser.add_argument(
        "--category",
        metavar="NAME",
        action="append",
        choices=CATEGORIES,
        help=f"what to measure; repeatable: {', '.join(CATEGORIES)}",
    )
    numbers = {
        "--batch": (100, 1, "messages of one request"),
        "--keys": (10, 0, "fairness keys, set by a hook from a header; 0: one key and no hook"),
        "--queues": (1, 1, "queues to spread the load over"),
        "--producers": (1, 1, "processes that enqueue"),
        "--consumers": (1, 1, "processes that consume"),
        "--prefetch": (1_000, 1, "messages on their way to a consumer"),
        "--messages": (100_000, 1, "messages of consume_throughput and fairness"),
        "--backlog": (20_000, 1, "messages that may wait while producers and consumers run"),
    }
    for name, (default, least, what) in numbers.items():
        parser.add_argument(
            name,
            metavar="N",
            type=whole_number(least, f"a number of at least {least}"),
            default=default,
            help=f"{what} (default {default:,})",
        )
    parser.add_argument(
        "--size", metavar="BYTES", type=_bytes, default=1024,
        help="bytes of a payload: 64, 1K, 64K, 1M (default 1K)",
    )  # fmt: skip
    parser.add_argument(
        "--duration", metavar="TIME", type=seconds, default=5.0,
        help="how long each category is measured: 5s, 1m (default 5s)",
    )  # fmt: skip
    parser.add_argument(
        "--warmup", metavar="TIME", type=seconds, default=1.0,
        help="how long the load runs before that (default 1s)",
    )  # fmt: skip
    parser.add_argument(
        "--rate", metavar="N", type=whole_number(1, "a number of messages a second"),
        help="messages a second of all producers together (default: as many as go)",
    )  # fmt: skip
    parser.add_argument(
        "--stored-max", metavar="BYTES", type=_bytes, default=256 * 1024**2,
        help="payload bytes that may be stored at once; a measurement that gets there ends early "
        "and says so (default 256M)",
    )  # fmt: skip
    parser.add_argument(
        "--keep", action="store_true", help="leave the queues and what is in them on the broker"
    )


def run(args: argparse.Namespace) -> int:
    from fila.cli.bench import categories  # brings multiprocessing with it

    return categories.run(args)


def _bytes(text: str) -> int:
    found = re.fullmatch(r"(\d+)\s*([KMG]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if found is None or int(found[1]) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 64, 1K or 16M")
    return int(found[1]) * _UNITS[found[2].upper()]
