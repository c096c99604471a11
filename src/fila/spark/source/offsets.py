"""Where a stream stands, as arithmetic: `{"s": stream, "n": number of the next batch}`.

Owns the form of the offset and the names of lease batches made from it. The batch between the
offsets n and n + 1 is leased in pieces named `stream/n/0`, `stream/n/1`, …: one for each task.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from fila.spark.source.options import SourceError


class Offset(NamedTuple):
    stream: str
    number: int

    def as_json(self) -> dict[str, Any]:
        return {"s": self.stream, "n": self.number}

    def after(self) -> Offset:
        return Offset(self.stream, self.number + 1)


def from_json(value: dict[str, Any]) -> Offset:
    try:
        return Offset(str(value["s"]), int(value["n"]))
    except (KeyError, TypeError, ValueError):
        raise SourceError(
            f"the checkpoint holds {value!r}, which is no offset of a Fila stream; "
            "give this query a checkpoint of its own"
        ) from None


def piece_name(offset: Offset, piece: int) -> str:
    """A piece of the batch that begins at this offset."""
    return f"{offset.stream}/{offset.number}/{piece}"


def number_of(name: str, stream: str) -> int | None:
    """The number of a batch of this stream; None for another's."""
    own, _, rest = name.partition("/")
    digits = rest.partition("/")[0]
    return int(digits) if own == stream and digits.isdigit() else None


def piece_of(name: str) -> int:
    """For order: pieces are read as they were leased."""
    last = name.rpartition("/")[2]
    return int(last) if last.isdigit() else 0
