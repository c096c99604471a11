"""Both clients' options, releases, lease batches and browsing against a real broker process."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fila import (
    BatchError,
    BatchNotFoundError,
    ClientClosedError,
    FilaClient,
    InvalidConfigValueError,
    MessageNotFoundError,
    NewMessage,
    OverloadedError,
    QueueNotFoundError,
    SnapshotExpiredError,
)
from fila.client.columns import Columns
from tests.client.drivers import SyncDriver
from tests.e2e.process import Broker

ON_ENQUEUE = 'function on_enqueue(msg) return { fairness_key = "hooked", weight = 2 } end'


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with Broker(tmp_path_factory.mktemp("methods") / "data") as broker:
        yield "{}:{}".format(*broker.address)


@pytest.fixture
def client(driver: SyncDriver, address: str) -> Iterator[Any]:
    client = driver.open(address)
    yield client
    driver.call(client, "close")


@pytest.fixture
def queue(driver: SyncDriver, client: Any, request: pytest.FixtureRequest) -> str:
    name = f"{request.node.name[:60]}-{driver.name}"
    driver.call(client, "create_queue", name)
    return name


def all_of(driver: SyncDriver, iterator: Any) -> list[Any]:
    found = []
    while True:
        try:
            found.append(driver.next(iterator))
        except (StopIteration, StopAsyncIteration):
            return found


# --- options


def test_a_delayed_message_comes_when_its_time_has_come(
    driver: SyncDriver, client: Any, queue: str
) -> None:
    started = time.monotonic()
    late = driver.call(client, "enqueue", queue, None, b"late", delay=0.4)
    soon = driver.call(client, "enqueue", queue, None, b"soon")
    consumer = driver.call(client, "consume", queue)
    assert driver.next(consumer).id == soon
    assert driver.next(consumer).id == late
    assert time.monotonic() - started >= 0.4


def test_a_repeated_idempotency_key_gives_the_first_id(
    driver: SyncDriver, client: Any, queue: str
) -> None:
    first = driver.call(client, "enqueue", queue, None, b"1", idempotency_key="order-7")
    again = driver.call(client, "enqueue", queue, {"a": "b"}, b"2", idempotency_key="order-7")
    assert again == first
    assert driver.call(client, "get_stats", queue).depth == 1


def test_many_messages_with_options_are_stored_in_order(
    driver: SyncDriver, client: Any, queue: str
) -> None:
    wanted = [
        NewMessage(queue, b"x" * 500, {"n": str(n)}, idempotency_key=f"k{n % 9000}")
        for n in range(10_000)
    ]
    results = driver.call(client, "enqueue_messages", wanted)
    assert len(results) == 10_000
    assert [one.duplicate for one in results] == [False] * 9_000 + [True] * 1_000
    assert [one.id for one in results[9_000:]] == [one.id for one in results[:1_000]]
    assert driver.call(client, "get_stats", queue).depth == 9_000


def test_a_place_counts_where_no_hook_decides(driver: SyncDriver, client: Any, queue: str) -> None:
    driver.call(
        client,
        "enqueue",
        queue,
        None,
        b"x",
        fairness_key="acme",
        weight=5,
        throttle_keys=["b", "a"],
    )
    message = driver.next(driver.call(client, "consume", queue))
    assert (message.fairness_key, message.weight) == ("acme", 5)
    assert message.throttle_keys == ("a", "b")
    hooked = queue + "-hooked"
    driver.call(client, "create_queue", hooked, on_enqueue=ON_ENQUEUE)
    driver.call(client, "enqueue", hooked, None, b"x", fairness_key="acme", weight=5)
    message = driver.next(driver.call(client, "consume", hooked))
    assert (message.fairness_key, message.weight) == ("hooked", 2)


def test_options_out_of_bounds_cost_only_their_message(
    driver: SyncDriver, client: Any, queue: str
) -> None:
    wanted = [
        NewMessage(queue, b"ok"),
        NewMessage(queue, delay_ms=400 * 86_400_000),
        NewMessage(queue, idempotency_key="k" * 256),
        NewMessage(queue, throttle_keys=["t"] * 17),
        NewMessage("nowhere"),
    ]
    with pytest.raises(BatchError) as caught:
        driver.call(client, "enqueue_messages", wanted)
    kinds = [type(one).__name__ for one in caught.value.results]
    assert kinds == ["Enqueued", *["InvalidConfigValueError"] * 3, "QueueNotFoundError"]
    with pytest.raises(QueueNotFoundError):
        driver.call(client, "enqueue", "nowhere", delay=1)
    with pytest.raises(ValueError, match="delay must not be negative"):
        driver.call(client, "enqueue", queue, delay=-1)


# --- releases


def test_a_released_message_is_delivered_again_without_an_attempt(
    driver: SyncDriver, client: Any, queue: str
) -> None:
    driver.call(client, "enqueue", queue, None, b"x")
    consumer = driver.call(client, "consume", queue)
    message = driver.next(consumer)
    driver.call(client, "release", queue, message.id)
    again = driver.next(consumer)
    assert (again.id, again.attempt_count) == (message.id, 0)
    driver.call(again, "ack")
    with pytest.raises(MessageNotFoundError):
        driver.call(client, "release", queue, message.id)
    with pytest.raises(BatchError):
        driver.call(client, "release_many", queue, [message.id, "no-id"])


def test_closing_one_consumer_hands_back_what_nobody_read(
    driver: SyncDriver, client: Any, queue: str
) -> None:
    ids = [driver.call(client, "enqueue", queue, None, b"x") for _ in range(5)]
    consumer = driver.call(client, "consume", queue)
    assert driver.next(consumer).id == ids[0]
    driver.call(consumer, "close")
    other = driver.open(client._link.exchange.address.__str__())
    second = driver.call(other, "consume", queue)
    found = [driver.next(second) for _ in range(4)]
    assert [message.id for message in found] == ids[1:]
    assert {message.attempt_count for message in found} == {0}
    driver.call(client, "ack", queue, ids[0])  # what was read is still its reader's
    driver.call(other, "close")


# --- lease batches


def test_a_batch_is_the_same_for_everybody_until_it_is_acked(
    driver: SyncDriver, client: Any, queue: str
) -> None:
    ids = [driver.call(client, "enqueue", queue, {"n": str(n)}, b"%d" % n) for n in range(6)]
    batch = driver.call(client, "lease_batch", queue, "s/0", 4, visibility=60)
    assert [message.id for message in batch.messages] == ids[:4]
    assert not batch.again
    assert [message.payload for message in batch.messages] == [b"0", b"1", b"2", b"3"]
    other = driver.open(client._link.exchange.address.__str__())
    same = driver.call(other, "lease_batch", queue, "s/0")
    assert same.again
    assert [message.id for message in same.messages] == ids[:4]
    assert same.expires_at_ms == batch.expires_at_ms
    driver.call(same.messages[0], "ack")
    rest = driver.call(client, "lease_batch", queue, "s/1/shard-2", 10)
    assert rest.message_count == 2
    listed = driver.call(client, "list_batches", queue)
    assert [(one.name, one.messages) for one in listed] == [("s/0", 3), ("s/1/shard-2", 2)]
    assert driver.call(client, "extend_batch", queue, "s", 90, below=5) == (2, 5)
    assert driver.call(client, "ack_batch", queue, "s", below=1) == (1, 3)
    assert driver.call(client, "release_batch", queue, "s/1/shard-2") == (1, 2)
    with pytest.raises(BatchNotFoundError, match="s/0"):
        driver.call(client, "ack_batch", queue, "s/0")
    with pytest.raises(BatchNotFoundError):
        driver.call(client, "lease_batch", queue, "s/0")
    assert driver.call(client, "get_stats", queue).depth == 2
    driver.call(other, "close")


def test_a_batch_may_wait_for_its_first_message(
    driver: SyncDriver, client: Any, queue: str
) -> None:
    assert driver.call(client, "lease_batch", queue, "s/0", 10).messages == []
    started = time.monotonic()
    assert driver.call(client, "lease_batch", queue, "s/0", 10, wait=0.2).message_count == 0
    assert time.monotonic() - started >= 0.2
    waiting = driver.start(client, "lease_batch", queue, "s/0", 10, wait=10)
    time.sleep(0.1)
    other = FilaClient(str(client._link.exchange.address))
    sent = other.enqueue(queue, None, b"x")
    waiting.join(10)
    outcome = waiting.outcome  # type: ignore[attr-defined]
    assert [message.id for message in outcome.messages] == [sent]
    other.close()


def test_a_connection_that_ends_withdraws_its_waiting_requests(
    driver: SyncDriver, client: Any, queue: str
) -> None:
    other = FilaClient(str(client._link.exchange.address))

    def wait() -> None:
        with pytest.raises(ClientClosedError):
            other.lease_batch(queue, "s/0", 10, wait=20)

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.2)
    other._link.close()
    thread.join(10)
    time.sleep(0.1)
    driver.call(client, "enqueue", queue, None, b"x")
    assert driver.call(client, "list_batches", queue) == []
    assert driver.call(client, "get_stats", queue).depth == 1


def test_who_leases_for_others_may_only_count(driver: SyncDriver, client: Any, queue: str) -> None:
    driver.call(client, "enqueue_messages", [NewMessage(queue, b"x")] * 3)
    batch = driver.call(client, "lease_batch", queue, "s/0", 10, count_only=True)
    assert (batch.message_count, batch.messages, batch.arrow) == (3, [], b"")
    assert len(driver.call(client, "lease_batch", queue, "s/0").messages) == 3


def test_a_batch_may_travel_as_arrow(driver: SyncDriver, client: Any, queue: str) -> None:
    wanted = [
        NewMessage(queue, b"%d" % n, {"n": str(n)}, fairness_key="acme", throttle_keys=["t"])
        for n in range(100)
    ]
    ids = [one.id for one in driver.call(client, "enqueue_messages", wanted)]
    batch = driver.call(client, "lease_batch", queue, "s/0", 1_000, arrow=True)
    assert batch.messages == []
    assert batch.message_count == 100
    table = pa.ipc.open_stream(batch.arrow).read_all()
    assert table["message_id"].to_pylist() == ids
    assert table["payload"].to_pylist() == [b"%d" % n for n in range(100)]
    assert table["headers"].to_pylist() == [[("n", str(n))] for n in range(100)]
    assert set(table["fairness_key"].to_pylist()) == {"acme"}
    assert table["throttle_keys"].to_pylist() == [["t"]] * 100
    assert table["attempts"].to_pylist() == [0] * 100
    assert set(table["state"].to_pylist()) == {"leased"}
    assert table["ready_at"].null_count == 100


def test_an_open_batch_says_the_same_as_arrow_and_as_messages(
    driver: SyncDriver, client: Any, queue: str
) -> None:
    driver.call(client, "enqueue_messages", list(_varied(queue)))
    counted = driver.call(client, "lease_batch", queue, "s/0", 1_000, count_only=True)
    again = driver.call(client, "lease_batch", queue, "s/0", count_only=True)
    assert (again.again, again.message_count) == (True, counted.message_count)
    messages = driver.call(client, "lease_batch", queue, "s/0").messages
    table = pa.ipc.open_stream(
        driver.call(client, "lease_batch", queue, "s/0", arrow=True).arrow
    ).read_all()
    assert _as_rows(table) == [_row(one, None, "leased") for one in messages]
    assert len(messages) == counted.message_count == 60


def test_a_batch_out_of_bounds_is_refused(driver: SyncDriver, client: Any, queue: str) -> None:
    with pytest.raises(InvalidConfigValueError, match="max_messages"):
        driver.call(client, "lease_batch", queue, "s/0", 70_000)
    with pytest.raises(InvalidConfigValueError, match="batch name"):
        driver.call(client, "lease_batch", queue, "", 1)
    with pytest.raises(QueueNotFoundError):
        driver.call(client, "lease_batch", "nowhere", "s/0", 1)


# --- browsing


def test_browsing_sees_every_message_in_its_state_and_takes_none(
    driver: SyncDriver, client: Any, queue: str
) -> None:
    driver.call(client, "enqueue", queue, None, b"leased")
    driver.call(client, "lease_batch", queue, "s/0", 1)
    ready = [driver.call(client, "enqueue", queue, {"h": "v"}, b"ready") for _ in range(3)]
    driver.call(client, "enqueue", queue, None, b"delayed", delay=60, fairness_key="acme")
    seen = all_of(driver, driver_iter(driver, client, queue))
    assert sorted((one.state, one.payload) for one in seen) == [
        ("delayed", b"delayed"),
        ("leased", b"leased"),
        *[("ready", b"ready")] * 3,
    ]
    only = all_of(driver, driver_iter(driver, client, queue, states=["ready"], page_messages=2))
    assert [one.id for one in only] == ready
    assert only[0].headers == {"h": "v"}
    (late,) = all_of(driver, driver_iter(driver, client, queue, fairness_key="acme"))
    assert late.state == "delayed"
    assert late.ready_at_ms - late.enqueued_at_ms == 60_000
    stats = driver.call(client, "get_stats", queue)
    assert (stats.depth, stats.in_flight) == (4, 1)


def test_a_page_says_the_same_as_arrow_and_as_messages(
    driver: SyncDriver, client: Any, queue: str
) -> None:
    driver.call(client, "enqueue_messages", list(_varied(queue)))
    driver.call(client, "lease_batch", queue, "s/0", 20, count_only=True)
    snapshot = driver.call(client, "browse_open", queue)
    seen = {}
    for states in ((), ("ready",), ("delayed", "leased"), ("leased",)):
        ((start, end),) = snapshot.ranges
        options: Any = {"states": states, "max_messages": 23}
        seen[states] = 0
        while start:
            place = (snapshot.token, start, end)
            page = driver.call(client, "browse_page", *place, **options)
            twin = driver.call(client, "browse_page", *place, **options, arrow=True)
            found = _as_rows(pa.ipc.open_stream(twin.arrow).read_all())
            assert found == [_row(one, one.ready_at_ms, one.state) for one in page.messages]
            assert (twin.next, twin.message_count) == (page.next, page.message_count)
            seen[states] += page.message_count
            start = page.next
    driver.call(client, "browse_close", snapshot.token)
    assert seen == {(): 90, ("ready",): 40, ("delayed", "leased"): 50, ("leased",): 20}


def test_pages_follow_one_another_to_the_end(driver: SyncDriver, client: Any, queue: str) -> None:
    wanted = [NewMessage(queue, b"x" * 10, fairness_key=f"key{n % 3}") for n in range(9_000)]
    ids = [one.id for one in driver.call(client, "enqueue_messages", wanted)]
    snapshot = driver.call(client, "browse_open", queue, parts=2)
    pages = [
        page
        for start, end in snapshot.ranges
        for page in all_of(driver, client.browse_pages(snapshot.token, start, end))
    ]
    assert sorted(one.id for page in pages for one in page.messages) == sorted(ids)
    assert [len(page.messages) for page in pages[:2]] == [2_048, 2_048]
    driver.call(client, "browse_close", snapshot.token)
    with pytest.raises(SnapshotExpiredError):
        all_of(driver, client.browse_pages(snapshot.token, *snapshot.ranges[0]))


def test_columns_are_stored_and_what_is_refused_is_told(
    driver: SyncDriver, client: Any, queue: str
) -> None:
    parts = [
        Columns(
            queue,
            [b"%d" % n for n in range(first, first + 3_000)],
            idempotency_keys=[b"key %d" % (n // 2) for n in range(first, first + 3_000)],
            fairness_keys=[f"tenant {n % 3}" for n in range(3_000)],
        )
        for first in (0, 3_000)
    ]
    parts.append(Columns([queue, "nowhere"], [b"a", b"b"]))
    stored = all_of(driver, client.enqueue_columns(parts))
    assert sum(one.messages for one in stored) == 6_002
    assert sum(one.duplicates for one in stored) == 3_000
    assert [one.refused for one in stored[:-1]] == [{}] * (len(stored) - 1)
    assert isinstance(stored[-1].refused[1], QueueNotFoundError)
    assert driver.call(client, "get_stats", queue).depth == 3_001


def _varied(queue: str) -> Any:
    for n in range(90):
        yield NewMessage(
            queue,
            b"%d" % n * (n % 5),
            {"n": str(n), "é": "ü" * (n % 3)} if n % 4 == 0 else None,
            delay_ms=60_000 if n % 3 == 0 else 0,
            fairness_key=f"kéy{n % 3}" if n % 7 else "",
            weight=1 + n % 2,
            throttle_keys=["a", "b"][: n % 3],
        )


def _row(message: Any, ready_at_ms: int | None, state: str) -> tuple[Any, ...]:
    return (
        message.id, message.queue, message.payload, dict(message.headers), message.fairness_key,
        message.weight, list(message.throttle_keys), message.attempt_count, message.enqueued_at_ms,
        ready_at_ms, state,
    )  # fmt: skip


def _as_rows(table: Any) -> list[tuple[Any, ...]]:
    for name in ("enqueued_at", "ready_at"):
        at = table.schema.get_field_index(name)
        whole_ms = table[name].cast(pa.int64()).to_pylist()
        whole_ms = [None if us is None else us // 1_000 for us in whole_ms]
        table = table.set_column(at, name, pa.array(whole_ms, pa.int64()))
    return [
        (*list(row.values())[:3], dict(row["headers"]), *list(row.values())[4:])
        for row in table.to_pylist()
    ]


def driver_iter(driver: SyncDriver, client: Any, queue: str, **options: Any) -> Any:
    return client.browse(queue, **options)


def test_a_snapshot_stays_as_it_was_while_the_queue_is_drained(
    driver: SyncDriver, client: Any, queue: str
) -> None:
    wanted = [NewMessage(queue, b"x", fairness_key=f"key{n % 7}") for n in range(3_000)]
    ids = {one.id for one in driver.call(client, "enqueue_messages", wanted)}
    snapshot = driver.call(client, "browse_open", queue, parts=4)
    assert snapshot.messages == 3_000
    assert 3 <= len(snapshot.ranges) <= 5
    driver.call(client, "lease_batch", queue, "s/0", 2_000)
    driver.call(client, "ack_batch", queue, "s/0")
    driver.call(client, "enqueue", queue, None, b"newer")
    seen: list[str] = []
    per_range = []
    for start, end in snapshot.ranges:
        before = len(seen)
        while start:
            page = driver.call(client, "browse_page", snapshot.token, start, end, arrow=True)
            table = pa.ipc.open_stream(page.arrow).read_all()
            assert table.num_rows == page.message_count
            seen += table["message_id"].to_pylist()
            assert set(table["state"].to_pylist()) <= {"ready"}
            start = page.next
        per_range.append(len(seen) - before)
    assert len(seen) == 3_000
    assert set(seen) == ids
    assert max(per_range) < 1_500
    driver.call(client, "browse_close", snapshot.token)
    with pytest.raises(SnapshotExpiredError, match="browse again"):
        driver.call(client, "browse_page", snapshot.token, start, end)


def test_a_snapshot_expires_and_there_are_only_so_many(
    driver: SyncDriver, client: Any, queue: str
) -> None:
    snapshot = driver.call(client, "browse_open", queue, ttl=0.05)
    time.sleep(0.1)
    with pytest.raises(SnapshotExpiredError):
        driver.call(client, "browse_page", snapshot.token, *snapshot.ranges[0])
    opened = [driver.call(client, "browse_open", queue) for _ in range(16)]
    with pytest.raises(OverloadedError, match="16 snapshots are being browsed"):
        driver.call(client, "browse_open", queue)
    for one in opened:
        driver.call(client, "browse_close", one.token)
    with pytest.raises(ValueError, match="state must be"):
        all_of(driver, driver_iter(driver, client, queue, states=["gone"]))
    with pytest.raises(InvalidConfigValueError, match="parts"):
        driver.call(client, "browse_open", queue, parts=0)
    with pytest.raises(QueueNotFoundError):
        driver.call(client, "browse_open", "nowhere")


# --- across a kill


def test_batches_and_keys_survive_a_killed_broker(tmp_path: Path) -> None:
    with Broker(tmp_path / "data") as broker:
        client = FilaClient("{}:{}".format(*broker.address))
        client.create_queue("q")
        ids = [client.enqueue("q", None, b"%d" % n, idempotency_key=f"k{n}") for n in range(20)]
        client.lease_batch("q", "s/0", 8)
        client.lease_batch("q", "s/1", 8)
        client.ack_batch("q", "s", below=1)
        broker.listen = "{}:{}".format(*broker.address)
        broker.restart()
        client = FilaClient("{}:{}".format(*broker.address))
        batch = client.lease_batch("q", "s/1")
        assert [message.id for message in batch.messages] == ids[8:16]
        assert client.enqueue("q", idempotency_key="k3") == ids[3]
        assert client.ack_batch("q", "s", below=2) == (1, 8)
        assert client.get_stats("q").depth == 4
        client.close()


def test_an_api_key_that_cannot_be_sent_is_refused_before_anything_is(address: str) -> None:
    with pytest.raises(ValueError, match="api_key"):
        FilaClient(address, api_key="\ud800")
    with pytest.raises(ValueError, match="api_key"):
        FilaClient(address, api_key="k" * 70_000)
    with pytest.raises(TypeError, match="api_key"):
        FilaClient(address, api_key=b"bytes")  # type: ignore[arg-type]
