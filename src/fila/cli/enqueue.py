"""`fila enqueue`: put messages into a queue, from an argument, a file or standard input."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from fila.cli import connection
from fila.cli.durations import milliseconds
from fila.cli.failure import Failure, unreadable, usage
from fila.cli.options import Subparsers, command, whole_number
from fila.cli.output import count_of, note, say, say_json, shown
from fila.cli.progress import Progress

if TYPE_CHECKING:
    from fila.client.sync import FilaClient

_PIECE_MESSAGES: Final = 1_000
_PIECE_BYTES: Final = 4 * 1024 * 1024
_READ_BYTES: Final = 64 * 1024
# With --rate, messages go out in pieces of this much time: a smooth flow, few round trips.
_PACE_S: Final = 0.02


def add_parser(subparsers: Subparsers) -> None:
    parser = command(
        subparsers,
        "enqueue",
        "put messages into a queue",
        about="Put messages into a queue. Without --payload and --file every line of standard\n"
        "input is one message. When the command reports success, the messages are stored.",
        examples="  fila enqueue orders --header tenant=acme --payload hello\n"
        "  fila enqueue images --file photo.jpg\n"
        "  fila enqueue orders --header tenant=acme < orders.txt\n"
        "  tail -f app.log | fila enqueue logs\n"
        "  fila enqueue orders --payload ping --count 10000 --rate 500\n"
        "  fila enqueue reminders --payload call --delay 3600000 --idempotency-key order-7",
    )
    parser.add_argument("queue", metavar="QUEUE", help="the queue to put them into")
    parser.add_argument(
        "--header",
        metavar="KEY=VALUE",
        action="append",
        type=_header,
        default=[],
        help="a header for every message; repeatable",
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--payload", metavar="TEXT", help="the message itself")
    source.add_argument(
        "--file", metavar="FILE", help="send the file as one message (-: standard input)"
    )
    parser.add_argument(
        "--count",
        metavar="N",
        type=whole_number(1, "a number of messages"),
        help="send the message so many times",
    )
    parser.add_argument(
        "--delay",
        metavar="TIME",
        type=milliseconds(),
        default=0,
        help="let the messages become ready so much later: 500ms, 30s, 5m; a bare number is in ms",
    )
    parser.add_argument(
        "--ttl",
        metavar="TIME",
        type=milliseconds(1),
        help="how long the messages may wait before they expire: 500ms, 30s, 5m; it is the header "
        "fila.ttl_ms",
    )
    parser.add_argument(
        "--idempotency-key",
        metavar="KEY",
        default="",
        help="store nothing if the queue knows the key already; the messages of one command have "
        "the keys KEY, KEY/1, KEY/2 and so on",
    )
    parser.add_argument(
        "--rate", metavar="N", type=_rate, help="send at most so many messages per second"
    )


def run(args: argparse.Namespace) -> int:
    if args.count is not None and args.payload is None and args.file is None:
        raise usage("--count repeats one message: give it with --payload or --file")
    if args.payload is not None:
        # Bytes that were not UTF-8 on the command line arrive as they were.
        pieces = _repeated(os.fsencode(args.payload), args.count or 1)
    elif args.file is not None:
        pieces = _repeated(_file(args.file), args.count or 1)
    else:
        pieces = _lines_of_stdin()
    total = None if args.payload is None and args.file is None else args.count or 1
    if args.rate is not None:
        pieces = _paced(pieces, args.rate)
    with connection.open_client(args) as client:
        stored, last_id, known = _send(client, args, pieces, total)
    if not args.json:
        if known and known == stored:
            say(
                f'Nothing was stored: "{shown(args.queue)}" knows the idempotency key; '
                f"{'message' if stored == 1 else 'the last is message'} {last_id}"
            )
        elif known:
            say(
                f'Enqueued {count_of(stored - known, "message")} to "{shown(args.queue)}"; '
                f"{known} were there by their idempotency keys"
            )
        elif stored == 1:
            say(f'Enqueued message {last_id} to "{shown(args.queue)}"')
        else:
            say(f'Enqueued {count_of(stored, "message")} to "{shown(args.queue)}"')
    return 0


def _send(
    client: FilaClient, args: argparse.Namespace, pieces: Iterator[list[bytes]], total: int | None
) -> tuple[int, str, int]:
    """How many are stored, the id of the last one, and how many were there before."""
    from fila.client.errors import BatchError, FilaError

    headers = dict(args.header)
    if args.ttl is not None:
        headers["fila.ttl_ms"] = str(args.ttl)
    stored = known = 0
    last_id = ""
    with Progress("enqueued", total) as progress:
        for piece in pieces:
            fault: FilaError | None = None
            duplicates: set[str] = set()
            try:
                ids, duplicates = _store(client, args, headers, piece, stored)
                known += len(duplicates)
            except BatchError as error:
                fault = next(iter(error.errors.values()))
                ids = [_id_of(result) for result in error.results if _id_of(result)]
            except FilaError as error:
                fault = error
                ids = []
            stored += len(ids)
            progress.add(len(ids))
            if ids:
                last_id = ids[-1]
            if args.json:
                for message_id in ids:
                    duplicate = message_id in duplicates
                    say_json({"queue": args.queue, "id": message_id, "duplicate": duplicate})
                sys.stdout.flush()
            if fault is not None:
                if not stored:
                    raise fault
                raise Failure(f"{fault} ({count_of(stored, 'message')} stored before)")
    return stored, last_id, known


def _store(
    client: FilaClient,
    args: argparse.Namespace,
    headers: dict[str, str],
    piece: list[bytes],
    before: int,
) -> tuple[list[str], set[str]]:
    """Their ids, and those of them that the queue knew by their idempotency keys."""
    if not args.delay and not args.idempotency_key:
        return client.enqueue_many((args.queue, headers, payload) for payload in piece), set()
    from fila.client.new_message import NewMessage

    key = args.idempotency_key
    messages = []
    for number, payload in enumerate(piece, before):
        own_key = f"{key}/{number}" if key and number else key
        messages.append(NewMessage(args.queue, payload, headers, args.delay, own_key))
    results = client.enqueue_messages(messages)
    return [one.id for one in results], {one.id for one in results if one.duplicate}


def _repeated(payload: bytes, count: int) -> Iterator[list[bytes]]:
    size = max(1, min(_PIECE_MESSAGES, _PIECE_BYTES // max(1, len(payload))))
    while count:
        piece = min(size, count)
        yield [payload] * piece
        count -= piece


def _file(path: str) -> bytes:
    try:
        if path == "-":
            return sys.stdin.buffer.read()
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise unreadable(path, error) from error


def _lines_of_stdin() -> Iterator[list[bytes]]:
    """Lines as they come: whatever has arrived is sent before we wait for more."""
    descriptor = sys.stdin.fileno()
    if os.isatty(descriptor):
        note("Reading messages, one per line; Ctrl-D ends.")
    begun: list[bytes] = []  # of a line whose end has not come yet
    while data := os.read(descriptor, _READ_BYTES):
        first, newline, rest = data.partition(b"\n")
        begun.append(first)
        if newline:
            lines = (b"".join(begun) + b"\n" + rest).split(b"\n")
            begun = [lines.pop()]
            yield lines
    last = b"".join(begun)
    if last:
        yield [last]


def _paced(pieces: Iterator[list[bytes]], rate: float) -> Iterator[list[bytes]]:
    size = max(1, min(_PIECE_MESSAGES, int(rate * _PACE_S)))
    next_at = time.monotonic()
    for piece in pieces:
        for start in range(0, len(piece), size):
            time.sleep(max(0.0, next_at - time.monotonic()))
            part = piece[start : start + size]
            # Time lost while input was missing is not made up for with a burst.
            next_at = max(next_at, time.monotonic() - _PACE_S) + len(part) / rate
            yield part


def _id_of(result: object) -> str:
    """The id in a result of either kind of enqueue; empty where there is none."""
    return result if isinstance(result, str) else str(getattr(result, "id", ""))


def _header(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key, value


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0 < rate < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of messages per second")
    return rate
