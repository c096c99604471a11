"""Reading many stored messages by their keys: what is leased, to deliver it once more.

Owns how they are read, not their meaning. Messages leased together stand together in their lanes,
so a scan from the first to the last of a lane finds them at a quarter of the price of single reads.
It looks at twice as many rows as are wanted, at most; what it did not meet is read by key.
"""

from __future__ import annotations

from typing import Final

from fila.core import reader as reading
from fila.core import rows
from fila.core.entry import lane_prefix_of
from fila.core.reader import Reader

_SCANNED_MIN: Final = 8  # fewer rows of a lane are not worth a scan
_ALL: Final = 1 << 62


def stored(reader: Reader, keys: list[bytes]) -> list[bytes]:
    """The value of each message row, in the order of the keys. All of them exist."""
    by_lane: dict[bytes, list[bytes]] = {}
    for key in keys:
        lane = lane_prefix_of(key)
        own = by_lane.get(lane)
        if own is None:
            by_lane[lane] = [key]
        else:
            own.append(key)
    found: dict[bytes, bytes] = {}
    for own in by_lane.values():
        if len(own) >= _SCANNED_MIN:
            start, end = min(own), max(own) + b"\0"
            found.update(reader.scan(rows.MESSAGES, start, end, 2 * len(own), _ALL))
    missing = [key for key in keys if key not in found]
    if missing:
        for key, read in zip(missing, reader.get_many(rows.MESSAGES, missing), strict=True):
            if read is None:
                raise reading.missing("a leased message", rows.MESSAGES, key)
            found[key] = read
    return [found[key] for key in keys]
