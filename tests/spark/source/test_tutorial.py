"""The tutorial of the documentation, cell by cell in one process, as a notebook runs it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.process import Broker
from tests.spark.source.conftest import address_of

PAGE = Path(__file__).resolve().parents[3] / "docs" / "pipeline" / "tutorial.md"


@pytest.mark.slow
def test_the_tutorial_runs(tmp_path: Path) -> None:
    cells = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(cells) == 5
    with Broker(tmp_path / "data") as broker:
        address = address_of(broker)
        script = "\n".join(cells).replace("FilaClient()", f'FilaClient("{address}")')
        done = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "FILA_ADDR": address},
            cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = done.stdout
    assert "30 orders charged" in said
    shown = re.search(r"^```text\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert shown is not None
    assert shown[1] in said  # the table on the page is the table that comes out
    assert "50 orders charged now" in said
    assert "30 letters archived" in said
