"""The gate: every check and every test of this repository, and a summary of what came of them.

    python tools/gate.py                  what `make test` runs
    python tools/gate.py tests go         some parts
    python tools/gate.py --list           the parts

Parts run to their end even when another failed, so that one run tells everything. With CI set in
the environment nothing may be missing; without it, an SDK whose language is not installed here is
left out, and the summary says so. Exit code 0 when everything that ran passed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PASSED, FAILED, LEFT_OUT = "passed", "FAILED", "left out"
MISSING = 2  # what an SDK's check exits with when its language is not installed
LANGUAGES = ("go", "rust", "js", "java", "ruby")  # the longest first: they share the processors
TOGETHER = max(2, os.cpu_count() or 2)
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
    return outcomes


def _named(languages: list[str]) -> list[str]:
    return [word for name in languages for word in ("--lang", name)]


def summary(outcomes: list[Outcome]) -> str:
    width = max(len(one.part) for one in outcomes)
    lines = ["", "what ran:"]
    lines += [
        f"  {one.part:<{width}}  {one.outcome:<8}  {one.seconds:6.0f} s  {one.said}".rstrip()
        for one in outcomes
    ]
    counts = {kind: sum(one.outcome == kind for one in outcomes) for kind in (FAILED, LEFT_OUT)}
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
