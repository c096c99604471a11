"""Dramatiq on a real broker: with workers of the test's process, and with the real program."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dramatiq
import pytest
from dramatiq.brokers.stub import StubBroker
from dramatiq.errors import QueueJoinTimeout, QueueNotFound

from fila import FilaClient, testing
from fila.dramatiq import FairShare, FilaBroker
from fila.testing import RealBroker

from .workers import PATIENCE_S, ROOT, wait_for


@pytest.fixture
def shop() -> Iterator[FilaBroker]:
    """A broker of Dramatiq's on a broker of ours that has nothing in it."""
    with testing.broker() as running:
        found = FilaBroker(running.address)
        yield found
        found.close()


def stats(shop: FilaBroker, queue: str) -> tuple[int, int]:
    now = shop.client.get_stats(queue)
    return now.depth, now.in_flight


def test_actors_run_and_their_messages_are_gone(shop):
    ran: list[Any] = []

    @dramatiq.actor(broker=shop)
    def note(*args: Any, **kwargs: Any) -> None:
        ran.append((args, kwargs))

    note.send(1, b=2)
    note.send("ü")
    worker = dramatiq.Worker(shop, worker_threads=2, worker_timeout=100)
    worker.start()
    shop.join("default", timeout=60_000)
    worker.stop()

    assert sorted(ran, key=str) == sorted([((1,), {"b": 2}), (("ü",), {})], key=str)


def test_a_delay_is_kept_by_the_broker_and_no_delay_queue_is_made(shop):
    @dramatiq.actor(broker=shop)
    def later() -> None: ...

    later.send_with_options(delay=3_600_000)
    worker = dramatiq.Worker(shop, worker_threads=1, worker_timeout=100)
    worker.start()
    with pytest.raises(QueueJoinTimeout):
        shop.join("default", timeout=500)
    worker.stop()

    assert stats(shop, "default") == (1, 0)
    assert [one.name for one in shop.client.list_queues()] == ["default", "default.dlq"]
    shop.flush_all()
    assert stats(shop, "default") == (0, 0)


def test_failures_are_retried_and_end_as_a_dead_letter(shop):
    ran: list[str] = []

    @dramatiq.actor(broker=shop, max_retries=2, min_backoff=50, max_backoff=100)
    def fail(name: str) -> None:
        ran.append(name)
        raise RuntimeError(name)

    fail.send("x")
    worker = dramatiq.Worker(shop, worker_threads=1, worker_timeout=100)
    worker.start()
    wait_for(lambda: "default.dlq" in [one.name for one in shop.client.list_queues()])
    wait_for(lambda: stats(shop, "default.dlq")[0] == 1)
    shop.join("default", timeout=60_000)
    worker.stop()

    assert ran == ["x"] * 3


def test_what_a_worker_did_not_begin_goes_back(shop):
    shop.declare_queue("default")
    message = dramatiq.Message("default", "nobody", (), {}, {})
    for _ in range(3):
        shop.enqueue(message.copy())
    consumer = shop.consume("default", prefetch=2, timeout=10_000)
    taken = [next(consumer), next(consumer)]

    consumer.requeue(taken)
    consumer.close()

    wait_for(lambda: stats(shop, "default") == (3, 0))


def test_what_is_no_message_is_a_dead_letter(shop):
    shop.declare_queue("default")
    shop.flush("default")
    shop.client.enqueue("default", None, b"not JSON")
    consumer = shop.consume("default", timeout=10_000)

    assert next(consumer) is None
    wait_for(lambda: stats(shop, "default") == (0, 0))
    assert stats(shop, "default.dlq") == (1, 0)
    consumer.close()


def test_options_say_whose_message_it_is(shop):
    @dramatiq.actor(
        broker=shop, fila_key="tenant", fila_weight=3, fila_throttle=["mail", "to:{tenant}"]
    )
    def send(tenant: str) -> None: ...

    send.send("acme")
    send.send_with_options(args=("acme",), fila_key="other")
    with shop.client.consume("default") as consumer:
        found = [consumer.receive(timeout=60) for _ in range(2)]

    assert [one.fairness_key for one in found if one] == ["acme", "other"]
    assert found[0] is not None
    assert (found[0].weight, found[0].throttle_keys) == (3, ("mail", "to:acme"))


def test_an_option_that_names_no_argument_is_told_where_it_is_sent(shop):
    @dramatiq.actor(broker=shop, fila_key="tenent")
    def send(tenant: str) -> None: ...

    with pytest.raises(TypeError, match=r"send: fila_key asks for 'tenent'.*there are: tenant"):
        send.send("acme")


def test_a_queue_nobody_declared_is_not_found(shop):
    with pytest.raises(QueueNotFound):
        shop.consume("nobody")


def test_dramatiqs_own_double_knows_the_options():
    stub = StubBroker(middleware=[FairShare()])

    @dramatiq.actor(broker=stub, fila_key="tenant")
    def send(tenant: str) -> None: ...

    send.send("acme")
    assert stub.queues["default"].qsize() == 1


def test_the_real_program_is_fair_and_stops_cleanly(broker: RealBroker, tmp_path: Path):
    environ = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PROJECT_BROKER": broker.address,
        "PROJECT_LOG": str(tmp_path / "log"),
    }
    code = (
        "from tests.drop_in.actors import *\n"
        "for at in range(300): send.send('noisy', at)\n"
        "for at in range(10): send.send('quiet', at)"
    )
    subprocess.run([sys.executable, "-c", code], env=environ, check=True, timeout=PATIENCE_S)
    log = tmp_path / "log"
    with (tmp_path / "out").open("wb") as out:
        program = subprocess.Popen(
            [sys.executable, "-m", "dramatiq", "tests.drop_in.actors",
             "--processes", "1", "--threads", "1"],
            env=environ, cwd=tmp_path, stdout=out, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        wait_for(lambda: log.exists() and len(log.read_text().splitlines()) == 310)
        tenants = [line.split()[0] for line in log.read_text().splitlines()]
        assert len(tenants) - tenants[::-1].index("quiet") <= 40  # oldest first: 310
        program.send_signal(signal.SIGTERM)
        assert program.wait(PATIENCE_S) == 0
    finally:
        if program.poll() is None:
            program.kill()
    with FilaClient(broker.address) as client:
        now = client.get_stats("default")
        assert (now.depth, now.in_flight) == (0, 0)
