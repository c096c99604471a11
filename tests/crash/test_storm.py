"""The short form of the storm; `python -m tests.crash --kills 50` is the long one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.storm import Storm


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_kills_under_load_lose_nothing_and_bring_nothing_back(
    tmp_path: Path, durability: str
) -> None:
    storm = Storm(tmp_path, durability, seed=1)
    report = storm.run(kills=10)
    assert report.broken == [], report.text() + "\n" + storm.broker.log()[-4_000:]
    assert report.stored > 1_000
    assert report.acked > 500
    assert report.quiet_stored > 50
    assert report.kept > 500
    assert report.kept_seen > 100
