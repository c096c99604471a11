"""What became slower, or better, between two results of `bench.system` or `bench.rivals`.

    python -m bench.compare BEFORE.json AFTER.json [--least 5]

A difference counts when it is larger than `--least` percent and the rounds of the two results do
not overlap: the best round afterwards is worse than the worst before, or the other way round. With
fewer than three rounds on a side, or on a machine busy with other work, there is no telling noise
from change, and it says so ("unsure"). Several results of one side, separated by commas, are
taken together: rounds of different runs show more of the noise than neighbouring ones.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

from bench.system.measure import Metric, middle

ROUNDS_MIN = 3


class Difference(NamedTuple):
    what: str
    unit: str
    before: float
    after: float
    gain: float  # relative; below 0 is worse
    verdict: str  # "worse", "better", "same" or "unsure"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.compare", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("before", help="a result, or several separated by commas")
    parser.add_argument("after")
    parser.add_argument("--least", type=float, default=5.0, help="percent that matter (5)")
    parser.add_argument("--all", action="store_true", help="show what did not change, too")
    options = parser.parse_args()
    before, after = _read(options.before), _read(options.after)
    for doubt in _doubts(before[-1], after[-1]):
        print(f"note: {doubt}")
    busy = any(_was_busy(content) for content in before + after)
    if busy:
        print("note: the machine was busy with other work, so no difference is certain")
    found = compare(before, after, options.least / 100, busy)
    for verdict, title in (("worse", "WORSE"), ("better", "better"), ("unsure", "unsure")):
        _show(title, [one for one in found if one.verdict == verdict])
    if options.all:
        _show("same", [one for one in found if one.verdict == "same"])
    worse = sum(one.verdict == "worse" for one in found)
    print(f"{len(found)} figures compared, {worse} worse beyond noise")
    return 1 if worse else 0


def compare(
    before: list[dict[str, Any]], after: list[dict[str, Any]], least: float, busy: bool = False
) -> list[Difference]:
    """All figures that both sides have."""
    earlier, later = _figures(before), _figures(after)
    return [
        judge(what, earlier[what], metric, least, busy)
        for what, metric in later.items()
        if what in earlier
    ]


def judge(what: str, before: Metric, after: Metric, least: float, busy: bool) -> Difference:
    was, now = middle(before), middle(after)
    change = (now - was) / abs(was) if was else 0.0
    higher = after["better"] == "higher"
    gain = change if higher else -change
    verdict = "same"
    if abs(gain) > least:
        if busy or min(len(before["rounds"]), len(after["rounds"])) < ROUNDS_MIN:
            verdict = "unsure"
        elif _apart(before["rounds"], after["rounds"]):
            verdict = "better" if gain > 0 else "worse"
    return Difference(what, after["unit"], was, now, gain, verdict)


def _apart(some: list[float], others: list[float]) -> bool:
    return max(some) < min(others) or max(others) < min(some)


def _read(names: str) -> list[dict[str, Any]]:
    return [json.loads(Path(name).read_text()) for name in names.split(",")]


def _figures(contents: list[dict[str, Any]]) -> dict[str, Metric]:
    """The rounds of all results of one side together."""
    figures: dict[str, Metric] = {}
    for one in [one for content in contents for one in content["measurements"]]:
        about = ", ".join(f"{name} {value}" for name, value in sorted(one["parameters"].items()))
        for name, metric in one["metrics"].items():
            what = f"{one['case']} [{about}] {name}"
            known = figures[what]["rounds"] if what in figures else []
            figures[what] = {
                "unit": metric["unit"],
                "better": metric["better"],
                "rounds": known + metric["rounds"],
            }
    return figures


def _was_busy(content: dict[str, Any]) -> bool:
    return any("busy with other work" in note for note in content["notes"])


def _doubts(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Why the comparison may not mean what it says."""
    doubts = []
    if before["name"] != after["name"]:
        doubts.append(f"these are results of {before['name']} and of {after['name']}")
    if before["form"] != after["form"]:
        doubts.append(f"one is the {before['form']} form, the other the {after['form']} form")
    for name in sorted(before["machine"].keys() | after["machine"].keys()):
        was, now = before["machine"].get(name), after["machine"].get(name)
        if was != now:
            doubts.append(f"{name} was {was}, is {now}")
    return doubts


def _show(title: str, found: list[Difference]) -> None:
    for one in sorted(found, key=lambda one: one.gain):
        print(
            f"{title:<7} {one.gain * 100:+7.1f} %  {one.what}: "
            f"{one.before:,.6g} → {one.after:,.6g} {one.unit}"
        )


if __name__ == "__main__":
    sys.exit(main())
