"""What commands print: text, tables and JSON.

Owns how a value becomes characters on a terminal. Everything that comes from a message or a broker
passes through `shown`, so that no name or payload can move the cursor or fake a line. Never talks
to a broker.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fila.text import json_line
from fila.text import shown as shown  # commands take all they print with from here

if TYPE_CHECKING:
    from fila.client.message import Message


def say(text: str) -> None:
    sys.stdout.write(text + "\n")


def say_json(document: Any) -> None:
    """One line, so that a stream of documents is JSON lines; safe on a terminal too."""
    sys.stdout.write(json_line(document) + "\n")


def message_fields(message: Message) -> dict[str, Any]:
    """What the JSON of every message begins with. `payload` is null when it is not text;
    `payload_base64` is always exact."""
    from base64 import b64encode

    payload = message.payload
    try:
        text: str | None = payload.decode()
    except UnicodeDecodeError:
        text = None
    return {
        "id": message.id,
        "queue": message.queue,
        "headers": message.headers,
        "payload": text,
        "payload_base64": b64encode(payload).decode(),
        "fairness_key": message.fairness_key,
        "weight": message.weight,
        "throttle_keys": list(message.throttle_keys),
        "attempt_count": message.attempt_count,
        "enqueued_at_ms": message.enqueued_at_ms,
    }


def note(text: str) -> None:
    """A word to the person at the terminal; never part of the result."""
    sys.stderr.write(text + "\n")


def shown_bytes(data: bytes) -> str:
    """Text as text, anything else with its bytes as \\xNN."""
    return shown(data.decode("utf-8", "backslashreplace"))


def shown_number(value: float) -> str:
    """As many digits as matter: 100, 2.5, 0.333."""
    return f"{value:.3f}".rstrip("0").rstrip(".") if value != int(value) else str(int(value))


def duration(ms: float) -> str:
    """A duration in readable units: 0.4 ms, 250 ms, 3.2 s, 4 min 10 s, 2 h 5 min."""
    if ms < 10:
        return f"{ms:.2g} ms" if ms >= 0.01 else "0 ms"
    if ms < 1_000:
        return f"{ms:.0f} ms"
    if ms < 60_000:
        return f"{ms / 1_000:.1f} s"
    minutes, seconds = divmod(int(ms // 1_000), 60)
    if minutes < 60:
        return f"{minutes} min {seconds} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min"


def moment(ms: int) -> str:
    """A point in time, in UTC; nothing for 0, which is never."""
    from datetime import UTC, datetime

    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M") if ms else ""


def count_of(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def table(headers: Sequence[str], rows: Sequence[Sequence[str | int | float]]) -> str:
    """Columns two spaces apart; numbers to the right, the rest to the left."""
    cells = [[_cell(value) for value in row] for row in rows]
    numeric = [
        bool(rows) and all(isinstance(row[column], int | float) for row in rows)
        for column in range(len(headers))
    ]
    widths = [
        max([_width(header), *(_width(row[column]) for row in cells)])
        for column, header in enumerate(headers)
    ]
    return "\n".join(_line(row, widths, numeric) for row in [list(headers), *cells])


def _cell(value: str | int | float) -> str:
    if isinstance(value, str):
        return shown(value)
    return str(value) if isinstance(value, int) else shown_number(value)


def _line(cells: list[str], widths: list[int], numeric: list[bool]) -> str:
    padded = []
    for text, width, right in zip(cells, widths, numeric, strict=True):
        space = " " * (width - _width(text))
        padded.append(space + text if right else text + space)
    return "  ".join(padded).rstrip()


def _width(text: str) -> int:
    """Columns on a terminal: wide characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    import unicodedata

    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )
