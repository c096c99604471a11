"""Both clients against a real broker process: kills, large messages, programs that just end."""

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvloop

from fila import ConnectionLostError, FilaClient, LuaCompilationError
from fila.testing import RealBroker, broker
from tests.client.drivers import SyncDriver
from tests.e2e.process import wait_until


@pytest.fixture(scope="module")
def server() -> Iterator[RealBroker]:
    with broker({"connection.max_message_size": 64 * 1024 * 1024}) as running:  # the default is 32
        yield running


def test_one_message_at_a_time_is_quick(driver: SyncDriver, server: RealBroker) -> None:
    client = driver.open(server.address)
    queue = f"quick-{driver.name}"
    driver.call(client, "create_queue", queue)
    consumer = driver.call(client, "consume", queue)
    seconds = []
    for _ in range(200):
        started = time.perf_counter()
        driver.call(client, "enqueue", queue, None, b"x" * 1024)
        message = driver.next(consumer)
        seconds.append(time.perf_counter() - started)
        driver.call(message, "ack")
    # 0.2 ms where it was measured. A pause on the path (a delayed TCP ack, a linger, a poll)
    # would be in every round; what else the machine does is not in the quickest.
    assert min(seconds) < 0.005
    driver.call(client, "close")


def test_fifty_mebibytes_go_in_and_come_out(driver: SyncDriver, server: RealBroker) -> None:
    client = driver.open(server.address)
    queue = f"large-{driver.name}"
    driver.call(client, "create_queue", queue)
    payload = os.urandom(1024) * 51_200
    driver.call(client, "enqueue", queue, {"size": "50 MiB"}, payload)
    message = driver.next(driver.call(client, "consume", queue))
    assert message.payload == payload
    driver.call(message, "ack")
    driver.call(client, "close")


def test_a_message_acked_after_its_lease_ran_out_is_not_handed_out_again(
    driver: SyncDriver, server: RealBroker
) -> None:
    client = driver.open(server.address)
    queue = f"late-{driver.name}"
    driver.call(client, "create_queue", queue, visibility_timeout_ms=1_000)
    driver.call(client, "enqueue", queue, None, b"slow")
    consumer = driver.call(client, "consume", queue, prefetch=1)
    message = driver.next(consumer)
    # The second delivery waits in the stream when the first one is acknowledged.
    stream = consumer._stream
    wait_until(lambda: len(stream.buffer) == 1, 30, "the second delivery")
    driver.call(message, "ack")
    assert driver.call(consumer, "receive", 0.2) is None
    assert driver.call(client, "get_stats", queue).in_flight == 0
    driver.call(client, "close")


def test_the_compilers_words_reach_the_caller(driver: SyncDriver, server: RealBroker) -> None:
    client = driver.open(server.address)
    with pytest.raises(LuaCompilationError, match="on_enqueue"):
        driver.call(client, "create_queue", f"lua-{driver.name}", on_enqueue="function (")
    driver.call(client, "close")


def test_another_event_loop_does_as_well(server: RealBroker) -> None:
    async def main() -> None:
        async with await FilaClient.connect(server.address, keepalive_interval=0.05) as client:
            await client.create_queue("uvloop")
            ids = await asyncio.gather(*[client.enqueue("uvloop") for _ in range(200)])
            consumer = client.consume("uvloop")
            received = [await anext(consumer) for _ in range(200)]
            await asyncio.sleep(0.2)
            await client.ack_many("uvloop", [message.id for message in received])
            assert {message.id for message in received} == set(ids)

    uvloop.run(main())


QUICKSTART = {
    "sync": """
from fila import FilaClient
client = FilaClient("{address}")
stream = client.consume("{queue}")
message = next(stream)
client.enqueue_soon("{queue}-out", None, message.payload)
""",
    "async": """
import asyncio
from fila import FilaClient
async def main():
    client = await FilaClient.connect("{address}")
    async for message in client.consume("{queue}"):
        await client.enqueue("{queue}-out", None, message.payload)
        break
asyncio.run(main())
""",
}


@pytest.mark.parametrize("style", ["sync", "async"])
def test_a_program_that_just_ends_gives_back_what_it_held(server: RealBroker, style: str) -> None:
    queue = f"ends-{style}"
    with FilaClient(server.address) as client:
        client.create_queue(queue)
        client.create_queue(queue + "-out")
        client.enqueue_many([(queue, None, b"x")] * 50)
        script = QUICKSTART[style].format(address=server.address, queue=queue)
        started = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert time.monotonic() - started < 10
        deadline = time.monotonic() + 5
        while client.get_stats(queue).in_flight:
            assert time.monotonic() < deadline, "the leases were not handed back"
            time.sleep(0.01)
        assert client.get_stats(queue).depth == 50
        assert client.get_stats(queue + "-out").depth == 1


def test_nothing_acknowledged_is_lost_while_the_broker_is_killed_again_and_again(
    tmp_path: Path,
) -> None:
    server = RealBroker(tmp_path / "data").start()
    options = {"reconnect_pause_min_ms": 5.0, "reconnect_pause_max_ms": 50.0}
    with FilaClient(server.address) as client:
        client.create_queue("q", visibility_timeout_ms=1000)
    stored: set[str] = set()
    seen: set[str] = set()
    finished = threading.Event()

    def produce() -> None:
        with FilaClient(server.address, **options) as client:  # type: ignore[arg-type]
            while not finished.is_set():
                try:
                    stored.add(client.enqueue("q", None, b"payload"))
                except ConnectionLostError:
                    continue  # may or may not be stored: nobody counts on it

    def consume() -> None:
        with (
            FilaClient(server.address, **options) as client,  # type: ignore[arg-type]
            client.consume("q") as stream,
        ):
            quiet_since = time.monotonic()
            while not finished.is_set() or time.monotonic() - quiet_since < 3:
                messages = stream.receive_many(100, timeout=0.2)
                for message in messages:
                    seen.add(message.id)
                    client.ack_soon("q", message.id)
                    quiet_since = time.monotonic()
            try:
                client.flush()
            except ConnectionLostError:
                pass  # acks on their way when the broker was killed: those came once more

    threads = [threading.Thread(target=produce), threading.Thread(target=consume)]
    for thread in threads:
        thread.start()
    for _ in range(3):
        time.sleep(0.5)
        server.kill()
        server.start()
    time.sleep(0.3)
    finished.set()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    server.kill()
    assert len(stored) > 50
    assert stored <= seen
