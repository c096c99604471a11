"""The gate: every check and every test of this repository, and a summary of what came of them.

    python tools/gate.py                  what `make test` runs
    python tools/gate.py tests go         some parts
    python tools/gate.py --list           the parts

Parts run to their end even when another failed, so that one run tells everything. With CI set in
the environment nothing may be missing; without it, an SDK whose language is not installed here is
left out, and the summary says so.

What failed beside other work is repeated once with nothing beside it: of the tests those that
failed, if they are few. What passes then is *unsteady*: it does not fail the gate, and the summary
names it, with the first failure above, because it is a fault to mend, of the product or of the
test (docs/decisions/043-unsteady-tests.md). Exit code 0 when nothing failed twice.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PASSED, FAILED, LEFT_OUT, UNSTEADY = "passed", "FAILED", "left out", "UNSTEADY"
MISSING = 2  # what an SDK's check exits with when its language is not installed
# Added to the tests' command: those that failed the last time, in one process.
ONLY_FAILED = ("--last-failed", "--last-failed-no-failures=none", "-n", "0")
LANGUAGES = ("go", "rust", "js", "java", "ruby")  # the longest first: they share the processors
TOGETHER = max(2, os.cpu_count() or 2)
REPEATED_MAX = 3  # more tests that fail are no accident
# What a part says of itself at its end: pytest's last line, an SDK's count, the matrix's totals.
TELLING = (" passed", " failed", " error", "missing", "is needed")


class Outcome(NamedTuple):
    part: str
    outcome: str
    seconds: float
    said: str


def main() -> int:
    arguments = _arguments()
    if arguments.list:
        print("\n".join(PARTS))
        return 0
    unknown = set(arguments.part) - set(PARTS)
    if unknown:
        print(f"no part {min(unknown)!r}; there are: {', '.join(PARTS)}", file=sys.stderr)
        return 2
    chosen = [part for part in PARTS if part in arguments.part or not arguments.part]
    outcomes = run(chosen, in_ci=bool(os.environ.get("CI")))
    print(summary(outcomes))
    return 0 if all(one.outcome != FAILED for one in outcomes) else 1


def run(parts: Iterable[str], in_ci: bool) -> list[Outcome]:
    parts = list(parts)
    outcomes = [_streamed(part, PARTS[part]) for part in ("check", "tests") if part in parts]
    languages = [part for part in parts if part in LANGUAGES]
    if languages:
        _streamed("setup", ["sdks/setup", *languages])
    with ThreadPoolExecutor(TOGETHER) as pool:
        outcomes += pool.map(lambda part: _captured(part, PARTS[part], in_ci), languages)
    absent = {one.part for one in outcomes if one.outcome == LEFT_OUT}
    there = [name for name in LANGUAGES if name not in absent]
    if "five-minutes" in parts and there:
        outcomes.append(_streamed("five-minutes", [*PARTS["five-minutes"], *_named(there)]))
    if "conformance" in parts:
        chosen = _named(["python", *there])
        outcomes.append(_streamed("conformance", [*PARTS["conformance"], *chosen]))
    return [_repeated(one) if one.outcome == FAILED else one for one in outcomes]


def _repeated(first: Outcome) -> Outcome:
    """What a part that failed comes to when what failed of it is run again, alone."""
    command = PARTS[first.part]
    if first.part == "check":  # the same however often
        return first
    if first.part == "tests":
        failed = sum(map(int, re.findall(r"(\d+) (?:failed|error)", first.said)))
        if not 0 < failed <= REPEATED_MAX:
            return first
        command = [*command, *ONLY_FAILED]
    print(f"--- {first.part} failed; once more, alone", flush=True)
    again = _streamed(first.part, command)
    seconds = first.seconds + again.seconds
    said = f"{first.said}; alone: {again.said}"
    return Outcome(first.part, UNSTEADY if again.outcome == PASSED else FAILED, seconds, said)


def _named(languages: list[str]) -> list[str]:
    return [word for name in languages for word in ("--lang", name)]


def summary(outcomes: list[Outcome]) -> str:
    width = max(len(one.part) for one in outcomes)
    lines = ["", "what ran:"]
    lines += [
        f"  {one.part:<{width}}  {one.outcome:<8}  {one.seconds:6.0f} s  {one.said}".rstrip()
        for one in outcomes
    ]
    kinds = (FAILED, UNSTEADY, LEFT_OUT)
    counts = {kind: sum(one.outcome == kind for one in outcomes) for kind in kinds}
    passed = len(outcomes) - sum(counts.values())
    words = [f"{passed} of {len(outcomes)} parts passed"]
    words += [f"{count} {kind.lower()}" for kind, count in counts.items() if count]
    lines.append(", ".join(words))
    return "\n".join(lines)


def _streamed(part: str, command: list[str]) -> Outcome:
    """Run it with its output shown as it comes."""
    code, seconds, said = _ran(command, lambda line: print(line, end="", flush=True))
    return Outcome(part, FAILED if code else PASSED, seconds, said)


def _captured(part: str, command: list[str], in_ci: bool) -> Outcome:
    """Run it beside others; what it said is shown in one piece at its end."""
    lines: list[str] = []
    code, seconds, said = _ran(command, lines.append)
    print(f"--- {part}", *map(str.rstrip, lines), sep="\n", flush=True)
    bad = LEFT_OUT if code == MISSING and not in_ci else FAILED
    return Outcome(part, bad if code else PASSED, seconds, said)


def _ran(command: list[str], show: Callable[[str], object]) -> tuple[int, float, str]:
    """Its exit code, how long it took, and what it said of itself."""
    started = time.monotonic()
    said = ""
    try:
        process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace",
        )  # fmt: skip
    except OSError as error:
        show(f"{error}\n")
        return 1, 0.0, str(error)
    assert process.stdout is not None
    with process.stdout as output:
        for line in output:
            show(line)
            if any(word in line for word in TELLING):
                said = line.strip().strip("= ")
    return process.wait(), time.monotonic() - started, said


def _parts() -> dict[str, list[str]]:
    python = sys.executable
    return {
        "check": ["make", "--no-print-directory", "check"],
        "tests": [python, "-m", "pytest", "-n", "auto", "--dist", "worksteal"],
        **{language: [f"sdks/{language}/check"] for language in LANGUAGES},
        # Of the languages that are here:
        "five-minutes": [python, "sdks/five_minutes.py"],
        "conformance": [python, "sdks/conformance/run.py"],
    }


PARTS = _parts()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run every check and test of the repository.")
    parser.add_argument("part", nargs="*", help="only these parts (see --list)")
    parser.add_argument("--list", action="store_true", help="list the parts")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
