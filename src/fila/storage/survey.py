"""Reads a family from end to end, around what cannot be read.

Owns the search for the next readable key behind a damaged block. For `--verify` and `--salvage`
only: a running broker stops at the first damaged row instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from fila.core.reader import Reader
from fila.storage.contract import StoreDamagedError

PAGE_ROWS: Final = 4_096
PAGE_BYTES: Final = 8 << 20
END: Final = b"\xff" * 64  # above every key
_KEY_BYTES: Final = 64  # keys are compared by so many bytes when a gap is measured


class Gap(NamedTuple):
    """Rows from `start` to before `end` that cannot be read; no `end`: all that follow."""

    start: bytes
    end: bytes
    why: str


def pages(reader: Reader, family: int) -> Iterator[list[tuple[bytes, bytes]] | Gap]:
    """The rows of a family in order, in pages, and the gaps between them."""
    start = b""
    rows_max = PAGE_ROWS
    while True:
        try:
            page = reader.scan(family, start, END, rows_max, PAGE_BYTES)
        except StoreDamagedError as error:
            if rows_max > 1:
                rows_max = max(1, rows_max // 8)  # read up to the damage first
                continue
            end = _next_readable(reader, family, start)
            yield Gap(start, end, str(error.__cause__ or error))
            if not end:
                return
            start = end
            continue
        if page:
            yield page
            start = page[-1][0] + b"\0"
        if len(page) < rows_max and sum(len(key) + len(value) for key, value in page) < PAGE_BYTES:
            return
        rows_max = min(PAGE_ROWS, rows_max * 2)


def _next_readable(reader: Reader, family: int, start: bytes) -> bytes:
    """The first key after `start` from which a row can be read; empty: there is none.

    Doubles the distance until a read succeeds, then halves the interval: blocks hold neighbours, so
    what lies behind one damaged block is found within a few hundred reads.
    """
    bad = int.from_bytes(start[:_KEY_BYTES].ljust(_KEY_BYTES, b"\0"), "big")
    last = (1 << 8 * _KEY_BYTES) - 1
    step = 1
    while True:
        good = min(bad + step, last)
        if _readable(reader, family, good):
            break
        if good == last:
            return b""
        step *= 2
    while good - bad > 1:
        middle = (good + bad) // 2
        if _readable(reader, family, middle):
            good = middle
        else:
            bad = middle
    return good.to_bytes(_KEY_BYTES, "big")


def _readable(reader: Reader, family: int, at: int) -> bool:
    try:
        reader.scan(family, at.to_bytes(_KEY_BYTES, "big"), END, 1, 1)
    except StoreDamagedError:
        return False
    return True
