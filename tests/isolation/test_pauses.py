"""The benchmark of pauses itself: what it measures, and that its table is the cases' own.

That no turn is long is tested by counts (`test_steps.py` and `test_long_answers.py` of tests/edges,
tests/core/test_bounds.py): times on a busy machine say little.
"""

from __future__ import annotations

from tests.isolation.__main__ import BEGIN, END, PAGE, PARTS
from tests.isolation.scene import CASES, measure


def test_the_prober_sees_pings_answered_while_a_client_acts() -> None:
    [one] = [case for case in CASES if case.name == "nothing"]
    seen, took_s = measure(one)
    assert seen.pings >= 20 and 0 < seen.held_ms <= seen.worst_ms + 1
    assert took_s < 5


def test_every_case_stands_in_the_table_of_the_docs() -> None:
    table = PAGE.read_text().partition(BEGIN)[2].partition(END)[0]
    missing = [one.name for one in CASES if f"| {one.operation} | {one.size} |" not in table]
    assert missing == [] and {one.acting.__module__ for one in CASES} == {
        part.__name__ for part in PARTS
    }
