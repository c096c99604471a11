"""Backups of a real broker: under load, incremental, damaged, to a directory and to a store."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fila import FilaClient, FilaError
from fila.backup import manifest, restoring
from fila.backup.places import PlaceError, place_of
from fila.testing.process import RealBroker
from fila.wire.bodies import Backup
from tests import object_store


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "backups"


@pytest.fixture
def broker(tmp_path: Path, target: Path) -> Iterator[RealBroker]:
    with RealBroker(tmp_path / "data", {"backup.target": target}) as running:
        yield running


@pytest.fixture
def bucket() -> Iterator[str]:
    yield from object_store.bucket()


def backed_up(client: FilaClient) -> Backup:
    """A backup, waited for."""
    name = client.create_backup()
    end_s = time.monotonic() + 60
    while time.monotonic() < end_s:
        found = next(one for one in client.list_backups() if one.name == name)
        if found.state != "copying":
            assert found.state == "done", found.error
            return found
        time.sleep(0.05)
    raise AssertionError("the backup did not come to its end")


def drained(directory: Path, queue: str) -> dict[str, bytes]:
    """All messages of a queue, from a broker on that directory."""
    with RealBroker(directory) as running, running.client() as client:
        found: dict[str, bytes] = {}
        depth = client.get_stats(queue).depth
        while len(found) < depth:
            for message in client.consume(queue):
                found[message.id] = message.payload
                message.ack()
                if len(found) == depth:
                    break
        assert client.get_stats(queue).depth == 0
        return found


def test_a_backup_under_load_holds_all_that_was_acknowledged_before(
    tmp_path: Path, broker: RealBroker, target: Path
) -> None:
    acknowledged: list[str] = []
    stop = threading.Event()
    with broker.client() as client, broker.client() as other:
        client.create_queue("orders", max_attempts=3)
        gone = set(client.enqueue_many([("orders", {}, b"gone")] * 50))
        for message in client.consume("orders"):
            message.ack()
            if not (gone := gone - {message.id}):
                break

        def produce() -> None:
            number = 0
            while not stop.is_set():
                batch = [("orders", {"n": str(number)}, b"%08d" % number + b"x" * 1_000)] * 20
                acknowledged.extend(other.enqueue_many(batch))
                time.sleep(0.02)
                number += 1

        producing = threading.Thread(target=produce)
        producing.start()
        try:
            while len(acknowledged) < 200:
                time.sleep(0.01)
            for _ in range(2):
                before = len(acknowledged)
                made = backed_up(client)
                restored = tmp_path / made.name
                found = restoring.restore(place_of(str(target)), made.name, str(restored))
                assert found.report.sound, found.report.findings
                held = drained(restored, "orders")
                assert set(acknowledged[:before]) <= held.keys()
                assert all(len(payload) == 1_008 for payload in held.values())
        finally:
            stop.set()
            producing.join()
        # Each batch is in it whole or not at all: what is there beyond is in whole batches.
        assert len(held) % 20 == 0


def test_what_has_not_changed_is_not_copied_again(
    tmp_path: Path, broker: RealBroker, target: Path
) -> None:
    with broker.client() as client:
        client.create_queue("orders")
        client.enqueue_many([("orders", {}, os.urandom(3_000)) for _ in range(3_000)])
    broker.stop()
    broker.start()  # what the log held is in a table file now
    with broker.client() as client:
        first = backed_up(client)
        assert first.bytes >= first.new_bytes > 9_000_000
        ids = client.enqueue_many([("orders", {}, b"one more")])
        second = backed_up(client)
        assert second.bytes > 9_000_000
        assert second.new_bytes < 200_000
        assert [one.name for one in client.list_backups()] == [first.name, second.name]
    for name in (first.name, second.name):
        found = restoring.check(place_of(str(target)), name)
        assert found.report.sound
    restoring.restore(place_of(str(target)), second.name, str(tmp_path / "again"))
    assert set(ids) <= drained(tmp_path / "again", "orders").keys()


def test_old_backups_go_with_what_only_they_had(tmp_path: Path, target: Path) -> None:
    settings = {"backup.target": target, "backup.keep": 2}
    with RealBroker(tmp_path / "data", settings) as running, running.client() as client:
        client.create_queue("orders")
        names = []
        for number in range(4):
            client.enqueue("orders", {}, b"%d" % number)
            names.append(backed_up(client).name)
        assert [one.name for one in client.list_backups()] == names[-2:]
    place = place_of(str(target))
    assert manifest.names(place) == names[-2:]
    needed = {one.sha256 for name in names[-2:] for one in manifest.read(place, name).files}
    assert set(place.files(manifest.FILES)) == needed
    assert restoring.check(place, "latest").manifest.name == names[-1]


def test_a_damaged_or_missing_file_is_found(
    tmp_path: Path, broker: RealBroker, target: Path
) -> None:
    with broker.client() as client:
        client.create_queue("orders")
        client.enqueue("orders", {}, b"x" * 10_000)
        made = backed_up(client)
    place = place_of(str(target))
    for file in manifest.read(place, made.name).files:
        path = target / "files" / file.sha256
        sound = path.read_bytes()
        if not sound:
            continue
        path.write_bytes(sound[:-1] + bytes([sound[-1] ^ 1]))
        with pytest.raises(PlaceError, match="another checksum"):
            restoring.check(place, made.name)
        path.unlink()
        with pytest.raises(PlaceError, match="is not whole"):
            restoring.restore(place, made.name, str(tmp_path / "half"))
        path.write_bytes(sound)
        # The half that is there is never taken for a store.
        if (tmp_path / "half").exists():
            with pytest.raises(PlaceError, match="was not finished"):
                restoring.restore(place, made.name, str(tmp_path / "half"))
            refused = run("fila-server", "--verify", "--data-dir", str(tmp_path / "half"))
            assert refused.returncode != 0
            shutil.rmtree(tmp_path / "half")
    listed = target / "backups" / f"{made.name}.json"
    told = listed.read_text()
    listed.write_text(told.replace(made.name, made.name.replace("-", "_"), 1))
    with pytest.raises(PlaceError, match="damaged"):
        restoring.check(place, made.name)


def test_only_an_empty_directory_is_restored_into(
    tmp_path: Path, broker: RealBroker, target: Path
) -> None:
    with broker.client() as client:
        client.create_queue("orders")
        backed_up(client)
    place = place_of(str(target))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    with pytest.raises(PlaceError, match="is not empty"):
        restoring.restore(place, "latest", str(tmp_path / "full"))
    assert [one.name for one in (tmp_path / "full").iterdir()] == ["mine.txt"]
    with pytest.raises(PlaceError, match="no name of a backup"):
        restoring.restore(place, "../backups/x", str(tmp_path / "new"))
    with pytest.raises(PlaceError, match="there is no backup"):
        restoring.restore(place, "2001-01-01T00-00-00Z", str(tmp_path / "new"))
    assert not (tmp_path / "new").exists()


def test_kill_9_over_a_backup_leaves_neither_half_a_backup_nor_the_image(
    tmp_path: Path, target: Path
) -> None:
    settings = {"backup.target": target, "backup.bytes_per_second": 200_000}
    running = RealBroker(tmp_path / "data", settings)
    running.start()
    with running.client() as client:
        client.create_queue("orders")
        ids = client.enqueue_many([("orders", {}, os.urandom(1_000)) for _ in range(2_000)])
        client.create_backup()
        with pytest.raises(FilaError, match="still being copied"):
            client.create_backup()
        time.sleep(1)
        assert (tmp_path / "data" / "image").exists()
    running.kill()
    running.settings["backup.bytes_per_second"] = 0
    running.start()
    assert not (tmp_path / "data" / "image").exists()
    with running.client() as client:
        assert list(client.list_backups()) == []
        backed_up(client)
    running.stop()
    assert restoring.check(place_of(str(target)), "latest").report.sound
    restoring.restore(place_of(str(target)), "latest", str(tmp_path / "again"))
    assert drained(tmp_path / "again", "orders").keys() == set(ids)


def test_an_object_store_holds_backups_too(tmp_path: Path, bucket: str) -> None:
    settings = {"backup.target": f"{bucket}/fila"}
    with RealBroker(tmp_path / "data", settings) as running, running.client() as client:
        client.create_queue("orders")
        ids = client.enqueue_many([("orders", {}, os.urandom(1_000)) for _ in range(500)])
        first = backed_up(client)
        second = backed_up(client)
        assert second.new_bytes < first.new_bytes
        told = run("fila", "backup", "list", "--addr", running.address)
        assert first.name in told.stdout and bucket in told.stdout
    told = run("fila", "backup", "list", "--from", f"{bucket}/fila", "--json")
    assert [one["name"] for one in json.loads(told.stdout)["backups"]] == [first.name, second.name]
    told = run("fila", "backup", "verify", "--from", f"{bucket}/fila", "--json")
    assert json.loads(told.stdout)["sound"] is True
    into = str(tmp_path / "restored")
    told = run("fila", "backup", "restore", "--from", f"{bucket}/fila", "--into", into)
    assert told.returncode == 0, told.stderr
    assert drained(tmp_path / "restored", "orders").keys() == set(ids)


def test_the_command_line_creates_checks_and_restores(
    tmp_path: Path, broker: RealBroker, target: Path
) -> None:
    with broker.client() as client:
        client.create_queue("orders")
        client.enqueue("orders", {}, b"job")
    made = run("fila", "backup", "create", "--json", "--addr", broker.address)
    name = json.loads(made.stdout)["backup"]
    assert json.loads(made.stdout)["state"] == "done"
    sound = run("fila", "backup", "verify", name, "--from", str(target))
    assert f"Backup {name} is sound" in sound.stdout
    into = str(tmp_path / "restored")
    back = run("fila", "backup", "restore", "--from", str(target), "--into", into)
    assert "Start the broker with" in back.stdout
    again = run("fila", "backup", "restore", "--from", str(target), "--into", into)
    assert again.returncode == 1 and "is not empty" in again.stderr
    nowhere = run("fila", "backup", "verify", "--from", str(tmp_path / "nowhere"))
    assert nowhere.returncode == 1 and "there is no backup" in nowhere.stderr
    file = next(one for one in (target / "files").iterdir() if one.stat().st_size > 100)
    file.write_bytes(b"?" + file.read_bytes()[1:])
    bad = run("fila", "backup", "verify", name, "--from", str(target))
    assert bad.returncode == 1 and "damaged" in bad.stderr


def test_without_a_place_the_broker_says_what_is_missing(tmp_path: Path) -> None:
    with RealBroker(tmp_path / "data") as running, running.client() as client:
        with pytest.raises(FilaError, match=r"set `target` under \[backup\]"):
            client.create_backup()
        assert (client.list_backups().target, list(client.list_backups())) == ("", [])
        told = run("fila", "backup", "list", "--addr", running.address)
        assert "no place for backups" in told.stdout


def test_a_place_that_cannot_be_written_to_is_told_and_hurts_nobody(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    settings = {"backup.target": tmp_path / "file" / "backups"}
    with RealBroker(tmp_path / "data", settings) as running, running.client() as client:
        client.create_queue("orders")
        told = run("fila", "backup", "create", "--addr", running.address)
        assert told.returncode == 1 and "Not a directory" in told.stderr
        assert client.enqueue("orders", {}, b"goes on")


def run(program: str, *words: str) -> subprocess.CompletedProcess[str]:
    path = Path(sys.executable).parent / program
    return subprocess.run([path, *words], capture_output=True, text=True, timeout=120)


def test_names_grow_with_time_and_a_clock_that_was_set_back_is_told(
    broker: RealBroker, target: Path
) -> None:
    assert manifest.name_at(1_700_000_000_007) == "2023-11-14T22-13-20.007Z"
    (target / "backups").mkdir(parents=True)
    (target / "backups" / "2999-01-01T00-00-00.000Z.json").write_text("{}")
    told = run("fila", "backup", "create", "--addr", broker.address)
    assert told.returncode == 1 and "was the clock set back" in told.stderr
    (target / "backups" / "2999-01-01T00-00-00.000Z.json").unlink()
    with broker.client() as client:
        client.create_queue("orders")
        assert backed_up(client).name < backed_up(client).name
