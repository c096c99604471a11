"""A shipped journal as a source: read by its manifest, from a real S3 server, without listing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from fila.core.effect import Event
from fila.journal import manifest
from fila.journal.places import ShippedPlace
from fila.journal.shipping import Shipper
from fila.spark.events import events_schema, list_parts
from fila.spark.journal_source.inventory import pieces
from fila.spark.journal_source.options import parse
from fila.spark.journal_source.stream_reader import JournalStreamReader
from tests.object_store import bucket
from tests.spark.conftest import BROKER, write

store = pytest.fixture(scope="module")(bucket)
START_NS = 1_790_000_000 * 10**9
HOUR_NS = 3_600 * 10**9


def sealed(root: Path, first: int, count: int, at_ns: int) -> None:
    times = [at_ns + number * 10**6 for number in range(count)]
    write(root, [Event(ns, "acked", "jobs", fairness_key=b"k") for ns in times], first_seq=first)


def stream(reader: JournalStreamReader, start: dict[str, Any]) -> tuple[list[int], dict[str, Any]]:
    """The numbers a batch from `start` has, and where it ends."""
    end = reader.latestOffset(start)
    found: list[int] = []
    for share in reader.partitions(start, end):
        for batch in reader.read(share):
            found += batch.column("seq").to_pylist()
            assert pc.all(pc.equal(batch.column("broker"), BROKER)).as_py()
    return found, end


def test_a_stream_goes_on_over_what_is_shipped(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"{store}/stream"
    hours: list[str] = []
    read_hour = manifest.read_hour

    def noted(place: Any, broker: str, hour: str) -> Any:
        hours.append(hour)
        return read_hour(place, broker, hour)

    sealed(tmp_path, 1, 300, START_NS)
    sealed(tmp_path, 301, 300, START_NS + HOUR_NS)
    Shipper(tmp_path, address).pass_once(every=True)
    monkeypatch.setattr(manifest, "read_hour", noted)
    # An object that no manifest names is not read.
    ShippedPlace(address).write("events/date=2026-09-21/hour=14/part-test-1-7-9.parquet", "half")
    reader = JournalStreamReader(parse({"path": address}), events_schema())
    first, end = stream(reader, reader.initialOffset())
    assert first == list(range(1, 601))
    assert len(set(hours)) == len(hours) == 2  # each hour of the manifest was read once

    sealed(tmp_path, 601, 50, START_NS + 2 * HOUR_NS)
    monkeypatch.undo()
    Shipper(tmp_path, address).pass_once(every=True)
    hours.clear()
    monkeypatch.setattr(manifest, "read_hour", noted)
    second, _ = stream(reader, end)
    assert second == list(range(601, 651))
    assert len(hours) == 1  # the new one: what is over never changes
    assert [part.path for part in list_parts(None, address)] == sorted(  # type: ignore[arg-type]
        piece.path for piece in pieces((address,))
    )


def test_a_store_without_a_manifest_is_listed(store: str, tmp_path: Path) -> None:
    sealed(tmp_path, 1, 10, START_NS)
    (part,) = (tmp_path / "events").rglob("part-*.parquet")
    place = ShippedPlace(f"{store}/listed")
    with place.whole(str(part.relative_to(tmp_path))) as target:
        target.write(part.read_bytes())
    (piece,) = pieces((f"{store}/listed",))
    assert (piece.first, piece.last) == (1, 10)
