"""`bench.compare`: a regression is told from noise, and noise is not called one."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from bench.compare import compare, judge
from bench.system.measure import Metric


def rounds(*values: float, better: Literal["higher", "lower"] = "higher") -> Metric:
    return {"unit": "msg/s", "better": better, "rounds": list(values)}


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        ((100, 101, 102), (80, 81, 82), "worse"),
        ((100, 101, 102), (120, 121, 122), "better"),
        ((100, 101, 102), (97, 98, 99), "same"),  # apart, but too little to matter
        ((80, 100, 120), (70, 85, 110), "same"),  # enough, but the rounds overlap
        ((100, 101), (80, 81), "unsure"),  # too few rounds to know the noise
    ],
)
def test_a_difference_counts_when_it_is_large_and_beyond_the_noise(
    before: tuple[float, ...], after: tuple[float, ...], verdict: str
) -> None:
    assert judge("rate", rounds(*before), rounds(*after), 0.05, False).verdict == verdict


def test_where_lower_is_better_more_is_worse() -> None:
    before, after = (rounds(*three, better="lower") for three in ((1, 1.1, 1.2), (2, 2.1, 2.2)))
    found = judge("p50", before, after, 0.05, False)
    assert found.verdict == "worse"
    assert found.gain == pytest.approx(-10 / 11)


def test_on_a_busy_machine_nothing_is_certain() -> None:
    found = judge("rate", rounds(100, 101, 102), rounds(50, 51, 52), 0.05, True)
    assert found.verdict == "unsure"


def test_rounds_of_several_results_are_taken_together() -> None:
    """A run that overlaps with one of the earlier runs is within their noise."""

    def result(*values: float) -> dict[str, Any]:
        one = {"case": "life", "parameters": {"keys": 10}, "metrics": {"rate": rounds(*values)}}
        return {"measurements": [one]}

    earlier = [result(100, 101, 102), result(80, 81, 82)]
    (alone,) = compare(earlier[:1], [result(81, 82, 83)], 0.05)
    (together,) = compare(earlier, [result(81, 82, 83)], 0.05)
    assert (alone.verdict, together.verdict) == ("worse", "same")
