"""docs/operations/second-week.md, followed from top to bottom: each step does what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from fila.testing.process import RealBroker

PAGE = Path(__file__).resolve().parents[2] / "docs" / "operations" / "second-week.md"
BLOCK = re.compile(r"^```(bash|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_a_newcomer_gets_through_the_second_week(tmp_path: Path) -> None:
    settings = {"backup.target": tmp_path / "backups"}
    found = BLOCK.findall(PAGE.read_text())
    create, hook, cap, worker, why, redrive, mended, backup = found
    with RealBroker(tmp_path / "data", settings) as running, running.client() as client:

        def followed(block: tuple[str, str]) -> str:
            return run(*block, tmp_path, running.address)

        assert "unknown" in followed(create)
        said = followed(hook)
        assert "tenant was misspelt" in said
        keys = {one.key: one.pending for one in client.get_stats("invoices").fairness_keys}
        assert keys == {"unknown": 2, "acme": 1}
        assert "imports last year" in followed(cap)
        followed(worker)
        assert client.get_stats("invoices.dlq").depth == 2
        said = followed(why)
        assert "could not convert string to float" in said
        assert "2 messages" in followed(redrive)
        # The present hook judged them anew.
        keys = {one.key: one.pending for one in client.get_stats("invoices").fairness_keys}
        assert keys["acme"] == 2
        assert sorted(followed(mended).split()) == ["12.5", "3.2"]
        assert client.get_stats("invoices.dlq").depth == 0
        assert " is sound" in followed(backup)
    with RealBroker(tmp_path / "restored") as running, running.client() as client:
        assert next(client.consume("invoices")).payload == b'{"total": "9.90"}'
        assert "tenant" in client.get_queue("invoices").settings["on_enqueue"]


def run(language: str, block: str, place: Path, address: str) -> str:
    words = ["bash", "-euo", "pipefail", "-c"] if language == "bash" else [sys.executable, "-c"]
    environ = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "FILA_ADDR": address,
    }
    done = subprocess.run(
        [*words, block.replace("localhost:5555", address)],
        cwd=place,
        env=environ,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, f"{block}\n{done.stdout}{done.stderr}"
    return done.stdout
