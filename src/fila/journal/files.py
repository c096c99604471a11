"""Files of the journal: the hot tail, sealed parts, and how one becomes the other.

A sealed part appears by rename, so readers never see half of one. A hot file is a stream of Arrow
batches; what a crash cut off at its end is lost, all that was flushed before it is read.
"""

from __future__ import annotations

import os
import shutil
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fila.journal.schema import fitted

HOT = "_hot"
ROW_GROUP = 1 << 17
_FOLDER = "date=%Y-%m-%d/hour=%H"
_SOUGHT = ("seq", "ts", "event", "queue", "fairness_key", "epoch", "enqueued_at")  # by readers


class Stream(NamedTuple):
    """Whose rows: one run of one broker, one table."""

    table: str
    broker: str
    epoch: int


class HotFile:
    """The open tail of one table. Each `append` is flushed to the operating system."""

    def __init__(self, root: Path, stream: Stream, number: int, schema: Any) -> None:
        folder = root / HOT
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{stream.table}-{stream.broker}-{stream.epoch}-{number:012d}.arrows"
        self.path = folder / name
        self._file = pa.OSFile(str(self.path), "wb")  # writes with the GIL released
        self._writer = pa.ipc.new_stream(self._file, schema)
        self.batches: list[Any] = []
        self.rows = 0
        self.bytes = 0

    def append(self, batch: Any) -> None:
        self._writer.write_batch(batch)
        self.batches.append(batch)
        self.rows += batch.num_rows
        self.bytes += batch.nbytes

    def close(self) -> None:
        self._writer.close()
        self._file.close()


def hot_files(root: Path) -> list[Path]:
    return sorted((root / HOT).glob("*.arrows"))


def stream_of(path: Path) -> Stream:
    """Which stream a hot file belongs to, by its name."""
    table, rest = path.stem.split("-", 1)
    broker, epoch, _ = rest.rsplit("-", 2)
    return Stream(table, broker, int(epoch))


def read_hot(path: Path) -> list[Any]:
    """All whole batches of a hot file, however it ended."""
    batches: list[Any] = []
    try:
        with path.open("rb") as file, pa.ipc.open_stream(file) as reader:
            for batch in reader:
                batches.append(batch)  # noqa: PERF402  what was read before the cut stays
    except (pa.ArrowInvalid, OSError, EOFError):
        pass  # cut off here
    name = stream_of(path).table  # as readers know it: no matter how it was kept
    plain = [fitted(pa.Table.from_batches([one]), name) for one in batches]
    return [batch for one in plain for batch in one.to_batches()]


def seal(root: Path, stream: Stream, batches: list[Any]) -> list[Path]:
    """Write batches as Parquet, one part per hour. Sealing the same rows again changes nothing."""
    if not batches:
        return []
    table = pa.Table.from_batches(batches).unify_dictionaries()
    parts = []
    for hour, rows in _by_hour(table):
        folder = root / stream.table / hour
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / f"part-{stream.broker}-{stream.epoch}-{_range(rows)}.parquet"
        if not target.exists():
            hidden = folder / f".{target.name}.{os.getpid()}.tmp"
            _write(rows, hidden)
            sync(hidden)
            hidden.replace(target)
            sync(folder)
        parts.append(target)
    return parts


class Sealed:
    """Which rows of a table lie in sealed parts, by the names of the parts."""

    def __init__(self, ranges: Iterable[tuple[str, int, int, int]]) -> None:
        """Of (broker, epoch, first, last), in any order."""
        self._firsts: dict[tuple[str, int], list[int]] = {}
        self._lasts: dict[tuple[str, int], list[int]] = {}
        for broker, epoch, first, last in sorted(ranges):
            self._firsts.setdefault((broker, epoch), []).append(first)
            lasts = self._lasts.setdefault((broker, epoch), [])
            lasts.append(max(last, lasts[-1] if lasts else 0))

    def holds(self, broker: str, epoch: int, seq: int) -> bool:
        firsts = self._firsts.get((broker, epoch), [])
        at = bisect_right(firsts, seq) - 1
        return at >= 0 and seq <= self._lasts[broker, epoch][at]

    def without(self, broker: str, epoch: int, batches: list[Any]) -> list[Any]:
        """Hot batches of a run without what is sealed: nearly always a batch is or it is not."""
        fresh = []
        for batch in batches:
            if batch.num_rows == 0:
                continue
            ends = [self.holds(broker, epoch, batch["seq"][at].as_py()) for at in (0, -1)]
            if any(ends):
                seqs = batch["seq"].to_pylist()
                keep = [not all(ends) and not self.holds(broker, epoch, seq) for seq in seqs]
                batch = batch.filter(pa.array(keep))
            if batch.num_rows:
                fresh.append(batch)
        return fresh

    def last(self, broker: str, epoch: int) -> int:
        return self._lasts.get((broker, epoch), [0])[-1]


