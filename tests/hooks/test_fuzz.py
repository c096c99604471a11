from __future__ import annotations

import logging

import pytest

from tests.hooks.fuzz import load_corpus, run

SCRIPTS = 1_500
GROWN_BYTES_MAX = 24 * 1024 * 1024


@pytest.mark.parametrize("seed", [1, 2])
def test_random_scripts_neither_crash_nor_leak(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "fila.hooks")
    report = run(SCRIPTS, seed, load_corpus())
    assert report.scripts == SCRIPTS
    # Refusing everything would prove nothing.
    assert report.refused < SCRIPTS * 0.6
    assert report.outcomes["decided"] > SCRIPTS * 0.2
    assert min(report.outcomes[kind] for kind in ("errors", "timeouts", "memory")) > 0
    assert report.grown_bytes < GROWN_BYTES_MAX
