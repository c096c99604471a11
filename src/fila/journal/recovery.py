"""What a run that was killed left: its hot rows are sealed, and what it never wrote is counted.

Doing it twice, or being killed in the middle, changes nothing: parts have the names of their rows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from fila.core.effect import Event
from fila.journal import files, mark
from fila.journal.columns import events_batch
from fila.journal.files import Sealed, Stream

GAP = "journal_gap"
KILLED = "killed"


def recover(root: Path) -> list[Path]:
    """Seal what runs that are over left hot, with a gap row for what they lost.

    Returns the new parts. What living runs write is left alone.
    """
    parts: list[Path] = []
    marks = mark.left(root)
    alive = {(one.broker, one.epoch) for one in marks if one.alive}
    dead = {(one.broker, one.epoch): one.path for one in marks if not one.alive}
    sealed = files.sealed_events(root)
    done: list[Path] = list(dead.values())
    by_stream: dict[Stream, list[Any]] = {Stream("events", *run): [] for run in dead}
    for path in files.hot_files(root):
        stream = files.stream_of(path)
        if (stream.broker, stream.epoch) not in alive:
            by_stream.setdefault(stream, []).extend(files.read_hot(path))
            done.append(path)
    for stream, batches in by_stream.items():
        if stream.table == "events":
            batches = sealed.without(stream.broker, stream.epoch, batches)
            left = dead.get((stream.broker, stream.epoch))
            if left is not None and not _told(root, sealed, stream):
                batches += _gap(sealed, stream, batches, mark.read(left))
        parts += files.seal(root, stream, batches)
    for path in done:
        path.unlink()
    return parts


def gap_event(ts_ns: int, since_ns: int, count: int, why: str = "") -> Event:
    return Event(ts_ns, GAP, "", since_ns=since_ns, reason=f"{count} {why}".strip())


def gap_count(event: Event) -> int:
    """How many events a row stands for."""
    return int(event.reason.partition(" ")[0]) if event.event == GAP else 1


def _told(root: Path, sealed: Sealed, stream: Stream) -> bool:
    """Whether a recovery that was killed itself has written the gap row already."""
    last = sealed.last(stream.broker, stream.epoch)
    name = f"part-{stream.broker}-{stream.epoch}-*-{last:012d}.parquet"
    for path in (root / stream.table).rglob(name):
        rows = pq.ParquetFile(path).read(columns=["event", "reason"])
        if (rows["event"][-1].as_py(), rows["reason"][-1].as_py()[-len(KILLED) :]) == (GAP, KILLED):
            return True
    return False


def _gap(sealed: Sealed, stream: Stream, batches: list[Any], reached: mark.Reached) -> list[Any]:
    """A row for events that were taken and are not there."""
    written = sealed.last(stream.broker, stream.epoch)
    since_ns = reached.last_ns
    if batches:
        written = max(written, batches[-1]["seq"][-1].as_py())
        since_ns = min(since_ns, batches[-1]["ts"][-1].value * 1_000)
    lost = reached.rows - written + reached.dropped
    if lost <= 0:
        return []
    event = gap_event(reached.last_ns, since_ns, lost, KILLED)
    return [events_batch([event], written + 1, stream.broker, stream.epoch, [lost])]
