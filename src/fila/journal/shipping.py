"""Ships sealed parts to an object store: few large ones, a manifest, and retention there.

Owns what is shipped when. Parts of one run and hour that follow one another become one of about
`part_bytes`; what does not come to that much is shipped when its oldest part has waited for
`every_s`, or its hour is over. Each step may be the last: a part is put whole under its own name,
then the hour's manifest, then the broker's. A shipper that begins goes on behind what the manifest
names, and removes what an earlier one put and did not come to name. One shipper for each broker.
"""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow.parquet as pq

from fila.journal import files, manifest
from fila.journal.manifest import BrokerManifest, Retired, ShippedPart
from fila.journal.places import ShippedPlace

PART_BYTES: Final = 128 * 1024 * 1024
EVERY_S: Final = 60.0
GRACE_S: Final = 3_600.0
_LOCK: Final = "_ship.lock"
_EVENTS: Final = "events"


class ShippingError(Exception):
    """It cannot be shipped so; the message says what to do."""


class Sealed(NamedTuple):
    """A sealed part of this machine."""

    broker: str
    epoch: int
    first: int
    last: int
    hour: str
    path: Path
    size: int
    changed_s: float


class Made(NamedTuple):
    """A part that was shipped."""

    path: str
    parts: int
    events: int
    size: int


class Shipper:
    def __init__(
        self,
        journal: Path,
        address: str,
        part_bytes: int = PART_BYTES,
        every_s: float = EVERY_S,
        retention_days: int = 0,
        clock_s: Callable[[], float] = time.time,
        grace_s: float = GRACE_S,
    ) -> None:
        self._journal = journal
        self._place = ShippedPlace(address)
        self._part_bytes = part_bytes
        self._every_s = every_s
        self._retention_days = retention_days
        self._clock_s = clock_s
        self._grace_s = grace_s
        self._known: dict[str, BrokerManifest] = {}

    def pass_once(self, every: bool = False) -> list[Made]:
        """Ship what is due, with `every` all there is; then let go what is too old."""
        waiting: dict[str, list[Sealed]] = {}
        for part in sealed(self._journal):
            waiting.setdefault(part.broker, []).append(part)
        made = []
        for broker, parts in sorted(waiting.items()):
            shipped = self._manifest(broker)
            left = [part for part in parts if part.last > shipped.last(part.epoch)]
            for group in self._groups(left, every):
                made.append(self._ship(group))
        for broker in sorted(self._known):
            self._retire(broker)
        return made

    def _manifest(self, broker: str) -> BrokerManifest:
        """What is shipped. When it is looked at first, an hour that was named and the broker's
        manifest does not have is taken over, and what nobody names is removed."""
        if broker not in self._known:
            found = manifest.read_broker(self._place, broker)
            local = {part.hour for part in sealed(self._journal) if part.broker == broker}
            # Only hours that this machine still has can have been left in the middle.
            for hour in sorted(local | {one.hour for one in found.hours[-1:]}):
                if any(one.hour == hour for one in found.retired):
                    continue
                parts = manifest.read_hour(self._place, broker, hour)
                if parts:
                    found = self._changed(found, found.with_hour(hour, parts))
                named = {part.path for part in parts}
                for path in self._place.files(f"{_EVENTS}/{hour}"):
                    name = path.rpartition("/")[2]
                    if files.range_of(name)[0] == broker and path not in named:
                        self._place.remove(path)
            self._known[broker] = found
        return self._known[broker]

    def _changed(self, before: BrokerManifest, after: BrokerManifest) -> BrokerManifest:
        if after != before:
            manifest.write_broker(self._place, after)
        return after

    def _groups(self, parts: list[Sealed], every: bool) -> Iterator[list[Sealed]]:
        """Parts to be shipped as one, in order of a run; a run's later hours end its earlier."""
        group: list[Sealed] = []
        size = 0
        for part in sorted(parts, key=lambda one: (one.epoch, one.first, -one.last)):
            if group and part.last <= group[-1].last and part.epoch == group[-1].epoch:
                continue  # a merged part holds it
            follows = group and (part.epoch, part.hour, part.first) == (
                group[0].epoch, group[0].hour, group[-1].last + 1,
            )  # fmt: skip
            if group and (not follows or size >= self._part_bytes):
                yield group
                group, size = [], 0
            group.append(part)
            size += part.size
        if group and (every or size >= self._part_bytes or self._due(group)):
            yield group

    def _due(self, group: list[Sealed]) -> bool:
        now_s = self._clock_s()
        over = _end_of(group[0].hour) <= now_s
        return over or now_s - min(part.changed_s for part in group) >= self._every_s

    def _ship(self, group: list[Sealed]) -> Made:
        one, last = group[0], group[-1]
        shipped = self._manifest(one.broker)
        # What was shipped of a part that has been merged with others since is left out.
        first = max(one.first, shipped.last(one.epoch) + 1)
        name = f"part-{one.broker}-{one.epoch}-{first:012d}-{last.last:012d}.parquet"
        path = f"{_EVENTS}/{one.hour}/{name}"
        events = 0
        with self._place.whole(path) as stream:
            events = _written(stream, [part.path for part in group], first)
        size = self._place.size(path)
        if events != last.last - first + 1 or size is None:
            self._place.remove(path)
            raise ShippingError(
                f"{name}: {events:,} events were shipped instead of {last.last - first + 1:,}; is "
                "somebody changing the journal's parts?"
            )
        parts = manifest.read_hour(self._place, one.broker, one.hour)
        at_ms = round(self._clock_s() * 1_000)
        parts.append(ShippedPart(one.epoch, first, last.last, path, size, at_ms))
        manifest.write_hour(self._place, one.broker, one.hour, parts)
        self._known[one.broker] = self._changed(shipped, shipped.with_hour(one.hour, parts))
        return Made(path, len(group), events, size)

    def _retire(self, broker: str) -> None:
        """Hours beyond the retention: readers are told first, files go after a grace."""
        found = self._known[broker]
        now_ms = round(self._clock_s() * 1_000)
        if self._retention_days:
            until = datetime.fromtimestamp(now_ms / 1e3, UTC) - timedelta(days=self._retention_days)
            old = [one for one in found.hours if _end_of(one.hour) <= until.timestamp()]
            if old:
                kept = [one for one in found.hours if one not in old]
                retired = [*found.retired, *[Retired(one.hour, now_ms) for one in old]]
                changed = found._replace(hours=kept, retired=sorted(retired))
                found = self._changed(found, changed)
        gone = [one for one in found.retired if one.at_ms + self._grace_s * 1e3 <= now_ms]
        for one in gone:
            for part in manifest.read_hour(self._place, broker, one.hour):
                self._place.remove(part.path)
            self._place.remove(manifest.hour_path(one.hour, broker))
        left = [one for one in found.retired if one not in gone]
        self._known[broker] = self._changed(found, found._replace(retired=left))


