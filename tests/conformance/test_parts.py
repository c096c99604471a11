"""The runner's parts: scenarios are checked when they are loaded, answers compared with care."""

import sys
from pathlib import Path
from typing import Any

import pytest

CONFORMANCE = Path(__file__).resolve().parents[2] / "sdks" / "conformance"
sys.path.insert(0, str(CONFORMANCE))

from harness import report, vectors  # noqa: E402
from harness.adapter import declared  # noqa: E402
from harness.expect import difference  # noqa: E402
from harness.scenario import ScenarioError, load, parse  # noqa: E402

PAGE = CONFORMANCE.parents[1] / "docs" / "sdks" / "conformance.md"


def test_every_scenario_loads_and_has_a_group_and_a_title_of_its_own() -> None:
    scenarios = load()
    assert len(scenarios) >= 36
    assert len({one.title for one in scenarios}) == len(scenarios)
    assert all(one.group != "other" for one in scenarios)


def test_all_six_languages_are_declared() -> None:
    assert sorted(declared()) == ["go", "java", "js", "python", "ruby", "rust"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"title": "x"}, "a title and steps"),
        ({"title": "x", "step": [{"op": "fly"}]}, "step 1: unknown op 'fly'"),
        ({"title": "x", "step": [{"op": "sleep", "msec": 1}]}, "step 1 (sleep): unknown 'msec'"),
        ({"title": "x", "steps": []}, "unknown 'steps'"),
        ({"title": "x", "broker": {"ssl": 1}, "step": [{"op": "kill"}]}, "[broker]: unknown 'ssl'"),
        ({"title": "x", "step": [{"op": "stats", "parallel": True}]}, "parallel needs repeat"),
    ],
)
def test_a_mistake_in_a_scenario_is_told_with_its_place(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ScenarioError) as mistake:
        parse("made-up", given, "made-up.toml")
    assert said in str(mistake.value) and "made-up.toml" in str(mistake.value)


@pytest.mark.parametrize(
    ("expected", "got"),
    [
        ({"a": 1}, {"a": 1, "b": 2}),
        ([{"a": "@any"}], [{"a": None}]),
        ("@uuid", "0190a0b1-c2d3-7e4f-8a5b-6c7d8e9f0a1b"),
        ("@contains:exist", "does not exist"),
        ("@ge:5", 5),
        ("@in:a|b", "b"),
    ],
)
def test_an_answer_that_holds_what_is_expected(expected: Any, got: Any) -> None:
    assert difference(expected, got) == ""


@pytest.mark.parametrize(
    ("expected", "got", "said"),
    [
        ({"a": 1}, {"b": 1}, "answer has no 'a'"),
        ({"a": [1, 2]}, {"a": [1]}, "answer.a should have 2 entries"),
        ({"a": {"b": "x"}}, {"a": {"b": "y"}}, "answer.a.b is 'y', expected 'x'"),
        (1, True, "answer is True, expected 1"),
        (False, 0, "answer is 0, expected False"),
        ("@uuid", "17", "answer is '17'"),
        ("@ge:5", "5", "answer is '5'"),
        ({"a": 1}, None, "not an object"),
    ],
)
def test_a_difference_is_told_with_its_place(expected: Any, got: Any, said: str) -> None:
    assert said in difference(expected, got)


def test_runs_of_bytes_are_written_out() -> None:
    assert vectors.written_out(["00", {"repeat": "61", "count": 3}, "ff"]) == b"\0aaa\xff"


def test_the_page_in_the_docs_is_the_matrix_of_today_and_green() -> None:
    scenarios, languages = load(), list(declared())
    green = [
        report.Result(language, scenario.name, report.PASSED, 1.0, "")
        for language in languages
        for scenario in scenarios
    ]
    # Made by `python sdks/conformance/run.py --markdown`, after a change of scenarios again.
    assert PAGE.read_text(encoding="utf-8") == report.as_markdown(scenarios, green)


def test_the_page_has_a_row_for_every_scenario_and_a_column_for_every_language() -> None:
    scenarios = load(["lifecycle", "order"])
    results = [
        report.Result("python", "lifecycle", report.PASSED, 1.0, ""),
        report.Result("python", "order", report.FAILED, 1.0, "seen.texts differ"),
        report.Result("go", "lifecycle", report.ABSENT, 0.0, "not built"),
    ]
    page = report.as_markdown(scenarios, results)
    assert "| scenario | python | go |" in page
    (first,) = [line for line in page.splitlines() if line.startswith("| **lifecycle**")]
    (second,) = [line for line in page.splitlines() if line.startswith("| **order**")]
    assert first.endswith("| ✓ | – |") and second.endswith("| ✗ | – |")
    text = report.as_text(scenarios, results)
    assert "python order: seen.texts differ" in text
    assert "python: 1 of 2 scenarios passed" in text
    assert text.endswith("1 of 3 passed, 2 languages")
