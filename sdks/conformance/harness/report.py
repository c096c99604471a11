"""What came of a run: the matrix language × scenario as text, JSON or Markdown.

Owns the wording. Knows nothing of how a scenario is run.
"""

import json
from typing import Any, NamedTuple

from harness.scenario import Scenario

PASSED = "passed"
FAILED = "failed"
ABSENT = "absent"  # the adapter cannot be built or started


class Result(NamedTuple):
    language: str
    scenario: str
    outcome: str
    seconds: float
    detail: str


def as_text(scenarios: list[Scenario], results: list[Result]) -> str:
    languages, found = _table(results)
    width = max(len(scenario.name) for scenario in scenarios)
    lines = [" " * width + "  " + "  ".join(f"{language:>7}" for language in languages)]
    for scenario in scenarios:
        cells = []
        for language in languages:
            result = found.get((language, scenario.name))
            if result is None:
                cells.append("      -")
            elif result.outcome == PASSED:
                cells.append(f"{result.seconds:5.1f} s")
            else:
                cells.append(f"{result.outcome:>7}")
        lines.append(f"{scenario.name:<{width}}  " + "  ".join(cells))
    lines.append("")
    lines += [
        f"{result.language} {result.scenario}: {result.detail}\n"
        for result in results
        if result.outcome != PASSED
    ]
    for language in languages:
        mine = [result for result in results if result.language == language]
        passed = sum(result.outcome == PASSED for result in mine)
        seconds = sum(result.seconds for result in mine)
        lines.append(f"{language}: {passed} of {len(mine)} scenarios passed in {seconds:.0f} s")
    passed = sum(result.outcome == PASSED for result in results)
    lines.append(f"{passed} of {len(results)} passed, {len(languages)} languages")
    return "\n".join(lines)


def as_json(results: list[Result]) -> str:
    rows: list[dict[str, Any]] = [result._asdict() for result in results]
    return json.dumps({"results": rows}, indent=1)


def as_markdown(scenarios: list[Scenario], results: list[Result]) -> str:
    languages, found = _table(results)
    lines = [
        "# Conformance",
        "",
        "What every SDK does, shown by one programme against a real broker. Each row is a scenario",
        "of `sdks/conformance/scenarios/`; each column is a language, driven by a small adapter",
        "([protocol](../../sdks/conformance/PROTOCOL.md)). This page is made by",
        "`python sdks/conformance/run.py --markdown`; continuous integration runs the same.",
        "",
        "✓ passed, ✗ failed, – not run.",
    ]
    groups = dict.fromkeys(scenario.group for scenario in scenarios)
    for group in groups:
        lines += ["", f"## {group.capitalize()}", ""]
        lines.append("| scenario | " + " | ".join(languages) + " |")
        lines.append("|---|" + ":-:|" * len(languages))
        for scenario in scenarios:
            if scenario.group == group:
                cells = [_mark(found.get((language, scenario.name))) for language in languages]
                title = scenario.title.replace("|", "\\|")
                lines.append(f"| **{scenario.name}**: {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _mark(result: Result | None) -> str:
    if result is None or result.outcome == ABSENT:
        return "–"
    return "✓" if result.outcome == PASSED else "✗"


def _table(results: list[Result]) -> tuple[list[str], dict[tuple[str, str], Result]]:
    languages = list(dict.fromkeys(result.language for result in results))
    return languages, {(result.language, result.scenario): result for result in results}
