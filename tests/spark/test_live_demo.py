"""`make pipeline`: one command from nothing to a live page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fila.spark.live_demo import main


@pytest.mark.slow
def test_one_command_shows_a_live_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = tmp_path / "demo"
    assert main(["--no-browser", "--until-shown", "--home", str(home)]) == 0
    assert "The page is live" in capsys.readouterr().out
    found = json.loads((home / "journal" / "_live.json").read_text())
    assert {one["key"] for one in found["fairness"]} >= {"noisy", "gold"}
    assert found["slo"] and found["lag_s"] >= 0  # how much depends on how busy the machine is
