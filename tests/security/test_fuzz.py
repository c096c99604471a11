"""The frame fuzzer of tests/e2e against listeners that ask for keys, certificates or both.

The short form; `python -m tests.e2e.fuzz --listener all` is the long one.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.fuzz import Fuzz
from tests.e2e.listeners import LISTENERS


@pytest.mark.parametrize("name", [name for name in LISTENERS if name != "plain"])
def test_hostile_frames_hurt_nobody_behind_the_lock(tmp_path: Path, name: str) -> None:
    listener = LISTENERS[name]
    with listener.broker(tmp_path / "data") as broker:
        report = Fuzz(broker, 11, listener.attacker()).run(frames=3_000)
        assert report.broken == [], report.text()
        assert report.healthy_rounds > 5
        if name == "doorstep":
            assert report.answers["Unauthorized"] > 20
            assert report.answers["results"] == 0
        else:
            assert report.answers["results"] > 20
        assert broker.stop() == 0
