"""What docs/celery.md shows, in order: the project, the tasks, a worker, the commands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from fila.testing import RealBroker

from .workers import PATIENCE_S, ROOT, wait_for

BLOCK = re.compile(r"^```(bash|python)( \S+)?\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_the_page_about_celery_works_as_it_is_written(broker: RealBroker, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "celery.md").read_text()
    environ = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "FILA_ADDR": broker.address,
        "PYTHONPATH": str(tmp_path),
        "C_FORCE_ROOT": "1",
    }
    worker = None
    output = tmp_path / "worker.out"
    ran = 0
    try:
        for language, name, block in BLOCK.findall(page):
            if name.strip() == "text":
                continue
            block = block.replace("localhost:5555", broker.address)
            if name:
                (tmp_path / name.strip()).write_text(block)
                continue
            command = ["bash", "-euc"] if language == "bash" else [sys.executable, "-c"]
            done = subprocess.run(
                [*command, block], env=environ, cwd=tmp_path, capture_output=True, text=True,
                timeout=PATIENCE_S, check=False,
            )  # fmt: skip
            assert done.returncode == 0, f"{block}\n{done.stdout}{done.stderr}"
            ran += 1
            if worker is None:  # the tasks are there; now the command the page shows
                (line,) = re.findall(r"^\$ (celery .*)$", page, re.MULTILINE)
                with output.open("wb") as out:
                    worker = subprocess.Popen(
                        [sys.executable, "-m", *line.split()], env=environ, cwd=tmp_path,
                        stdout=out, stderr=subprocess.STDOUT,
                    )  # fmt: skip
        assert ran == 4
        mails = re.compile(r"mail \d+ of (\w+)")
        wait_for(lambda: mails.findall(output.read_text()).count("quiet") == 5)
        order = mails.findall(output.read_text())
        # Two processes, each with a prefetch of four: the quiet one is served at once.
        assert len(order) - order[::-1].index("quiet") <= 100
    finally:
        if worker is not None:
            worker.terminate()
            worker.wait(PATIENCE_S)
