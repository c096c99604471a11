"""What the SDKs cost: the same load through each of them, in turns, and without any client.

    python -m bench.sdks [--full]

Every SDK has a load program (`sdks/*/bench`, `bench/load.py`). A producer and a consumer run as
processes of their own against one broker: messages of 1 KB, batches of 100, eight under way.
Rounds go through all languages one after the other, so that the machine's noise falls on all of
them. Other brokers' own clients (`bench.field`) do the same with theirs. The page
`docs/sdks/speed.md` is made from the result of the full form.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from bench import command, field
from bench.record import ROOT, Findings, Row, Target
from bench.rivals.install import InstallError
from bench.system.broker import Broker
from fila import FilaClient

PAGE = ROOT / "docs" / "sdks" / "speed.md"
FIELD = "Other brokers' own clients, with their brokers"
RAW = "raw"  # frames that were made before: what the broker can do
LANGUAGES = ("python", "go", "rust", "java", "js", "ruby")
LIMIT_S = 600.0
FASTER, SERVER_BOUND = 1.5, 0.9
AT_LEAST = {"go": FASTER, "rust": FASTER, "java": FASTER, "js": 1.0, "ruby": 1.0}


Speed = tuple[float, float, float]  # messages a second, µs of the producer's CPU, of the consumer's
Peaks = tuple[float, float]  # MiB of a producer and of a consumer


class Spent(NamedTuple):
    """One process's work."""

    begin: float
    end: float
    cpu_s: float
    peak_mib: float


def run(full: bool) -> Findings:
    rounds, messages, left = (5, 200_000, 100_000) if full else (2, 20_000, 20_000)
    _say("building the load programs")
    build()
    speeds: dict[str, list[Speed]] = {}
    peaks: dict[str, Peaks] = {}
    with (
        tempfile.TemporaryDirectory(prefix="fila-bench-") as place,
        Broker(Path(place) / "broker") as broker,
        FilaClient(broker.address) as client,
    ):
        for number in range(rounds):
            for name in (RAW, *LANGUAGES):
                found = lifecycle(client, broker.address, name, f"{name}-{number}", messages)
                speeds.setdefault(name, []).append(found)
                _say(f"round {number + 1} of {rounds}, {name}: {found[0]:,.0f} lifecycles/s")
        for name in LANGUAGES:
            peaks[name] = pending(client, broker.address, name, left)
            _say(f"{left:,} pending, {name}: {peaks[name][0]:.0f} and {peaks[name][1]:.0f} MiB")
    findings = _findings(speeds, peaks, messages, left)
    others, missing = the_field(3 if full else 1, messages, left)
    findings = findings._replace(
        tables=findings.tables | ({FIELD: others} if others else {}), notes=findings.notes + missing
    )
    if full:
        PAGE.write_text(_page(findings), encoding="utf-8")
    return findings


def build() -> None:
    """The load programs, in the form that is measured."""
    sdks = ROOT / "sdks"
    _run(sdks / "go", "go", "build", "-o", "bin/load", "./bench")
    _run(sdks / "rust", "cargo", "build", "--quiet", "--release", "--example", "bench")
    _run(sdks / "js", "conformance/build")
    _run(sdks / "java", "conformance/build")  # says what is missing; its run compiles the rest


def program(name: str, role: str, address: str, queue: str, messages: int) -> list[str]:
    sdks = ROOT / "sdks"
    plain = [role, address, queue, str(messages)]
    flags = ["--addr", address, "--role", role, "--queue", queue, "--messages", str(messages)]
    target = os.environ.get("CARGO_TARGET_DIR", str(sdks / "rust" / "target"))
    return {
        RAW: [sys.executable, "-m", "bench.load", RAW, *plain],
        "python": [sys.executable, "-m", "bench.load", "python", *plain],
        "go": [str(sdks / "go" / "bin" / "load"), *flags],
        "rust": [f"{target}/release/examples/bench", *flags],
        "java": [str(sdks / "java" / "bench" / "run"), *plain],
        "js": [str(sdks / "js" / "bench" / "run"), *plain],
        "ruby": ["ruby", str(sdks / "ruby" / "bench" / "load.rb"), *flags],
    }[name]


