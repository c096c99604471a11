"""Which files hold which events: sealed parts by their names, hot files by what is in them.

Owns the look at the disk. One event may lie in several files for a moment (hot and sealed, small
and compacted); that is for the frontier to sort out. Hot files are looked at before the parts:
what is sealed meanwhile is then found there.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import fs

from fila.journal import files, manifest
from fila.journal.manifest import Hour, ShippedPart
from fila.journal.places import ShippedPlace, filesystem
from fila.spark.journal_source.offsets import Run

EVENTS = "events"


class Piece(NamedTuple):
    """A file that holds the events `first` to `last` of one run, without holes."""

    broker: str
    epoch: int
    first: int
    last: int
    path: str
    hot: bool
    changed_s: float  # when it was last written, seconds since 1970

    @property
    def run(self) -> Run:
        return self.broker, self.epoch


def pieces(roots: tuple[str, ...], hot_tail: bool = True) -> list[Piece]:
    """Every file of events in these journals."""
    found: list[Piece] = []
    for root in roots:
        if "://" in root:
            found += _stored(root)  # an object store has no hot tail
            continue
        if hot_tail:
            found += _hot(Path(root))
        found += _sealed(Path(root))
    return found


def hot_batches(path: str) -> Iterator[Any]:
    """The whole batches of a hot file, in order, as it was kept; memory is not touched for them."""
    with pa.memory_map(path) as file:
        try:
            with pa.ipc.open_stream(file) as reader:
                yield from reader
        except (pa.ArrowInvalid, OSError):
            return  # the rest is not written yet, or was cut off


def _hot(root: Path) -> list[Piece]:
    found = []
    for path in files.hot_files(root):
        stream = files.stream_of(path)
        if stream.table != EVENTS:
            continue
        try:
            changed_s = path.stat().st_mtime
            first = last = 0
            for batch in hot_batches(str(path)):
                if batch.num_rows:
                    first = first or batch["seq"][0].as_py()
                    last = batch["seq"][-1].as_py()
        except FileNotFoundError:
            continue  # sealed this moment
        except (OSError, ValueError):
            continue  # nothing is written yet: an empty file cannot be mapped
        if last:
            run = (stream.broker, stream.epoch)
            found.append(Piece(*run, first, last, str(path), True, changed_s))
    return found


def _sealed(root: Path) -> list[Piece]:
    found = []
    for path in (root / EVENTS).rglob("part-*.parquet"):
        try:
            changed_s = path.stat().st_mtime
        except FileNotFoundError:
            continue  # compacted or retired this moment
        found.append(Piece(*files.range_of(path.name), str(path), False, changed_s))
    return found


def _stored(root: str) -> list[Piece]:
    """Of a store its manifest tells; one that has none is listed."""
    place = ShippedPlace(root)
    found = [
        Piece(
            broker, part.epoch, part.first, part.last, f"{place.address}/{part.path}", False,
            part.at_ms / 1e3,
        )
        for broker in manifest.brokers(place)
        for hour in manifest.read_broker(place, broker).hours
        for part in _parts(place, broker, hour)
    ]  # fmt: skip
    return found or _listed(root)


# By store, broker and hour what was read of the manifest: an hour that is over never changes.
_known: dict[tuple[str, str, str], tuple[Hour, list[ShippedPart]]] = {}


def _parts(place: ShippedPlace, broker: str, hour: Hour) -> list[ShippedPart]:
    name = (place.address, broker, hour.hour)
    known = _known.get(name)
    if known is None or known[0] != hour:
        known = _known[name] = (hour, manifest.read_hour(place, broker, hour.hour))
    return known[1]


def _listed(root: str) -> list[Piece]:
    system, path = filesystem(root)
    scheme = root.partition("://")[0]
    selector = fs.FileSelector(f"{path.rstrip('/')}/{EVENTS}", allow_not_found=True, recursive=True)
    found = []
    for info in system.get_file_info(selector):
        name = info.base_name
        if name.startswith("part-") and name.endswith(".parquet"):
            changed_s = (info.mtime_ns or 0) / 1e9
            place = f"{scheme}://{info.path}"
            found.append(Piece(*files.range_of(name), place, False, changed_s))
    return found
