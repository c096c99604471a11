"""Reads a journal without Spark: sealed parts and the hot tail as one, in order.

A row may be both hot and sealed for a moment, between a seal and the removal of the hot file; it is
read once, by its (broker, epoch, seq).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from fila.journal import files
from fila.journal.schema import fitted
from fila.journal.versions import check_columns


class Totals(NamedTuple):
    """Events per (queue, event), and what is known to be missing."""

    counts: dict[tuple[str, str], int]
    lost: int
    parts: int
    hot_files: int
    first: str
    last: str


def events(root: Path, seen: dict[tuple[str, int], int] | None = None) -> Iterator[Any]:
    """Tables of events, part by part, oldest first.

    `seen` holds the last number already read of each (broker, epoch): older parts are skipped.
    """
    seen = {} if seen is None else seen
    # The tail is read first: what is sealed while we look is then found among the parts.
    tail = [(files.stream_of(path), files.read_hot(path)) for path in files.hot_files(root)]
    parts = sealed_parts(root, "events")
    sealed = files.Sealed([files.range_of(path.name) for path in parts])
    for path in parts:
        broker, epoch, _, last = files.range_of(path.name)
        if last <= seen.get((broker, epoch), 0):
            continue
        try:
            file = pq.ParquetFile(path)
            check_columns(path.name, file.schema_arrow.names, metadata=file.schema_arrow.metadata)
            table = fitted(file.read(), "events")
        except FileNotFoundError:
            continue  # retired this moment
        seen[broker, epoch] = last
        yield table
    for stream, batches in tail:
        if stream.table != "events":
            continue
        known = seen.get((stream.broker, stream.epoch), 0)
        fresh = sealed.without(stream.broker, stream.epoch, batches)
        fresh = [batch for batch in fresh if batch["seq"][-1].as_py() > known]
        if fresh:
            yield fitted(pa.Table.from_batches(fresh), "events")


def sealed_parts(root: Path, table: str) -> list[Path]:
    """Parts of one table in the order they were written."""
    base = root / table
    return sorted(
        files.parts_of(root, table),
        key=lambda path: (str(path.parent.relative_to(base)), *_name_of(path)[2:]),
    )


def totals(root: Path) -> Totals:
    """Counts over the whole journal."""
    counts: dict[tuple[str, str], int] = {}
    lost = 0
    first = last = ""
    for table in events(root):
        if table.num_rows == 0:
            continue
        grouped = table.group_by(["queue", "event"]).aggregate([("events", "sum")])
        for row in grouped.to_pylist():
            if row["event"] == "journal_gap":
                lost += row["events_sum"]
            else:
                key = (row["queue"], row["event"])
                counts[key] = counts.get(key, 0) + row["events_sum"]
        first = first or table["ts"][0].as_py().isoformat()
        last = table["ts"][-1].as_py().isoformat()
    parts = len(sealed_parts(root, "events"))
    return Totals(counts, lost, parts, len(files.hot_files(root)), first, last)


def _name_of(path: Path) -> tuple[str, str, int, int, int]:
    word, rest = path.stem.split("-", 1)
    broker, epoch, first, last = rest.rsplit("-", 3)
    return word, broker, int(epoch), int(first), int(last)
