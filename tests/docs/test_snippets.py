"""Runs what the documentation shows: every ```bash and ```python block, in order, page by page.

Blocks marked ```console or ```text are for reading: they start the server or install things.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fila.testing import broker

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(bash|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = [
    "README.md",
    "docs/getting-started.md",
    "docs/concepts.md",
    "docs/sdk-python.md",
    "docs/testing.md",
    "docs/operations/change-a-queue.md",
    "docs/operations/measure.md",
    "docs/operations/override-a-key.md",
    "docs/dramatiq.md",
    *sorted(str(page.relative_to(ROOT)) for page in ROOT.glob("docs/hooks/tutorial-*.md")),
    *sorted(str(page.relative_to(ROOT)) for page in ROOT.glob("docs/tutorials/*.md")),
]


@pytest.mark.parametrize("page", PAGES)
def test_every_snippet_of_the_page_runs(page: str, tmp_path: Path) -> None:
    blocks = BLOCK.findall((ROOT / page).read_text())
    assert blocks, f"{page} shows nothing to run"
    environ = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
    }
    with broker(directory=tmp_path) as server:
        environ["FILA_ADDR"] = server.address
        for language, block in blocks:
            _run(language, block.replace("localhost:5555", server.address), environ, tmp_path)
        assert server.stop() == 0


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
