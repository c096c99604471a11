"""Runs what the documentation shows: every ```bash and ```python block, in order, page by page.

Blocks marked ```console or ```text are for reading: they start the server or install things.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(bash|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = [
    "README.md",
    "docs/getting-started.md",
    "docs/concepts.md",
    "docs/sdk-python.md",
    *sorted(str(page.relative_to(ROOT)) for page in ROOT.glob("docs/hooks/tutorial-*.md")),
    *sorted(str(page.relative_to(ROOT)) for page in ROOT.glob("docs/tutorials/*.md")),
]


@pytest.mark.parametrize("page", PAGES)
def test_every_snippet_of_the_page_runs(page: str, tmp_path: Path) -> None:
    blocks = BLOCK.findall((ROOT / page).read_text())
    assert blocks, f"{page} shows nothing to run"
    port_file = tmp_path / "port"
    environ = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "FILA_PORT_FILE": str(port_file),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
    }
    command = [sys.executable, "-m", "fila.server.main", "--listen", "127.0.0.1:0"]
    server = subprocess.Popen(
        [*command, "--data-dir", str(tmp_path / "data")], env=environ, cwd=tmp_path
    )
    try:
        address = _wait_for(port_file)
        environ["FILA_ADDR"] = address
        for language, block in blocks:
            _run(language, block.replace("localhost:5555", address), environ, tmp_path)
    finally:
        server.terminate()
        assert server.wait(10) == 0


def _run(language: str, block: str, environ: dict[str, str], folder: Path) -> None:
    command = ["bash", "-euo", "pipefail", "-c"] if language == "bash" else [sys.executable, "-c"]
    done = subprocess.run(
        [*command, block],
        env=environ,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, f"{block}\n--- said\n{done.stdout}{done.stderr}"


def _wait_for(port_file: Path) -> str:
    deadline = time.monotonic() + 15
    while time.monotonic() < deadline:
        if port_file.exists():
            return port_file.read_text()
        time.sleep(0.02)
    raise AssertionError("the server did not start")
