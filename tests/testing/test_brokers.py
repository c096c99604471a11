"""The brokers `fila.testing` gives to users' tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fila import ConnectFailedError, FilaClient, UnauthorizedError
from fila.testing import BrokerError, RealBroker, broker, memory_broker
from tests import loops

KINDS = pytest.mark.parametrize("kind", [broker, memory_broker])
HOOK = 'function on_enqueue(msg) return { fairness_key = msg.headers["tenant"] } end'


@KINDS
def test_a_message_goes_through_hook_delivery_and_ack(kind: Any) -> None:
    with kind() as running, running.client() as client:
        client.create_queue("orders", on_enqueue=HOOK)
        sent = client.enqueue("orders", {"tenant": "acme"}, b"hello")
        message = client.consume("orders").receive(timeout=20)
        assert (message.id, message.payload, message.fairness_key) == (sent, b"hello", "acme")
        message.ack()
        assert client.get_stats("orders").in_flight == 0


@KINDS
def test_every_family_of_calls_works(kind: Any) -> None:
    with kind() as running, running.client() as client:
        client.create_queue("q")
        client.enqueue_many([("q", None, str(n)) for n in range(50)])
        assert [one.payload for one in client.browse("q")] == [b"%d" % n for n in range(50)]
        leased = client.lease_batch("q", "job/0", 10, wait=10.0)
        assert [one.payload for one in leased.messages] == [b"%d" % n for n in range(10)]
        assert client.ack_batch("q", "job/0").messages == 10
        client.set_config("throttle.sms", "10,10")
        assert client.list_config("throttle.") == {"throttle.sms": "10,10"}
        assert client.enqueue("q", None, b"x", idempotency_key="k") == client.enqueue(
            "q", None, b"x", idempotency_key="k"
        )
        assert client.purge("q") == 41
        assert client.get_stats("q").depth == 0


@KINDS
def test_an_asynchronous_client_connects_too(kind: Any) -> None:
    async def main(address: str) -> bytes:
        async with await FilaClient.connect(address) as client:
            await client.create_queue("q")
            await client.enqueue("q", None, b"x")
            async for message in client.consume("q"):
                await message.ack()
                return message.payload
        raise AssertionError("no message")

    with kind() as running:
        assert loops.run(main(running.address)) == b"x"


@KINDS
def test_two_at_once_know_nothing_of_each_other(kind: Any) -> None:
    with kind() as one, kind() as other, one.client() as first, other.client() as second:
        assert one.address != other.address
        first.create_queue("q")
        assert [queue.name for queue in second.list_queues()] == []


@KINDS
def test_settings_reach_the_broker_and_the_environment_does_not(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FILA_FIBP__LISTEN_ADDR", "nonsense")
    with kind({"auth.bootstrap_apikey": "sesame"}) as running:
        with pytest.raises(UnauthorizedError):
            running.client(api_key="wrong")
        with running.client(api_key="sesame") as client:
            assert client.list_queues() == []


@KINDS
def test_a_wrong_setting_is_told(kind: Any) -> None:
    with pytest.raises(BrokerError, match="quantum"), kind({"scheduler.quantum": "many"}):
        pass


def test_in_memory_a_misspelt_setting_is_told_with_the_right_one() -> None:
    with pytest.raises(BrokerError, match="quantum"), memory_broker({"scheduler.quantun": 3}):
        pass


def test_in_memory_the_journal_needs_a_directory() -> None:
    with (
        pytest.raises(BrokerError, match=r"journal\.path"),
        memory_broker({"journal.enabled": True}),
    ):
        pass


@KINDS
def test_when_the_block_ends_nobody_listens(kind: Any) -> None:
    with kind() as running, running.client() as client:
        client.create_queue("q")
        waiting = client.consume("q")
        assert waiting.receive(timeout=0.01) is None
    with pytest.raises(ConnectFailedError):
        FilaClient(running.address)


def test_a_fault_inside_the_broker_in_memory_is_raised_at_the_end() -> None:
    running = memory_broker()
    started = running.__enter__()
    fault = RuntimeError("a planted fault")
    started._loop.call_soon_threadsafe(started._stopped, fault)
    started._thread.join(20)
    with pytest.raises(BrokerError, match="a planted fault"):
        running.__exit__(None, None, None)


def test_a_killed_broker_comes_back_where_it_was_with_what_was_stored() -> None:
    with broker() as running, running.client() as client:
        client.create_queue("q")
        client.enqueue("q", None, b"stored")
        before = running.address
        running.restart()
        assert running.address == before
        message = client.consume("q").receive(timeout=20)
        assert message is not None and message.payload == b"stored"


def test_a_directory_of_ones_own_is_kept(tmp_path: Path) -> None:
    with broker(directory=tmp_path) as running, running.client() as client:
        client.create_queue("kept")
    with broker(directory=tmp_path) as running, running.client() as client:
        assert [queue.name for queue in client.list_queues()] == ["kept", "kept.dlq"]


def test_a_temporary_directory_goes_away() -> None:
    with broker() as running:
        home = running.data_dir.parent
        assert running.data_dir.is_dir()
    assert not home.exists()


def test_a_broker_that_cannot_start_says_why(tmp_path: Path) -> None:
    (tmp_path / "fila.toml").write_text("[storage\n")
    with pytest.raises(BrokerError, match="not valid TOML"):
        RealBroker(tmp_path / "data").start()


@pytest.mark.parametrize("kind", ["broker", "memory_broker"])
def test_without_the_server_extra_the_error_says_what_to_install(kind: str, tmp_path: Path) -> None:
    (tmp_path / "rocksdict.py").write_text("raise ModuleNotFoundError('No module named rocksdict')")
    script = f"from fila.testing import {kind}\nwith {kind}(): pass"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": ":".join([str(tmp_path), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "pip install 'fila-broker[server]'" in done.stderr.splitlines()[-1]


def test_importing_it_loads_no_broker() -> None:
    script = (
        "import sys, fila.testing; print([m for m in sys.modules if m.startswith('fila.server')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
