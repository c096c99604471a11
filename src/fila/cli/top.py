"""`fila top [QUEUE]`: queues, or the tenants of one queue, as they are now, again and again.

Owns the screen: ANSI alone, the alternate buffer, and keys from the terminal in cbreak mode. What
it shows is what `fila explain` shows.
"""

from __future__ import annotations

import argparse
import os
import select
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from fila.cli import connection
from fila.cli.durations import milliseconds
from fila.cli.explain import keys_table, paused_text
from fila.cli.options import Subparsers, command
from fila.cli.output import say, say_json, shown, table

_ENTER: Final = "\x1b[?1049h\x1b[?25l"
_LEAVE: Final = "\x1b[?25h\x1b[?1049l"
_HOME: Final = "\x1b[H"
_LINE_END: Final = "\x1b[K"
_BELOW: Final = "\x1b[J"


def add_parser(subparsers: Subparsers) -> None:
    parser = command(
        subparsers,
        "top",
        "watch queues, or the tenants of a queue",
        about="Watch all queues, or the tenants of one queue that wait longest, as they change.\n"
        "q quits. With --once, or when the output is no terminal, it prints once.",
        examples="  fila top\n  fila top orders\n  fila top orders --once --json",
    )
    parser.add_argument("queue", metavar="QUEUE", nargs="?", help="default: all queues")
    parser.add_argument("--once", action="store_true", help="print once and end")
    parser.add_argument(
        "--interval",
        metavar="TIME",
        type=milliseconds(100),
        default=1_000,
        help="how often to look: 500ms, 5s; a bare number is in ms (default: 1s)",
    )


def run(args: argparse.Namespace) -> int:
    with connection.open_client(args) as client:
        if args.once or args.json or not sys.stdout.isatty():
            found = _look(client, args.queue)
            if args.json:
                say_json(found)
            else:
                say(page(found, 1_000))
            return 0
        with _screen() as keys:
            while True:
                found = _look(client, args.queue)
                size = shutil.get_terminal_size()
                _paint(page(found, size.lines - 1), size.columns, size.lines)
                if _quits(keys, args.interval / 1_000):
                    return 0


def page(found: dict[str, Any], lines: int) -> str:
    """One screenful, the fullest queues or the longest waiting tenants first."""
    if "queues" in found:
        queues = sorted(found["queues"], key=lambda one: (-one["depth"], one["queue"]))
        rows = [_queue_row(one) for one in queues[: max(lines - 3, 1)]]
        title = f"{len(queues)} queues, {sum(one['depth'] for one in queues)} messages wait"
        header = ("QUEUE", "DEPTH", "IN FLIGHT", "KEYS", "CONSUMERS", "CREDIT", "OUT/S", "STATE")
        return f"{title}\n\n{table(header, rows)}"
    state = f"depth {found['depth']}, in flight {found['in_flight']}, "
    state += f"{found['ready_consumers']} of {found['consumers']} consumers with credit, "
    state += f"{found['rate_per_second']:g} delivered a second"
    keys = found["keys"][: max(lines - 5, 1)]
    return f"{shown(found['sentence'])}\n{state}\n\n{keys_table(keys)}"


def _queue_row(one: dict[str, Any]) -> tuple[str | int | float, ...]:
    state = "" if one["paused"] is None else paused_text(one["paused"])
    if one.get("quarantined") is not None:
        state = "quarantined"
    broken = [name for name, breaker in one["hooks"].items() if breaker not in (None, "closed")]
    if broken:
        state = ", ".join([*([state] if state else []), *[f"{name} breaker" for name in broken]])
    return (
        one["queue"],
        one["depth"],
        one["in_flight"],
        one["active_keys"],
        one["consumers"],
        one["credit"],
        one["rate_per_second"],
        state or "-",
    )


def _look(client: Any, queue: str | None) -> dict[str, Any]:
    found: dict[str, Any] = client.explain(queue or "", keys_max=200)
    return found


def _paint(text: str, columns: int, lines: int) -> None:
    shown_lines = [line[:columns] + _LINE_END for line in text.split("\n")[: lines - 1]]
    sys.stdout.write(_HOME + "\r\n".join(shown_lines) + _BELOW)
    sys.stdout.flush()


@contextmanager
def _screen() -> Iterator[int | None]:
    """The alternate screen, and a descriptor to read keys from if stdin is a terminal."""
    keys = sys.stdin.fileno() if sys.stdin.isatty() else None
    before: list[Any] | None = None
    if keys is not None:
        import termios
        import tty

        before = termios.tcgetattr(keys)
        tty.setcbreak(keys)
    sys.stdout.write(_ENTER)
    try:
        yield keys
    finally:
        sys.stdout.write(_LEAVE)
        sys.stdout.flush()
        if keys is not None and before is not None:
            import termios

            termios.tcsetattr(keys, termios.TCSADRAIN, before)


def _quits(keys: int | None, seconds: float) -> bool:
    """Wait; True when q was pressed. A resized terminal is redrawn at the next update."""
    if keys is None:
        time.sleep(seconds)
        return False
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        ready, _, _ = select.select([keys], [], [], left)
        if ready and os.read(keys, 1) in (b"q", b"Q"):
            return True
    return False
