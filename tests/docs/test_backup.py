"""docs/operations/backup.md, carried out: what was backed up is what another broker has."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from fila.testing.process import RealBroker

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "operations" / "backup.md"
BLOCK = re.compile(r"^```bash\n(.*?)^```", re.MULTILINE | re.DOTALL)
HOOK = 'function on_enqueue(msg) return { fairness_key = msg.headers["tenant"] } end'


def test_a_restored_broker_has_everything_and_what_came_later_is_gone(tmp_path: Path) -> None:
    with RealBroker(tmp_path / "data") as running, running.client() as client:
        client.create_queue("orders", on_enqueue=HOOK)
        ids = [client.enqueue("orders", {"tenant": one}, b"job") for one in "abcabc"]
        client.set_config("throttle.provider:mail", "5,10")
        client.create_api_key("billing")
        held = next(client.consume("orders"))  # leased when the broker stops
        assert held.id in ids
    back_up, check = BLOCK.findall(PAGE.read_text())
    shell(back_up, tmp_path)
    with RealBroker(tmp_path / "data") as running, running.client() as client:
        client.enqueue("orders", {"tenant": "a"}, b"later")
    assert shell(check, tmp_path).strip().endswith("restored is sound")
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


def shell(block: str, place: Path) -> str:
    environ = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block],
        cwd=place,
        env=environ,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
