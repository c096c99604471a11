"""Text from elsewhere, made safe to read: no name, key or reason can move a cursor or fake a line.

Owns the one rule for it: a character that is not printable is written as an escape. Used wherever a
person or a line-based parser reads: the command line, the log, metrics.
"""

from __future__ import annotations

import json
from typing import Any, Final

_NAMED_ESCAPES: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def shown(text: str) -> str:
    """The text with everything that is not a visible character or a space written as an escape."""
    if text.isprintable():
        return text
    return "".join([char if char.isprintable() else _escape(char) for char in text])


def json_line(document: Any) -> str:
    """One line of JSON that is safe on a terminal too; what JSON does not know is shown as text."""
    text = json.dumps(document, ensure_ascii=False, default=str)
    if text.isprintable():
        return text
    # Such characters stand inside strings only, where JSON has an escape for each.
    return "".join([char if char.isprintable() else json.dumps(char)[1:-1] for char in text])


def _escape(char: str) -> str:
    named = _NAMED_ESCAPES.get(char)
    if named is not None:
        return named
    number = ord(char)
    if 0xDC80 <= number <= 0xDCFF:  # a byte of an argument that was not UTF-8
        return f"\\x{number - 0xDC00:02x}"
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
