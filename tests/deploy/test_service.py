"""What `deploy/` ships for machines with systemd: the unit is closed, the file is valid."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

DEPLOY = Path(__file__).parents[2] / "deploy"
UNIT = DEPLOY / "fila.service"
EXPOSURE_MAX = 2.0  # of 10, as systemd counts; 9.6 is a service without any of it


def analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed")
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60)


def test_systemd_understands_every_line_of_the_unit(tmp_path: Path) -> None:
    here = tmp_path / UNIT.name
    here.write_text(UNIT.read_text().replace("/usr/local/bin/fila-server", "/bin/true"))
    told = analyze("verify", "--man=no", str(here))
    assert "fila.service" not in told.stderr + told.stdout


def test_the_unit_leaves_little_open() -> None:
    told = analyze("security", "--offline=true", str(UNIT))
    (exposure,) = re.findall(r"Overall exposure level for fila\.service: ([\d.]+)", told.stdout)
    assert float(exposure) <= EXPOSURE_MAX


def test_the_example_configuration_is_valid_and_every_line_in_comments_too(tmp_path: Path) -> None:
    text = (DEPLOY / "fila.toml").read_text()
    everything = re.sub(r"^# (\[?[a-z_]+\]?( = .*)?)$", r"\1", text, flags=re.MULTILINE)
    assert "\n[tls]\n" in everything and "\n[auth]\n" in everything
    for name, content in (("as-it-is", text), ("everything", everything)):
        path = tmp_path / f"{name}.toml"
        path.write_text(content)
        told = subprocess.run(
            [sys.executable, "-m", "fila.server.main", "--config", str(path), "--check-config"],
            env={key: value for key, value in os.environ.items() if not key.startswith("FILA_")},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (told.returncode, told.stderr) == (0, "")
