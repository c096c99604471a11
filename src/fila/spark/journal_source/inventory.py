"""Which files hold which events: sealed parts by their names, hot files by what is in them.

Owns the look at the disk. One event may lie in several files for a moment (hot and sealed, small
and compacted); that is for the frontier to sort out. Hot files are looked at before the parts:
what is sealed meanwhile is then found there.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pyarrow as pa
from pyarrow import fs

from fila.journal import files
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


def filesystem(place: str) -> tuple[Any, str]:
    """The file system of an address, and the path in it."""
    if "://" not in place:
        return fs.LocalFileSystem(), place
    scheme = urlsplit(place).scheme
    if scheme in ("s3a", "s3n"):  # Hadoop's names
        place = "s3" + place[len(scheme) :]
    return fs.FileSystem.from_uri(place)  # type: ignore[no-any-return]


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