def sealed_events(root: Path) -> Sealed:
    return Sealed([range_of(path.name) for path in parts_of(root, "events")])


def parts_of(root: Path, table: str) -> list[Path]:
    """The sealed parts of a table: by hour, and by day as brokers before wrote them."""
    return sorted((root / table).rglob("part-*.parquet"))


def range_of(name: str) -> tuple[str, int, int, int]:
    """Broker, epoch, first and last number of a part of events, by its name."""
    broker, epoch, first, last = name.removeprefix("part-").removesuffix(".parquet").rsplit("-", 3)
    return broker, int(epoch), int(first), int(last)


def retire(root: Path, table: str, before_date: str) -> int:
    """Remove the parts of days before `before_date` (YYYY-MM-DD). Returns how many."""
    removed = 0
    for folder in sorted((root / table).glob("date=*")):
        if folder.name[len("date=") :] < before_date:
            removed += sum(1 for path in folder.rglob("*") if path.is_file())
            shutil.rmtree(folder)
    return removed


def _write(rows: Any, path: Path) -> None:
    with pq.ParquetWriter(path, rows.schema, **encoding(rows.schema)) as writer:
        writer.write_table(rows, row_group_size=ROW_GROUP)
        writer.add_key_value_metadata(rows.schema.metadata)


def write_groups(writer: Any, waiting: list[Any], every: bool = False) -> list[Any]:
    """Write whole row groups, and at the end what is left; the rest waits for what follows."""
    rows = sum(one.num_rows for one in waiting)
    if not rows or (rows < ROW_GROUP and not every):
        return waiting
    table = pa.concat_tables(waiting)
    whole = rows if every else rows // ROW_GROUP * ROW_GROUP
    writer.write_table(table.slice(0, whole), row_group_size=ROW_GROUP)
    return [] if every else [table.slice(whole)]


def encoding(schema: Any) -> dict[str, Any]:
    """How columns are written; half the time of the defaults, and a third of the size.

    Words may come as numbers that point at them; a reader of the part sees plain text.
    """
    words = [
        one.name
        for one in schema
        if one.name != "message_id"
        and (pa.types.is_string(one.type) or pa.types.is_dictionary(one.type))
    ]
    numbers = [
        one.name
        for one in schema
        if pa.types.is_integer(one.type) or pa.types.is_timestamp(one.type)
    ]
    return {
        "compression": "zstd",
        "use_dictionary": words,  # of others no value comes twice
        "column_encoding": dict.fromkeys(numbers, "DELTA_BINARY_PACKED"),
        "write_batch_size": 1 << 14,
        "store_schema": False,  # it would tell of the numbers, not of the words
        "write_statistics": [one.name for one in schema if one.name in _SOUGHT],
    }


def _by_hour(table: Any) -> Iterator[tuple[str, Any]]:
    """Rows by the folder of their hour, UTC."""
    time = table["ts"] if "ts" in table.column_names else table["enqueued_at"]
    ends = pc.min_max(time)
    first, last = (ends[name].as_py().strftime(_FOLDER) for name in ("min", "max"))
    if first == last:  # but for the part that goes over the hour
        yield first, table
        return
    hours = pc.strftime(time, _FOLDER)
    for hour in sorted(pc.unique(hours).to_pylist()):
        yield hour, table.filter(pc.equal(hours, hour))


def _range(rows: Any) -> str:
    """First and last number of a part: a name that the same rows always get."""
    if "seq" in rows.column_names:
        return f"{rows['seq'][0].as_py():012d}-{rows['seq'][-1].as_py():012d}"
    time = rows["ts"] if "ts" in rows.column_names else rows["enqueued_at"]
    first, last = time[0].value, time[-1].value
    return f"{first:020d}-{last:020d}-{rows.num_rows}"


def sync(path: Path) -> None:
    """A file, or what is named in a folder, outlives a power cut from here on."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
