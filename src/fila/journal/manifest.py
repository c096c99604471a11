"""The manifest of a shipped journal: which parts there are, so that no reader has to list a store.

Owns its form. One small file for each broker and hour, and one for each broker that names the
hours; one shipper writes them, the hour's before the broker's:

    _manifest/<broker>.json                               hours, with the numbers they hold
    _manifest/date=2026-01-31/hour=07/<broker>.json       the parts of one hour

What the manifest does not name is not there. A reader keeps the hours it has read: an entry of an
hour says how many parts it has, and changes with every part that comes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from fila.journal.places import ShippedPlace

FOLDER: Final = "_manifest"
VERSION: Final = 1
EPOCHS_MAX: Final = 64  # runs whose end is kept: more than a journal's days have


class ManifestError(Exception):
    """A manifest that cannot be used; the message says why."""


class ShippedPart(NamedTuple):
    """A part of a shipped journal: events `first` to `last` of a run, without holes."""

    epoch: int
    first: int
    last: int
    path: str  # below the journal's root
    size: int
    at_ms: int  # when it was shipped


class Hour(NamedTuple):
    """What a broker's manifest says of an hour, such as `date=2026-01-31/hour=07`; of parts by day,
    as brokers before wrote them, of a day."""

    hour: str
    parts: int
    events: int
    size: int
    runs: dict[int, tuple[int, int]]  # by epoch the first and the last number


class Retired(NamedTuple):
    """An hour that readers are no longer told of; its files go when nobody reads them any more."""

    hour: str
    at_ms: int


class BrokerManifest(NamedTuple):
    broker: str
    hours: list[Hour]
    retired: list[Retired]
    reached: dict[int, int]  # by epoch the last number shipped, of hours that are gone as well

    def last(self, epoch: int) -> int:
        """The last number shipped of a run."""
        return self.reached.get(epoch, 0)

    def with_hour(self, hour: str, parts: list[ShippedPart]) -> BrokerManifest:
        """The manifest when an hour has these parts."""
        hours = [one for one in self.hours if one.hour != hour]
        reached = dict(self.reached)
        if parts:
            hours.append(summed(hour, parts))
        for part in parts:
            reached[part.epoch] = max(part.last, reached.get(part.epoch, 0))
        newest = sorted(reached)[-EPOCHS_MAX:]
        known = {epoch: reached[epoch] for epoch in newest}
        return self._replace(hours=sorted(hours), reached=known)


def brokers(place: ShippedPlace) -> list[str]:
    """The brokers that have a manifest there."""
    found = [path.removeprefix(f"{FOLDER}/") for path in place.files_beside(FOLDER)]
    return sorted(name.removesuffix(".json") for name in found if name.endswith(".json"))


def read_broker(place: ShippedPlace, broker: str) -> BrokerManifest:
    """What is shipped of a broker; nothing, if nothing is."""
    document = _document(place, f"{FOLDER}/{broker}.json")
    if document is None:
        return BrokerManifest(broker, [], [], {})
    hours = [
        Hour(name, parts, events, size, {int(epoch): (a, b) for epoch, (a, b) in runs.items()})
        for name, parts, events, size, runs in document["hours"]
    ]
    retired = [Retired(*one) for one in document["retired"]]
    reached = {int(epoch): last for epoch, last in document["reached"].items()}
    return BrokerManifest(broker, hours, retired, reached)


def read_hour(place: ShippedPlace, broker: str, hour: str) -> list[ShippedPart]:
    document = _document(place, f"{FOLDER}/{hour}/{broker}.json")
    return [] if document is None else [ShippedPart(*one) for one in document["parts"]]


def write_broker(place: ShippedPlace, manifest: BrokerManifest) -> None:
    document = {
        "version": VERSION,
        "hours": sorted(manifest.hours),
        "retired": sorted(manifest.retired),
        "reached": manifest.reached,
    }
    place.write(f"{FOLDER}/{manifest.broker}.json", json.dumps(document))


def write_hour(place: ShippedPlace, broker: str, hour: str, parts: list[ShippedPart]) -> None:
    document = {"version": VERSION, "parts": sorted(parts)}
    place.write(f"{FOLDER}/{hour}/{broker}.json", json.dumps(document))


def hour_path(hour: str, broker: str) -> str:
    return f"{FOLDER}/{hour}/{broker}.json"


def summed(hour: str, parts: Iterable[ShippedPart]) -> Hour:
    """What a broker's manifest says of an hour with these parts."""
    known = list(parts)
    runs: dict[int, tuple[int, int]] = {}
    for part in known:
        first, last = runs.get(part.epoch, (part.first, part.last))
        runs[part.epoch] = min(first, part.first), max(last, part.last)
    events = sum(part.last - part.first + 1 for part in known)
    return Hour(hour, len(known), events, sum(part.size for part in known), runs)


def _document(place: ShippedPlace, path: str) -> dict[str, Any] | None:
    text = place.read(path)
    if text is None:
        return None
    found: dict[str, Any] = json.loads(text)
    if found["version"] > VERSION:
        raise ManifestError(
            f"{place.address}/{path} was written by a newer Fila (version {found['version']}, this "
            f"one knows {VERSION}): upgrade"
        )
    return found