@contextmanager
def alone(journal: Path) -> Iterator[None]:
    """One shipper at a time for a journal."""
    with (journal / _LOCK).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ShippingError(f"another `fila journal ship` ships {journal}") from None
        yield


def sealed(journal: Path) -> list[Sealed]:
    """The sealed parts of a journal."""
    found = []
    base = journal / _EVENTS
    for path in files.parts_of(journal, _EVENTS):
        try:
            status = path.stat()
        except FileNotFoundError:
            continue  # retired or merged this moment
        hour = str(path.parent.relative_to(base))
        found.append(
            Sealed(*files.range_of(path.name), hour, path, status.st_size, status.st_mtime)
        )
    return found


def _end_of(hour: str) -> float:
    """When an hour, or a day, is over, in seconds since 1970."""
    by_hour = "/hour=" in hour
    form = "date=%Y-%m-%d/hour=%H" if by_hour else "date=%Y-%m-%d"
    begins = datetime.strptime(hour, form).replace(tzinfo=UTC)
    return begins.timestamp() + (3_600 if by_hour else 86_400)


def _written(stream: Any, parts: list[Path], first: int) -> int:
    """The rows of parts from a number on as one Parquet file; how many there were."""
    schema = pq.ParquetFile(parts[0]).schema_arrow
    events = 0
    waiting: list[Any] = []
    with pq.ParquetWriter(stream, schema, **files.encoding(schema)) as writer:
        for path in parts:
            table = pq.ParquetFile(path).read().cast(schema)
            low = table["seq"][0].as_py()
            table = table.slice(max(0, first - low))
            events += table.num_rows
            waiting = files.write_groups(writer, [*waiting, table])
        files.write_groups(writer, waiting, every=True)
        writer.add_key_value_metadata(schema.metadata or {})
    return events
