"""Damaged stores of real brokers: the queue whose rows cannot be read is set apart, the others are
served, and every way to look at the broker says so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fila import FilaClient, FilaError, StorageError
from fila.core import rows
from fila.core.row_batch import PUT, RowBatch
from fila.storage.damaged_files import DAMAGED
from fila.storage.rocks import RocksStore
from fila.testing import BrokerError
from tests.http.visitor import HttpBroker

MESSAGES = 600
BODY = 2_000
SMALL = {
    "storage.write_buffer_bytes": 1 << 20,
    "storage.window_bytes": 1 << 20,
    "storage.block_cache_bytes": 1 << 20,
}


@contextmanager
def running(broker: HttpBroker) -> Iterator[FilaClient]:
    """Started, with a client, and stopped in the end if it still runs."""
    broker.start()
    host, port = broker.endpoint
    try:
        with FilaClient(f"{host}:{port}") as client:
            yield client
            if broker.alive():
                assert broker.stop() == 0
    finally:
        if broker.alive():
            broker.kill()


@pytest.fixture
def broker(tmp_path: Path) -> HttpBroker:
    """A stopped broker with messages in `bad` and `good`, in tables on the disk."""
    made = HttpBroker(tmp_path / "data", settings=SMALL)
    with running(made) as client:
        for name in ("bad", "good"):
            client.create_queue(name, visibility_timeout_ms=600_000)
            bodies = [
                b"%s %05d " % (name.encode(), at) + os.urandom(BODY) for at in range(MESSAGES)
            ]
            for start in range(0, MESSAGES, 100):
                client.enqueue_many([(name, {}, one) for one in bodies[start : start + 100]])
    store = RocksStore(made.data_dir)
    store.flush()
    store.close()
    return made


def damage(data_dir: Path, text: bytes) -> str:
    """Flip a bit of the block in which this text stands; random bodies are not compressed."""
    for file in sorted(data_dir.glob("*.sst")):
        at = file.read_bytes().find(text)
        if at >= 0:
            _flip(file, at + 50)
            return file.name
    raise AssertionError(f"{text!r} stands in no table")


def repaired(data_dir: Path, name: str, text: bytes) -> None:
    file = data_dir / name
    _flip(file, file.read_bytes().find(text) + 50)


def _flip(file: Path, at: int) -> None:
    with file.open("r+b") as opened:
        opened.seek(at)
        (byte,) = opened.read(1)
        opened.seek(at)
        opened.write(bytes([byte ^ 1]))


def take(client: FilaClient, queue: str, count: int) -> int:
    """Consume and ack up to so many messages; how many came."""
    came = 0
    with client.consume(queue) as consumer:
        for message in consumer:
            message.ack()
            came += 1
            if came == count:
                break
    return came


def cli(broker: HttpBroker, *args: str) -> subprocess.CompletedProcess[str]:
    host, port = broker.endpoint
    command = [sys.executable, "-m", "fila.cli.main", "--addr", f"{host}:{port}", *args]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_damage_found_while_delivering_costs_only_its_queue(broker: HttpBroker) -> None:
    file = damage(broker.data_dir, b"bad 00300 ")
    with running(broker) as client:
        with pytest.raises(StorageError, match="quarantined"):
            take(client, "bad", MESSAGES)
        with pytest.raises(StorageError, match=r'queue "bad" is quarantined: .*\.sst'):
            take(client, "bad", MESSAGES)
        # Whatever is asked of it says the same, and what to do.
        for ask in (
            lambda: client.get_stats("bad"),
            lambda: client.pause_queue("bad"),
            lambda: client.create_queue("bad"),
            lambda: client.redrive("bad.dlq"),
            lambda: list(client.browse("bad")),
        ):
            with pytest.raises(StorageError, match=r"quarantined: .*--verify.*--salvage"):
                ask()
        with pytest.raises(StorageError, match=r"the queue is quarantined: .*`fila explain`"):
            client.enqueue("bad", {}, b"x")  # a code has no room for more
        # It is seen everywhere.
        assert {"bad", "bad.dlq", "good"} <= {one.name for one in client.list_queues()}
        explained = client.explain("bad")
        assert file in explained["quarantined"]["cause"]
        assert "--salvage" in explained["sentence"]
        listed = cli(broker, "queue", "list")
        assert 'Queue "bad" is quarantined: cannot read messages: block checksum' in listed.stdout
        as_json = json.loads(cli(broker, "queue", "list", "--json").stdout)["queues"]
        assert [one["quarantined"] is not None for one in as_json] == [True, True, False, False]
        inspected = cli(broker, "queue", "inspect", "bad")
        assert inspected.returncode != 0
        assert "quarantined" in inspected.stderr and "--verify" in inspected.stderr
        assert "quarantined" in cli(broker, "top", "--once").stdout
        visitor = broker.visitor()
        overview = visitor.get("/api/v1/overview").json()
        assert [one["name"] for one in overview["quarantined"]] == ["bad", "bad.dlq"]
        assert overview["totals"]["quarantined"] == 2
        refused = visitor.get("/api/v1/queue?name=bad")
        assert refused.status == 503
        assert refused.json()["error"]["code"] == "StorageError"
        ready = visitor.get("/readyz")
        assert ready.status == 200
        assert b"warning: quarantined queues: 2" in ready.body
        assert b"automatic compaction is off" in ready.body and b"bad" not in ready.body
        metrics = visitor.get("/metrics").body.decode()
        assert 'fila_queue_quarantined{queue="bad"} 1' in metrics
        assert 'fila_queue_depth{queue="bad"}' not in metrics
        assert 'queue \\"bad\\" is quarantined' in broker.log()
        # The others go on, for as long as one likes: no compaction meets the damaged file.
        for _ in range(40):
            client.enqueue_many([("good", {}, os.urandom(BODY)) for _ in range(100)])
        assert take(client, "good", MESSAGES + 4_000) == MESSAGES + 4_000
        assert broker.alive()


def test_the_next_start_knows_and_a_repaired_file_brings_the_queue_back(
    broker: HttpBroker,
) -> None:
    file = damage(broker.data_dir, b"bad 00300 ")
    with running(broker) as client, pytest.raises(StorageError, match="quarantined"):
        take(client, "bad", MESSAGES)
    with running(broker) as client:
        with pytest.raises(StorageError, match="quarantined"):
            client.get_stats("bad")
        assert take(client, "good", MESSAGES) == MESSAGES
    assert (broker.data_dir / DAMAGED).read_text() == f"{file}\n"
    repaired(broker.data_dir, file, b"bad 00300 ")
    with running(broker) as client:
        stats = client.get_stats("bad")
        assert 0 < stats.depth <= MESSAGES
        assert take(client, "bad", stats.depth) == stats.depth
        assert not (broker.data_dir / DAMAGED).exists()


def test_a_quarantined_queue_can_be_deleted_and_made_again(broker: HttpBroker) -> None:
    damage(broker.data_dir, b"bad 00300 ")
    with running(broker) as client:
        with pytest.raises(StorageError, match="quarantined"):
            take(client, "bad", MESSAGES)
        client.delete_queue("bad")
        client.create_queue("bad")
        client.enqueue("bad", {}, b"anew")
        assert take(client, "bad", 1) == 1
        assert [one.name for one in client.list_queues()] == ["bad", "bad.dlq", "good", "good.dlq"]


def test_damage_met_half_way_through_a_command_stops_the_broker_truthfully_and_once(
    broker: HttpBroker,
) -> None:
    """A message that is nacked is read, and cannot be. The process stops, says why, and the next
    start serves the others."""
    with running(broker) as client, client.consume("bad", prefetch=MESSAGES) as consumer:
        held = [next(consumer) for _ in range(MESSAGES)]
        damage(broker.data_dir, b"bad 00300 ")
        (damaged,) = [one for one in held if one.payload.startswith(b"bad 00300 ")]
        rest = take(client, "good", MESSAGES)  # pushes the block out of the cache
        assert rest == MESSAGES
        with pytest.raises(FilaError):
            damaged.nack("try again")
        assert broker.wait(30) == 1
    last = broker.log().splitlines()[-1]
    assert 'stopped over damaged rows of queue "bad": cannot read messages' in last
    assert "The next start sets it apart and serves the others" in last
    assert "nothing acknowledged is lost" not in last
    with running(broker) as client:
        with pytest.raises(StorageError, match="quarantined"):
            client.get_stats("bad")
        client.enqueue("good", {}, b"one more")
        assert take(client, "good", 1) == 1


def test_damaged_leased_messages_are_found_by_the_start(broker: HttpBroker) -> None:
    with running(broker) as client, client.consume("bad", prefetch=MESSAGES) as consumer:
        for _ in range(MESSAGES):
            next(consumer)
        broker.kill()
    damage(broker.data_dir, b"bad 00300 ")
    with running(broker) as client:
        with pytest.raises(StorageError, match="quarantined"):
            client.get_stats("bad")
        assert take(client, "good", MESSAGES) == MESSAGES


def test_rows_that_do_not_parse_quarantine_their_queue_at_the_start(broker: HttpBroker) -> None:
    store = RocksStore(broker.data_dir)
    (queue,) = [
        rows.read_queue(value)
        for key, value in store.scan(rows.QUEUES, b"", b"\xff", 100, 1 << 20)
        if key == b"bad"
    ]
    key = rows.ledger_key(queue.group, 1 << 40)
    store.write([RowBatch(0, 0, [(PUT | rows.STATE, key, b"\x09")])])
    store.close()
    with running(broker) as client:
        with pytest.raises(StorageError, match="quarantined"):
            client.get_stats("bad")
        assert take(client, "good", MESSAGES) == MESSAGES


def test_a_catalogue_that_cannot_be_read_is_named_and_nothing_is_served(broker: HttpBroker) -> None:
    store = RocksStore(broker.data_dir)
    store.write([RowBatch(0, 0, [(PUT | rows.STATE, rows.ledger_key(0, 1 << 40), b"\x09")])])
    store.close()
    with pytest.raises(BrokerError, match=r"the catalogue cannot be read: .*--verify"):
        broker.start()
    assert broker.wait() == 1
    assert "Traceback" not in broker.log()
