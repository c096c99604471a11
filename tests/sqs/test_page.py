"""What docs/sqs.md shows, in order."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.sqs.broker import SqsBroker

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(bash|python)( \S+)?\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_the_page_works_as_it_is_written(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "sqs.md").read_text()
    with SqsBroker(tmp_path / "broker" / "data") as broker:
        host, port = broker.address
        environ = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "FILA_ADDR": f"{host}:{port}",
            "PYTHONPATH": str(tmp_path),
        }
        shown = []
        for language, name, block in BLOCK.findall(page):
            block = block.replace("http://localhost:9324", broker.url)
            if name:
                (tmp_path / name.strip()).write_text(block)
                continue
            command = ["bash", "-euc"] if language == "bash" else [sys.executable, "-c"]
            done = subprocess.run(
                [*command, block],
                env=environ,
                cwd=tmp_path,
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            assert done.returncode == 0, f"{block}\n{done.stdout}{done.stderr}"
            shown.append(done.stdout)
        assert len(shown) == 3
    served = [line.split()[-1] for line in shown[1].splitlines()]
    assert served == ["noisy", "quiet"] * 5 + ["noisy", "noisy"]
