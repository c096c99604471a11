"""A full disk: a clear stop, and nothing acknowledged is missing once there is space again."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fila.wire import errors
from tests.e2e.peer import Closed
from tests.e2e.process import Broker

MiB = 1 << 20
Make = Callable[..., Broker]


@contextmanager
def small_disk(path: Path, size_mib: int) -> Iterator[Callable[[int], None]]:
    """A tmpfs of its own on `path`; gives a function that changes its size."""
    path.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size_mib}m", "fila-test", str(path)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip("mounting a small disk needs root; the file-size form of this test runs anyway")

    def grow(to_mib: int) -> None:
        subprocess.run(["mount", "-o", f"remount,size={to_mib}m", str(path)], check=True)

    try:
        yield grow
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


def fill_until_it_stops(broker: Broker) -> tuple[list[str], set[str]]:
    """Enqueue, consume and ack until the broker is gone: ids acknowledged, and ids acked."""
    stored: list[str] = []
    acked: set[str] = set()
    peer = broker.peer()
    peer.create_queue("orders")
    stream = peer.consume("orders", prefetch=20)
    try:
        for round in range(10_000):
            stored += peer.enqueue("orders", *[os.urandom(16 * 1024)] * 8)
            if round % 4 == 0:
                id = peer.take_one(stream).id
                if peer.ack("orders", id) == [errors.OK]:
                    acked.add(id)
    except (Closed, OSError):
        return stored, acked
    raise AssertionError("the disk never filled up")


def assert_clear_stop(broker: Broker) -> None:
    assert broker.wait() == 1
    last = broker.log().splitlines()[-1]
    assert last.startswith("fila-server: cannot ")
    assert str(broker.data_dir) in last
    assert last.endswith("stopped, nothing acknowledged is lost")
    assert "Traceback" not in broker.log()


def assert_nothing_is_missing(broker: Broker, stored: list[str], acked: set[str]) -> None:
    expected = [id for id in stored if id not in acked]
    with broker.peer() as peer:
        # Leased ones can be acknowledged by their id, pending ones cannot.
        codes = peer.ack("orders", *expected)
        finished = {id for id, code in zip(expected, codes, strict=True) if code == errors.OK}
        pending = peer.stats("orders").depth
        stream = peer.consume("orders")
        for _ in range(pending):
            message = peer.take_one(stream)
            finished.add(message.id)
            peer.post_ack("orders", [message.id])
        assert set(expected) <= finished
        assert len(finished) - len(expected) <= 8  # one request may be stored without an answer
        assert not finished & acked


@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_a_full_disk_stops_the_broker_and_loses_nothing(tmp_path: Path, durability: str) -> None:
    with small_disk(tmp_path / "disk", 48) as grow:
        settings = {
            "storage.durability": durability,
            "storage.write_buffer_bytes": 4 * MiB,
        }
        broker = Broker(tmp_path / "disk" / "data", settings)
        broker.log_file = tmp_path / "log"  # there is room for what it has to say
        with broker:
            stored, acked = fill_until_it_stops(broker)
            assert len(stored) > 500
            assert_clear_stop(broker)
            grow(256)
            broker.start()
            assert_nothing_is_missing(broker, stored, acked)


@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_a_log_that_cannot_grow_stops_the_broker_and_loses_nothing(
    own_broker: Make, durability: str
) -> None:
    """No root needed: the kernel refuses to let any file of the process grow beyond 6 MiB."""
    broker = own_broker(
        settings={"storage.durability": durability},
        limits={"FSIZE": 6 * MiB},
    )
    with broker:
        stored, acked = fill_until_it_stops(broker)
        assert len(stored) > 200
        assert_clear_stop(broker)
        broker.limits = {}
        broker.start()
        assert_nothing_is_missing(broker, stored, acked)


def test_a_disk_that_is_full_from_the_start_is_one_clear_line(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1) as grow:
        (tmp_path / "disk" / "ballast").write_bytes(bytes(MiB - 8 * 4096))
        broker = Broker(tmp_path / "disk" / "data")
        broker.log_file = tmp_path / "log"
        broker.port_file = tmp_path / "port"
        broker.launch()
        assert broker.wait(20) == 1
        [line] = broker.log().splitlines()
        assert line.startswith("fila-server: cannot open the store in ")
        (tmp_path / "disk" / "ballast").unlink()
        grow(128)
        with broker.start() as started, started.peer() as peer:
            peer.create_queue("orders")
