"""Parts in an object store, a real S3 server: whole, once, named by the manifest, retired."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fila.core.effect import Event
from fila.journal import files, manifest
from fila.journal.columns import events_batch
from fila.journal.files import Stream
from fila.journal.places import ShippedPlace
from fila.journal.shipping import Shipper, ShippingError, alone
from tests.object_store import bucket

HOUR_NS = 3_600 * 10**9
START_NS = 1_790_000_000 * 10**9 // HOUR_NS * HOUR_NS
BROKER = "b-1"  # a name with the separator in it
store = pytest.fixture(scope="module")(bucket)


def sealed(
    root: Path, first: int, count: int, at_ns: int = START_NS, epoch: int = 1, step_ns: int = 10**6
) -> list[Path]:
    """A part of enqueued events as a broker seals them."""
    events = [
        Event(at_ns + n * step_ns, "enqueued", "jobs", fairness_key=b"k") for n in range(count)
    ]
    batch = events_batch(events, first, BROKER, epoch)
    return files.seal(root, Stream("events", BROKER, epoch), [batch])


def shipped(address: str) -> list[tuple[int, int]]:
    """(epoch, seq) of every event in the parts that the manifest names, in its order."""
    place = ShippedPlace(address)
    found = []
    for broker in manifest.brokers(place):
        for hour in manifest.read_broker(place, broker).hours:
            parts = manifest.read_hour(place, broker, hour.hour)
            assert manifest.summed(hour.hour, parts) == hour
            for part in parts:
                assert place.size(part.path) == part.size
                found += rows(address, part.path)
    return found


def rows(address: str, path: str) -> list[tuple[int, int]]:
    from fila.journal.places import filesystem

    system, root = filesystem(address)
    with system.open_input_file(f"{root}/{path}") as source:
        table = pq.ParquetFile(source).read(columns=["epoch", "seq"])
    return list(zip(table["epoch"].to_pylist(), table["seq"].to_pylist(), strict=True))


def objects(address: str) -> set[str]:
    return set(ShippedPlace(address).files("events"))


def test_small_parts_become_large_ones_by_size_and_by_hour(store: str, tmp_path: Path) -> None:
    address = f"{store}/sizes"
    for n in range(10):
        sealed(tmp_path, 1 + 100 * n, 100)
    size = max(path.stat().st_size for path in files.parts_of(tmp_path, "events"))
    sealed(tmp_path, 1_001, 100, START_NS + HOUR_NS - 50 * 10**6)  # over the hour: two parts
    clock = [START_NS / 1e9 + 60]
    shipper = Shipper(tmp_path, address, size * 3, 10**9, clock_s=lambda: clock[0])
    made = shipper.pass_once()
    # By size as long as there is enough; the first hour ends with the second's first part.
    assert sum(one.events for one in made) == 1_050
    assert sum(one.parts for one in made) == 11
    assert {one.parts for one in made[:-1]} <= {3, 4} and len(made) <= 4
    assert shipper.pass_once() == []
    clock[0] += 2 * 3_600  # the second hour is over
    assert [one.events for one in shipper.pass_once()] == [50]
    assert shipped(address) == [(1, seq) for seq in range(1, 1_101)]
    folders = {path.rpartition("/")[0][-7:] for path in objects(address)}
    assert len(folders) == 2 and all(one.startswith("hour=") for one in folders)


def test_what_is_small_is_shipped_when_it_has_waited(store: str, tmp_path: Path) -> None:
    address = f"{store}/waits"
    (part,) = sealed(tmp_path, 1, 10)
    os.utime(part, (START_NS / 1e9, START_NS / 1e9))
    clock = [START_NS / 1e9 + 59]
    shipper = Shipper(tmp_path, address, every_s=60, clock_s=lambda: clock[0])
    assert shipper.pass_once() == []
    clock[0] += 1
    assert [one.events for one in shipper.pass_once()] == [10]


def test_a_shipper_that_dies_anywhere_leaves_nothing_twice_and_nothing_out(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After each write to the store it makes; a new one goes on, also over merged parts."""
    address = f"{store}/deaths"

    class Died(Exception):  # noqa: N818
        pass

    whole = ShippedPlace.whole
    left = 0

    def deadly(self: ShippedPlace, path: str) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise Died
        return whole(self, path)

    monkeypatch.setattr(ShippedPlace, "whole", deadly)
    rng = random.Random(3)
    seq, deaths = 1, 0
    for at in range(12):
        count = rng.randint(1, 40)
        sealed(tmp_path, seq, count, START_NS + at * HOUR_NS // 5)
        seq += count
        left = at % 4
        try:
            Shipper(tmp_path, address).pass_once(every=True)
        except Died:
            deaths += 1
        if at == 6:  # compaction replaced the small parts of the first hour
            _merge_first_hour(tmp_path)
    assert deaths > 5
    left = 1_000
    Shipper(tmp_path, address).pass_once(every=True)
    assert shipped(address) == [(1, n) for n in range(1, seq)]
    # What lies there is what is named: other programs may read the folders.
    place = ShippedPlace(address)
    named = {
        part.path
        for hour in manifest.read_broker(place, BROKER).hours
        for part in manifest.read_hour(place, BROKER, hour.hour)
    }
    assert objects(address) == named


def _merge_first_hour(root: Path) -> None:
    parts = files.parts_of(root, "events")
    first = [path for path in parts if path.parent == parts[0].parent]
    table = pa.concat_tables([pq.ParquetFile(path).read() for path in first])
    low, high = files.range_of(first[0].name)[2], files.range_of(first[-1].name)[3]
    merged = first[0].with_name(f"part-{BROKER}-1-{low:012d}-{high:012d}.parquet")
    pq.write_table(table, merged)
    for path in first:
        if path != merged:
            path.unlink()


def test_a_killed_process_leaves_no_half_part(store: str, tmp_path: Path) -> None:
    address = f"{store}/kills"
    rng = random.Random(5)
    seq = 1
    for at in range(6):
        for _ in range(4):
            sealed(tmp_path, seq, 2_000, START_NS + at * HOUR_NS // 2)
            seq += 2_000
        command = [sys.executable, "-m", "fila.cli.main", "journal", "ship", str(tmp_path),
                   "--to", address, "--once"]  # fmt: skip
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if at < 5:
            time.sleep(rng.uniform(0.2, 1.5))
            process.kill()
        process.communicate()
    assert process.returncode == 0
    assert shipped(address) == [(1, n) for n in range(1, seq)]
    assert len(objects(address)) == sum(
        hour.parts for hour in manifest.read_broker(ShippedPlace(address), BROKER).hours
    )


def test_old_hours_are_forgotten_first_and_removed_after_a_grace(
    store: str, tmp_path: Path
) -> None:
    address = f"{store}/retention"
    sealed(tmp_path, 1, 10)
    sealed(tmp_path, 11, 10, START_NS + 30 * 24 * HOUR_NS)
    clock = [START_NS / 1e9 + 30 * 86_400 + 60]
    shipper = Shipper(tmp_path, address, retention_days=7, clock_s=lambda: clock[0], grace_s=100)
    shipper.pass_once(every=True)
    assert shipped(address) == [(1, n) for n in range(11, 21)]
    assert len(objects(address)) == 2  # somebody may still be reading
    clock[0] += 101
    shipper.pass_once(every=True)
    assert len(objects(address)) == 1
    # What is retired there and still here is not shipped again.
    assert Shipper(tmp_path, address, clock_s=lambda: clock[0]).pass_once(every=True) == []


def test_parts_by_day_of_an_older_broker_are_shipped_as_they_are(
    store: str, tmp_path: Path
) -> None:
    address = f"{store}/days"
    (part,) = sealed(tmp_path, 1, 10)
    part.rename(part.parent.parent / part.name)
    part.parent.rmdir()
    Shipper(tmp_path, address).pass_once(every=True)
    assert shipped(address) == [(1, n) for n in range(1, 11)]
    (path,) = objects(address)
    assert "hour=" not in path


def test_one_shipper_at_a_time(tmp_path: Path) -> None:
    with alone(tmp_path), pytest.raises(ShippingError, match="another"), alone(tmp_path):
        pass


def test_a_directory_is_a_place_as_well(tmp_path: Path) -> None:
    sealed(tmp_path / "journal", 1, 10)
    Shipper(tmp_path / "journal", str(tmp_path / "there")).pass_once(every=True)
    assert shipped(str(tmp_path / "there")) == [(1, n) for n in range(1, 11)]


def test_a_manifest_of_a_newer_fila_is_refused(tmp_path: Path) -> None:
    place = ShippedPlace(str(tmp_path))
    place.write("_manifest/b.json", '{"version": 99}')
    with pytest.raises(manifest.ManifestError, match="newer Fila"):
        manifest.read_broker(place, "b")
