"""`fila consume`: take messages from a queue and print them.

Owns the printed form of a delivery. A message is acknowledged only after it has been written out,
so a reader that goes away loses nothing.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from fila.cli import connection
from fila.cli.failure import usage
from fila.cli.options import Subparsers, command, whole_number
from fila.cli.output import message_fields, note, say, say_json, shown, shown_bytes
from fila.cli.progress import Progress

if TYPE_CHECKING:
    from fila.client.sync import Consumer, FilaClient, SyncMessage

# Without --follow, a queue that had nothing to give for so long counts as empty.
_IDLE_S: Final = 0.5
_PREFETCH: Final = 256
_PREFETCH_MAX: Final = 65_535
_NACK_ERROR: Final = "nacked by fila consume"


def add_parser(subparsers: Subparsers) -> None:
    parser = command(
        subparsers,
        "consume",
        "take messages from a queue and print them",
        about="Take messages from a queue and print them, one per line. Without --follow the\n"
        "command ends when the queue has no more messages to deliver.",
        examples="  fila consume orders\n"
        "  fila consume orders --follow\n"
        "  fila consume orders --peek-only --limit 10\n"
        "  fila consume orders --json | jq -r .payload\n"
        "  fila consume orders --nack --limit 1",
    )
    parser.add_argument("queue", metavar="QUEUE", help="the queue to take them from")
    settle = parser.add_mutually_exclusive_group()
    settle.add_argument(
        "--ack",
        dest="settle",
        action="store_const",
        const="ack",
        default="ack",
        help="acknowledge each message once it is printed: it is done and gone (the default)",
    )
    settle.add_argument(
        "--nack",
        dest="settle",
        action="store_const",
        const="nack",
        help="give each message back as failed; on_failure decides what becomes of it",
    )
    settle.add_argument(
        "--peek-only",
        dest="settle",
        action="store_const",
        const="peek",
        help="look only: the messages go back when the command ends, and no attempt is counted",
    )
    parser.add_argument(
        "--limit",
        metavar="N",
        type=whole_number(1, "a number of messages"),
        help="end after so many messages",
    )
    parser.add_argument(
        "--follow", action="store_true", help="wait for further messages until Ctrl-C"
    )


def run(args: argparse.Namespace) -> int:
    if args.settle == "peek" and args.follow:
        raise usage("--peek-only and --follow exclude each other: peeking holds what it has seen")
    # When messages are printed on the terminal, they are the progress.
    watched = not sys.stdout.isatty()
    with (
        connection.open_client(args, reconnect=args.follow) as client,
        Progress("consumed", args.limit, enabled=watched) as progress,
    ):
        # Not closed on its own: the broker takes back what a client holds when the client leaves,
        # not when one of its consumers is cancelled.
        consumer = client.consume(args.queue, prefetch=_prefetch(args))
        printed = 0
        for messages in _batches(consumer, args):
            for message in messages:
                if args.json:
                    say_json(_document(message, args.settle))
                else:
                    say(_text(message))
            sys.stdout.flush()
            _settle(client, args, messages)
            progress.add(len(messages))
            printed += len(messages)
        if not printed and sys.stderr.isatty():
            note(_why_nothing(client, args.queue))
    return 0


def _why_nothing(client: FilaClient, queue: str) -> str:
    """Paused, throttled, delayed, empty: as the broker tells those who may know."""
    from fila.client.errors import FilaError

    name = shown(queue)
    try:
        return f"Nothing came. {shown(client.explain(queue, keys_max=1)['sentence'])}"
    except FilaError:
        return f'Nothing of "{name}" is ready; `fila explain {name}` says what waits for what.'


def _batches(consumer: Consumer, args: argparse.Namespace) -> Iterator[list[SyncMessage]]:
    left = args.limit
    seen: set[str] = set()
    while left is None or left > 0:
        batch = consumer.receive_many(
            _PREFETCH if left is None else min(left, _PREFETCH), None if args.follow else _IDLE_S
        )
        if not batch:
            return
        if args.settle == "nack" and not args.follow:
            # A message that is retried at once comes again: every message once, or we never end.
            fresh = [message for message in batch if message.id not in seen]
            seen.update([message.id for message in fresh])
            if len(fresh) < len(batch):
                if fresh:
                    yield fresh
                return
        if left is not None:
            left -= len(batch)
        yield batch


def _settle(client: FilaClient, args: argparse.Namespace, messages: list[SyncMessage]) -> None:
    ids = [message.id for message in messages]
    if args.settle == "ack":
        client.ack_many(args.queue, ids)
    elif args.settle == "nack":
        client.nack_many(args.queue, ids, _NACK_ERROR)


def _prefetch(args: argparse.Namespace) -> int:
    # Peeking settles nothing, so all it shows must fit into the credit.
    largest = _PREFETCH_MAX if args.settle == "peek" else _PREFETCH
    return largest if args.limit is None else min(args.limit, largest)


def _text(message: SyncMessage) -> str:
    headers = ", ".join(f"{shown(key)}={shown(value)}" for key, value in message.headers.items())
    return (
        f"id={message.id} key={shown(message.fairness_key)} attempts={message.attempt_count} "
        f"headers={{{headers}}} payload={shown_bytes(message.payload)}"
    )


def _document(message: SyncMessage, settle: str) -> dict[str, Any]:
    return {
        **message_fields(message),
        "leased_at_ms": message.leased_at_ms,
        "settled": None if settle == "peek" else settle,
    }
