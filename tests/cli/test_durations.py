from __future__ import annotations

import argparse

import pytest

from fila.cli.durations import milliseconds, seconds


@pytest.mark.parametrize(
    ("text", "ms"),
    [("0", 0), ("1500", 1500), ("500ms", 500), ("30s", 30_000), ("1.5s", 1_500), ("2m", 120_000)],
)
def test_a_duration_has_a_unit_or_counts_milliseconds(text: str, ms: int) -> None:
    assert milliseconds()(text) == ms


@pytest.mark.parametrize("text", ["", "soon", "-1", "1w", "0.5", "99ms", "s"])
def test_what_is_no_duration_or_too_short_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="at least 100 ms"):
        milliseconds(100)(text)


def test_times_of_jobs_count_seconds() -> None:
    assert (seconds("5"), seconds("15m"), seconds("7d")) == (5.0, 900.0, 604_800.0)
    with pytest.raises(argparse.ArgumentTypeError):
        seconds("0")
