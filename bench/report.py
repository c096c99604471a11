"""What `bench.system` and `bench.rivals` found, written down: JSON with every round in
bench/results/, and docs/benchmarks.md with its charts, made from that JSON.

    python -m bench.report        make the page again
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench import record
from bench.record import ROOT, Findings, Row, Target
from bench.rivals import tables as rivals_tables
from bench.system import form, pictures
from bench.system import tables as system_tables
from bench.system.measure import Measurement

PAGE = ROOT / "docs" / "benchmarks.md"
CHARTS = ROOT / "docs" / "benchmarks"
_BUSY = 0.5  # load average per core above which the machine was not ours alone

ABOUT = {
    "system": "The whole server over loopback sockets, RocksDB on, fairness on, default settings "
    "unless said. Load comes from separate processes: by raw frames, made before they are "
    "measured, so that the server is the limit, or through the Python SDK. Every figure is the "
    "median of its rounds; ± is half the distance from the lowest to the highest.",
    "rivals": "The same work for every broker in the same run, in turns, each with its usual "
    "Python client, durable, with settings for throughput. Load comes from separate processes. "
    "Factors are medians over pairs of neighbouring rounds.",
}


def finish(
    name: str,
    extent: str,
    found: Sequence[Measurement],
    *,
    seconds: float,
    load_before: float,
    notes: Sequence[str],
    out: Path | None,
    complete: bool,
    extra: Mapping[str, Any] | None = None,
) -> int:
    """Write down and print what was found. Returns 1 when a target was missed."""
    findings = _findings(name, extent, found, load_before, notes)
    content = {
        "name": name,
        "form": extent,
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "command": shlex.join(["python", "-m", f"bench.{name}", *sys.argv[1:]]),
        "commit": record.commit(),
        "machine": record.machine() | {"fila modules": _build()},
        "seconds": round(seconds, 1),
        "about": findings.about,
        "targets": [target._asdict() for target in findings.targets],
        "tables": findings.tables,
        "notes": findings.notes,
        **(extra or {}),
        "measurements": list(found),
    }
    record.show(findings)
    for note in findings.notes:
        print(note)
    if out is None and complete:
        out = record.RESULTS / (f"{name}.json" if extent == "full" else f"{name}.short.json")
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(_json(content))
        print(f"written to {out}")
    if out is not None and complete and out.parent == record.RESULTS:
        record.write_page()
        write_page()
    return 0 if all(target.met for target in findings.targets) else 1


def write_page() -> None:
    """docs/benchmarks.md and its charts, from the full results where there are any."""
    lines = [
        "# Benchmarks",
        "",
        "Made by `python -m bench.report` from the JSON in `bench/results/`; do not edit it.",
        "",
        "| | |",
        "|---|---|",
        "| `python -m bench.system` | the whole server: throughput, latency, fairness, limits |",
        "| `python -m bench.rivals` | the same work for Fila and five other brokers |",
        "| `python -m bench.compare A.json B.json` | what became slower between two results |",
        "| `python -m bench` | the core alone ([results](../bench/results/README.md)) |",
        "",
        "Each takes a few minutes; `--full` is longer and steadier. The rivals are downloaded on",
        "first use and unpacked below `bench/.rivals/`; nothing is installed on the machine.",
    ]
    CHARTS.mkdir(parents=True, exist_ok=True)
    for name in ("rivals", "system"):
        content = _newest(name)
        if content is not None:
            lines += ["", *_section(content)]
    PAGE.write_text("\n".join(lines) + "\n")


def _findings(
    name: str, extent: str, found: Sequence[Measurement], load_before: float, notes: Sequence[str]
) -> Findings:
    said = list(notes)
    busy = load_before / (os.cpu_count() or 1)
    said.append(f"Load average of the machine when it began: {load_before:.1f}.")
    if busy > _BUSY:
        said.append("**The machine was busy with other work: rates are too low and noisy.**")
    if name == "rivals":
        made = rivals_tables.tables(found)
        held = rivals_tables.targets(found)
        said = rivals_tables.standing(found) + said
    else:
        made = system_tables.tables(found)
        held = system_tables.targets(found, extent == "full")
    return Findings(ABOUT[name], made, held, said)


def _newest(name: str) -> dict[str, Any] | None:
    for path in (record.RESULTS / f"{name}.json", record.RESULTS / f"{name}.short.json"):
        if path.exists():
            content: dict[str, Any] = json.loads(path.read_text())
            return content
    return None


def _section(content: dict[str, Any]) -> list[str]:
    machine = content["machine"]
    titles = {"rivals": "Fila and the others", "system": "The server"}
    lines = [
        f"## {titles[content['name']]}",
        "",
        content["about"],
        "",
        f"`{content['command']}` ({content['form']} form), {content['date']}, commit "
        f"{content['commit']}, {content['seconds']:.0f} s, {machine['cores']} cores "
        f"{machine['cpu']}, Python {machine['python']}, rocksdict {machine['rocksdict']}, modules "
        f"{machine['fila modules']}.",
    ]
    for note in content["notes"]:
        lines += ["", note]
    if content["targets"]:
        lines += ["", *_targets([Target(**target) for target in content["targets"]])]
    for path, svg, what in pictures.of(content["name"], content["measurements"]):
        (CHARTS / path).write_text(svg)
        lines += ["", f"![{what}](benchmarks/{path})"]
    if "brokers" in content:
        lines += ["", *_brokers(content)]
    make = rivals_tables.tables if content["name"] == "rivals" else system_tables.tables
    for title, rows in make(content["measurements"]).items():
        lines += ["", f"### {title}", "", *_table(rows)]
    return lines


def _targets(held: Sequence[Target]) -> list[str]:
    lines = ["| target | limit | measured | |", "|---|---|---|---|"]
    for target in held:
        word = "met" if target.met else "**missed**"
        lines.append(f"| {target.what} | {target.limit} | {target.measured} | {word} |")
    return lines


def _brokers(content: dict[str, Any]) -> list[str]:
    lines = ["| broker | version | settings | acknowledged survives |", "|---|---|---|---|"]
    for name, one in content["brokers"].items():
        lines.append(f"| {name} | {one['version']} | {one['settings']} | {one['survives']} |")
    clients = ", ".join(f"{name} {version}" for name, version in content["clients"].items())
    return [*lines, "", f"Clients: {clients}; Fila's own SDK, which is plain Python."]


def _table(rows: Sequence[Row]) -> list[str]:
    """Rows may have different columns: what a row lacks stays empty."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    for row in rows:
        cells = [_cell(row.get(name, "")) for name in names]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _cell(value: str | int | float) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _build() -> str:
    return "compiled" if form.compiled() else "pure Python"


def _json(content: Mapping[str, Any]) -> str:
    """Indented, but a measurement's rounds on one line."""
    lines = json.dumps({**content, "measurements": []}, indent=2, ensure_ascii=False)
    each = ",\n    ".join(json.dumps(one, ensure_ascii=False) for one in content["measurements"])
    return lines.replace('"measurements": []', f'"measurements": [\n    {each}\n  ]') + "\n"


if __name__ == "__main__":
    write_page()
