"""docs/operations/backup.md, carried out while producers send: what was backed up is what another
broker has."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

from fila.testing.process import RealBroker

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "operations" / "backup.md"
BLOCK = re.compile(r"^```bash\n(.*?)^```", re.MULTILINE | re.DOTALL)
HOOK = 'function on_enqueue(msg) return { fairness_key = msg.headers["tenant"] } end'


def test_the_drill_under_load(tmp_path: Path) -> None:
    back_up, check, restore = BLOCK.findall(PAGE.read_text())
    settings = {"backup.target": tmp_path / "backups"}
    sent: list[str] = []
    stop = threading.Event()
    with RealBroker(tmp_path / "data", settings) as running, running.client() as client:
        client.create_queue("orders", on_enqueue=HOOK)
        ids = [client.enqueue("orders", {"tenant": one}, b"job") for one in "abcabc"]
        client.set_config("throttle.provider:mail", "5,10")
        client.create_api_key("billing")
        held = next(client.consume("orders"))  # leased while it is backed up
        assert held.id in ids
        client.create_queue("busy")

        def send() -> None:
            with running.client() as other:
                while not stop.wait(0.01):
                    sent.extend(other.enqueue_many([("busy", {}, b"x" * 500)] * 10))

        sending = threading.Thread(target=send)
        sending.start()
        try:
            while len(sent) < 100:
                stop.wait(0.01)
            before = list(sent)
            told = shell(back_up, tmp_path, running.address)
        finally:
            stop.set()
            sending.join()
        assert "done" in told
    assert " is sound" in shell(check, tmp_path)
    shell(restore, tmp_path)
    with RealBroker(tmp_path / "restored") as running, running.client() as client:
        assert client.get_config("throttle.provider:mail") == "5,10"
        assert [one.name for one in client.list_api_keys()] == ["billing"]
        seen = []
        for message in client.consume("orders"):
            seen.append((message.id, message.fairness_key))
            message.ack()
            if len(seen) == len(ids):
                break
        assert {id for id, _ in seen} == set(ids)
        assert {key for _, key in seen} == set("abc")  # the hook's keys
        assert client.get_stats("orders").depth == 0
        there = {message.id for message in client.browse("busy")}
        assert set(before) <= there
        assert len(there) % 10 == 0, "a batch is in it whole or not at all"


def shell(block: str, place: Path, address: str = "") -> str:
    environ = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "FILA_ADDR": address or "127.0.0.1:1",  # nobody is there
    }
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block],
        cwd=place,
        env=environ,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
