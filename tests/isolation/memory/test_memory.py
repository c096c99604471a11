"""A fifth of the worst abuses: each took more than the ceiling before it was bounded."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.isolation.memory.abuses import ABUSES
from tests.isolation.memory.victim import CEILING_BYTES, measure

SHORT = ("again", "again-grpc", "one-batch", "empty-items", "at-once", "strangers")


@pytest.mark.parametrize("name", SHORT)
def test_an_abuse_stays_below_the_ceiling_and_hurts_nobody(tmp_path: Path, name: str) -> None:
    [abuse] = [one for one in ABUSES if one.name == name]
    found = measure(tmp_path, abuse.run, abuse.settings, scale=0.2)
    assert found.fault == ""
    assert found.rounds > 0
    assert found.peak_bytes < CEILING_BYTES, f"{found.peak_bytes / 1e6:.0f} MB"