def lifecycle(client: FilaClient, address: str, name: str, queue: str, messages: int) -> Speed:
    """Messages a second from the first one sent to the last one acknowledged, and what producer and
    consumer spent on each, in µs of CPU time."""
    client.create_queue(queue)
    consumer = _start(program(name, "consume", address, queue, messages))
    _wait(lambda: client.get_stats(queue).active_consumers == 1)
    producer = _start(program(name, "produce", address, queue, messages))
    with ThreadPoolExecutor() as pool:  # each is looked at the moment it has something to say
        produced, consumed = pool.map(_ended, (producer, consumer))
    client.delete_queue(queue)
    scale = 1e6 / messages
    return (
        messages / (consumed.end - produced.begin),
        produced.cpu_s * scale,
        consumed.cpu_s * scale,
    )


def pending(client: FilaClient, address: str, name: str, messages: int) -> Peaks:
    """The most memory of a producer that leaves so many behind, and of who finds them."""
    queue = f"{name}-pending"
    client.create_queue(queue)
    produced = _ended(_start(program(name, "produce", address, queue, messages)))
    consumed = _ended(_start(program(name, "consume", address, queue, messages)))
    client.delete_queue(queue)
    return produced.peak_mib, consumed.peak_mib


def the_field(rounds: int, messages: int, left: int) -> tuple[list[Row], list[str]]:
    """A row for every client of another broker that can be had here, and what could not."""
    _say("fetching other brokers' clients")
    try:
        field.prepare()
    except InstallError as error:
        return [], [f"Other brokers' clients are left out: {error}."]
    rows: list[Row] = []
    for name in field.CLIENTS:
        with field.server(name) as server:
            speeds = [
                field_lifecycle(name, server.address, f"r{n}", messages) for n in range(rounds)
            ]
            produced, consumed = field_pending(name, server.address, "pending", left)
        rates, sent, got = zip(*speeds, strict=True)
        _say(f"{name}: {statistics.median(rates):,.0f} lifecycles/s")
        row: Row = {
            "client": name,
            "beside": field.BESIDE[name],
            "lifecycles/s": round(statistics.median(rates)),
            "producer CPU µs": round(statistics.median(sent), 1),
            "consumer CPU µs": round(statistics.median(got), 1),
            "producer MiB": round(produced),
            "consumer MiB": round(consumed),
        }
        rows.append(row)
    beside = ", ".join(f"{name} beside our {ours}" for name, ours in field.BESIDE.items())
    return rows, [
        f"Other brokers' clients do the same work with their own broker: Redis has streams with "
        f"consumer groups (append-only file, every second), NATS a JetStream file stream. So rates "
        f"are their brokers'; what compares is CPU and memory per message: {beside}."
    ]


def field_lifecycle(name: str, address: str, queue: str, messages: int) -> Speed:
    field.declare(name, address, queue)
    roles = ("consume", "produce")
    children = [
        _start(field.program(name, role, address, queue, messages), field.environment())
        for role in roles
    ]
    with ThreadPoolExecutor() as pool:
        consumed, produced = pool.map(_ended, children)
    field.forget(name, address, queue)
    scale = 1e6 / messages
    return (
        messages / (consumed.end - produced.begin),
        produced.cpu_s * scale,
        consumed.cpu_s * scale,
    )


def field_pending(name: str, address: str, queue: str, messages: int) -> Peaks:
    field.declare(name, address, queue)
    roles = ("produce", "consume")
    produced, consumed = (
        _ended(_start(field.program(name, role, address, queue, messages), field.environment()))
        for role in roles
    )
    field.forget(name, address, queue)
    return produced.peak_mib, consumed.peak_mib


