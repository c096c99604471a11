"""What a benchmark found, written down: JSON per benchmark, and one page made from all of them.

Figures are rows of named values; a target is a limit with what was measured against it. Where and
how it was measured (commit, machine, versions, command) goes with them.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results"
LIBRARIES = ("rocksdict", "mypy", "lupa", "uvloop")

Row = dict[str, str | int | float]


class Target(NamedTuple):
    what: str
    limit: str
    measured: str
    met: bool


class Findings(NamedTuple):
    """What a benchmark's `run` gives back."""

    about: str
    tables: dict[str, list[Row]]
    targets: list[Target]
    notes: list[str]


def write(name: str, full: bool, findings: Findings, seconds: float, date: str) -> Path:
    """Store the findings and bring the page up to date."""
    form = "full" if full else "short"
    content = {
        "name": name,
        "form": form,
        "date": date or time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "command": f"python -m bench.{name}" + (" --full" if full else ""),
        "commit": commit(),
        "machine": machine(),
        "load": round(os.getloadavg()[1], 1),  # what the machine was busy with, this run included
        "seconds": round(seconds, 1),
        "about": findings.about,
        "targets": [target._asdict() for target in findings.targets],
        "tables": findings.tables,
        "notes": findings.notes,
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / (f"{name}.json" if full else f"{name}.short.json")
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    write_page()
    return path


def write_page() -> None:
    """bench/results/README.md from the JSON files: full results before short ones."""
    found = [json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))]
    found = [one for one in found if isinstance(one, dict) and "tables" in one]
    full = {one["name"] for one in found if one["form"] == "full"}
    lines = [
        "# Benchmark results",
        "",
        "Made from the JSON files beside this page by `python -m bench`; do not edit it. The full",
        "form of a benchmark is shown where there is one, else the short form.",
    ]
    for one in found:
        if one["form"] == "full" or one["name"] not in full:
            lines += ["", *_section(one)]
    (RESULTS / "README.md").write_text("\n".join(lines) + "\n")


def commit() -> str:
    """The commit that was measured, and whether the sources differed from it."""
    try:
        head = _git("rev-parse", "--short", "HEAD")
        changed = _git("status", "--porcelain", "--", "src", "bench/*.py")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head + (" with changes" if changed else "")


def machine() -> Row:
    cpu = "unknown"
    with open("/proc/cpuinfo") as lines:
        for line in lines:
            if line.startswith("model name"):
                cpu = line.split(":", 1)[1].strip()
                break
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    found: Row = {
        "cores": os.cpu_count() or 0,
        "cpu": cpu,
        "memory_gib": round(memory_bytes / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }
    for library in LIBRARIES:
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            found[library] = "not installed"
    return found


def show(findings: Findings) -> None:
    """Print the findings for the person at the terminal."""
    for title, rows in findings.tables.items():
        sys.stdout.write(f"\n{title}\n" + "\n".join(_table(rows)) + "\n")
    for target in findings.targets:
        word = "met   " if target.met else "MISSED"
        sys.stdout.write(f"{word} {target.what}: {target.measured} (limit {target.limit})\n")
    sys.stdout.flush()


def _section(one: dict) -> list[str]:  # type: ignore[type-arg]
    machine = one["machine"]
    versions = ", ".join(f"{name} {machine[name]}" for name in ("python", "rocksdict", "mypy"))
    load = f", load average {one['load']}" if "load" in one else ""
    lines = [
        f"## {one['name']} ({one['form']})",
        "",
        one["about"],
        "",
        f"`{one['command']}`, {one['date']}, commit {one['commit']}, {one['seconds']} s, "
        f"{machine['cores']} cores {machine['cpu']}{load}, {versions}.",
    ]
    if one["targets"]:
        lines += ["", "| target | limit | measured | |", "|---|---|---|---|"]
        for target in one["targets"]:
            word = "met" if target["met"] else "**missed**"
            lines.append(
                f"| {target['what']} | {target['limit']} | {target['measured']} | {word} |"
            )
    for title, rows in one["tables"].items():
        lines += ["", f"{title}:", "", *_table(rows)]
    for note in one["notes"]:
        lines += ["", note]
    return lines


def _table(rows: list[Row]) -> list[str]:
    names = list(rows[0])
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    for row in rows:
        cells = [
            f"{row[name]:,}" if isinstance(row[name], int) else str(row[name]) for name in names
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()
