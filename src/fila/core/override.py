"""An override: what an operator says of one fairness key of a queue, instead of its messages.

Owns its values, their bounds and their stored form. What it does is in `overriding.py`.

    state     'k' · queue u32 · u8 0 · fairness key        → override record
              'k' · queue u32 · u8 1 · fairness key        → level of its bucket, as all buckets'

    override  u8 1 · since_ns u64 · expires_ns u64 · weight u32 · rate f64 · burst f64
              · len16 who · len16 note · count8 × (setting u8 · value u64), of later versions
"""

from __future__ import annotations

import struct
from typing import Any, Final, NamedTuple

from fila.core import rows
from fila.core.deadline import Sleeper
from fila.core.rejection import Rejection, invalid_value
from fila.core.settings import Settings
from fila.core.throttle import Limit, number_of

WEIGHT: Final = "weight"
RATE: Final = "rate"
BURST: Final = "burst"
EXPIRES_IN_MS: Final = "expires_in_ms"
NAMES: Final = (WEIGHT, RATE, BURST, EXPIRES_IN_MS)

_MS: Final = 1_000_000
_EXPIRES_MS_MAX: Final = 10 * 366 * 24 * 3600 * 1000
_HEAD: Final = struct.Struct(">BQQIdd")
_U16: Final = struct.Struct(">H")


class Terms(NamedTuple):
    """What it says. 0: as the messages say, or no limit; `expires_ns` 0: until it is cleared."""

    weight: int = 0
    rate: float = 0.0
    burst: float = 0.0  # 0: the larger of the rate and 1
    expires_ns: int = 0
    since_ns: int = 0
    who: str = ""
    note: str = ""

    def limit(self) -> Limit | None:
        """How fast the key may go, whatever its throttle keys allow."""
        return Limit(self.rate, self.burst or max(self.rate, 1.0)) if self.rate else None

    def says_nothing(self) -> bool:
        return not self.weight and not self.rate

    def told(self) -> str:
        """For the journal."""
        limit = self.limit()
        found = [f"weight={self.weight}"] if self.weight else []
        if limit is not None:
            found += [f"rate={limit.rate:g}", f"burst={limit.burst:g}"]
        if self.expires_ns:
            found.append(f"expires_ns={self.expires_ns}")
        return ",".join(found)


class Override(Sleeper):
    """The terms of one key, which may wake to end."""

    __slots__ = ("key", "queue", "terms")

    def __init__(self, queue: str, key: bytes, terms: Terms) -> None:
        super().__init__()
        self.queue = queue
        self.key = key
        self.terms = terms


def document(terms: Terms) -> dict[str, Any]:
    """As plain JSON; None: not said."""
    limit = terms.limit()
    return {
        "weight": terms.weight or None,
        "rate": limit.rate if limit is not None else None,
        "burst": limit.burst if limit is not None else None,
        "expires_ms": terms.expires_ns // _MS or None,
        "since_ms": terms.since_ns // _MS,
        "by": terms.who,
        "note": terms.note,
    }


def changed(terms: Terms, given: dict[str, str], now: int, settings: Settings) -> Terms | Rejection:
    """The terms with what is named in `given` set or, where its text is empty, taken away."""
    unknown = sorted(given.keys() - set(NAMES))
    if unknown:
        return invalid_value("setting", f'"{unknown[0]}" is none of a key; use {", ".join(NAMES)}')
    if WEIGHT in given:
        text = given[WEIGHT].strip()
        weight = _whole(text or "0", settings.weight_max)
        if weight is None or (text and not weight):
            return invalid_value(
                WEIGHT, f'"{text}" is not a whole number from 1 to {settings.weight_max}'
            )
        terms = terms._replace(weight=weight)
    if RATE in given:
        found = number_of(given[RATE] or "0")
        if isinstance(found, str):
            return invalid_value(RATE, found)
        if given[RATE].strip() and not found:
            return invalid_value(RATE, "a rate of 0 lets nothing go; pause the key instead")
        terms = terms._replace(rate=found, burst=terms.burst if found else 0.0)
    if BURST in given:
        found = number_of(given[BURST] or "0")
        if isinstance(found, str):
            return invalid_value(BURST, found)
        if given[BURST].strip() and found < 1.0:
            return invalid_value(BURST, "it has to be at least 1, or nothing may ever go")
        if found and not terms.rate:
            return invalid_value(BURST, "it needs a rate")
        terms = terms._replace(burst=found)
    if EXPIRES_IN_MS in given:
        text = given[EXPIRES_IN_MS].strip()
        wait_ms = _whole(text or "0", _EXPIRES_MS_MAX)
        if wait_ms is None or (text and not wait_ms):
            return invalid_value(
                EXPIRES_IN_MS, f'"{text}" is not a whole number from 1 to {_EXPIRES_MS_MAX}'
            )
        terms = terms._replace(expires_ns=now + wait_ms * _MS if wait_ms else 0)
    return terms


def _whole(text: str, most: int) -> int | None:
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        return None
    number = int(text)
    return number if number <= most else None


def prefix(queue: int) -> bytes:
    """What the rows of a queue's overrides begin with."""
    return rows.OVERRIDE_PREFIX + rows.queue_prefix(queue) + b"\0"


def row_key(queue: int, key: bytes) -> bytes:
    return prefix(queue) + key


def level_key(queue: int, key: bytes) -> bytes:
    """Where the level of the key's bucket is kept."""
    return rows.OVERRIDE_PREFIX + rows.queue_prefix(queue) + b"\1" + key


def key_of(row: bytes) -> bytes:
    return row[6:]


def is_level(row: bytes) -> bool:
    return row[5] == 1


def check(row: bytes, value: bytes) -> None:
    """Whether a row of this kind can be read."""
    if is_level(row):
        rows.read_bucket(value)
    else:
        read_override(value)


def override_row(terms: Terms) -> bytes:
    head = _HEAD.pack(1, terms.since_ns, terms.expires_ns, terms.weight, terms.rate, terms.burst)
    texts = [text.encode() for text in (terms.who, terms.note)]
    return b"".join([head, *[_U16.pack(len(text)) + text for text in texts], b"\0"])


def read_override(value: bytes) -> Terms:
    version, since_ns, expires_ns, weight, rate, burst = _HEAD.unpack_from(value)
    rows.check_version(version, "override")
    who, at = rows.read_bytes16(value, _HEAD.size)
    note, at = rows.read_bytes16(value, at)
    if value[at:] != b"\0":
        raise rows.CorruptRowError("a stored override has settings this Fila does not know")
    return Terms(weight, rate, burst, expires_ns, since_ns, who.decode(), note.decode())