def _findings(
    speeds: dict[str, list[Speed]],
    peaks: dict[str, Peaks],
    messages: int,
    left: int,
) -> Findings:
    rates = {name: statistics.median(one[0] for one in found) for name, found in speeds.items()}
    rows: list[Row] = []
    for name, found in speeds.items():
        row: Row = {
            "client": name,
            "lifecycles/s": round(rates[name]),
            "of Python": round(_ratio(speeds, name, "python"), 2),
            "of raw frames": round(_ratio(speeds, name, RAW), 2),
            "producer CPU µs": round(statistics.median(one[1] for one in found), 1),
            "consumer CPU µs": round(statistics.median(one[2] for one in found), 1),
        }
        produced, consumed = peaks.get(name, (0.0, 0.0))
        row["producer MiB"] = round(produced) if produced else "-"
        row["consumer MiB"] = round(consumed) if consumed else "-"
        rows.append(row)
    targets = []
    for name, least in AT_LEAST.items():
        faster, bound = _ratio(speeds, name, "python"), _ratio(speeds, name, RAW)
        met = faster >= least or (least == FASTER and bound >= SERVER_BOUND)
        limit = f">= {least:g} × Python"
        if least == FASTER:
            limit += f", or >= {SERVER_BOUND:.0%} of raw frames"
        measured = f"{faster:.2f} × Python, {bound:.0%} of raw frames"
        targets.append(Target(f"lifecycle rate of {name}", limit, measured, met))
    return Findings(
        f"Messages of 1 KB, batches of 100, eight batches under way, one producer and one consumer "
        f"process, {messages:,} messages a run, {len(speeds[RAW])} rounds through all clients on "
        f"one broker. Raw frames have no client: they are made before and answered by cutting.",
        {"Speed and cost": rows},
        targets,
        [
            "Rates are medians of the rounds; ratios are medians of neighbouring runs. CPU time is "
            "the client's own, per message, once it is connected.",
            f"Memory is the most a process had, with its runtime: a producer that leaves "
            f"{left:,} messages behind, and a consumer (prefetch 2,000) that finds them.",
        ],
    )


def _ratio(speeds: dict[str, list[Speed]], name: str, other: str) -> float:
    """The median over neighbouring runs: the machine's noise falls on both."""
    pairs = zip(speeds[name], speeds[other], strict=True)
    return statistics.median([mine[0] / theirs[0] for mine, theirs in pairs])


def _page(findings: Findings) -> str:
    lines = [
        "# Speed of the SDKs",
        "",
        "Made by `python -m bench.sdks --full`; do not edit it. The machine and the commit are in",
        "[the results](../../bench/results/README.md).",
        "",
        findings.about,
        "",
        *(line for title, rows in findings.tables.items()
          for line in (f"## {title}", "", *_table(rows), "")),
        *(f"- {note}" for note in findings.notes),
        f"- Load average of the machine when it was made: {os.getloadavg()[1]:.1f}.",
        "",
        "## Goals",
        "",
        "| goal | limit | measured | |",
        "|---|---|---|---|",
        *(f"| {one.what} | {one.limit} | {one.measured} | {'met' if one.met else 'missed'} |"
          for one in findings.targets),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _table(rows: list[Row]) -> list[str]:
    names = list(rows[0])
    return [
        "| " + " | ".join(names) + " |",
        "|---|" + "--:|" * (len(names) - 1),
        *("| " + " | ".join(f"{row[name]:,}" if isinstance(row[name], int) else str(row[name])
                            for name in names) + " |" for row in rows),
    ]  # fmt: skip


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _start(arguments: list[str], env: dict[str, str] | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(arguments, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True)


def _ended(child: subprocess.Popen[str]) -> Spent:
    """Wait for a load program's line and its end."""
    assert child.stdout is not None
    line = child.stdout.readline()
    end = time.monotonic()
    with child.stdout as rest:
        rest.read()
    if child.wait() or not line:
        raise RuntimeError(f"{child.args!r} ended with {child.returncode}")
    told = json.loads(line)
    return Spent(end - told["seconds"], end, told["cpu_seconds"], told["rss_mb"])


def _wait(ready: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not ready():
        if time.monotonic() > until:
            raise RuntimeError("a load program did not begin within a minute")
        time.sleep(0.005)


def _run(place: Path, *arguments: str) -> None:
    subprocess.run(arguments, cwd=place, check=True, timeout=LIMIT_S, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    sys.exit(0 if command.main("sdks", run) else 1)
