"""python -m bench.rivals [--short | --full] [broker …]"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench import report
from bench.rivals import install
from bench.rivals.contests import Contests
from bench.rivals.install import InstallError
from bench.rivals.servers import fila
from bench.rivals.servers.running import Running
from bench.system import form, process
from bench.system.measure import FULL, SHORT
from bench.system.process import ProcessError

# Shown name → module of its server. The first word, in small letters, is the module of its client.
RIVALS = {
    "NATS JetStream": "nats",
    "RabbitMQ quorum": "rabbitmq",
    "Redis Streams": "redis",
    "Beanstalkd": "beanstalkd",
    "Postgres SKIP LOCKED": "postgres",
}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.rivals",
        description="The same workloads for Fila and its rivals, in turns, each with its usual "
        "Python client. A run with all rivals is written to bench/results/ and to "
        "docs/benchmarks.md; a run with some is only printed, unless --out says where it goes.",
    )
    parser.add_argument("brokers", nargs="*", metavar="broker", help=", ".join(RIVALS.values()))
    parser.add_argument("--full", action="store_true", help="the full form; takes half an hour")
    parser.add_argument("--short", action="store_true", help="the short form (default)")
    parser.add_argument("--out", type=Path, help="write the JSON here and nowhere else")
    parser.add_argument("--note", action="append", default=[], help="goes into the results")
    options = parser.parse_args()
    unknown = [name for name in options.brokers if name not in RIVALS.values()]
    if unknown:
        parser.error(f"no broker {unknown[0]!r}; there are {', '.join(RIVALS.values())}")
    process.end_with_children()
    begin = time.monotonic()
    load_before = os.getloadavg()[0]
    extent = FULL if options.full else SHORT
    install.prepare()
    form.build()
    with tempfile.TemporaryDirectory(prefix="fila-bench-") as name:
        place = Path(name)
        os.chmod(place, 0o711)  # PostgreSQL may have to run as another user
        running, missing = _start(place, options.brokers or list(RIVALS.values()))
        try:
            contests = Contests(extent, place, running)
            contests.pipelined()
            contests.single()
            contests.latency()
            contests.fairness()
        finally:
            for broker in running.values():
                broker.stop()
    return report.finish(
        "rivals",
        extent.name,
        contests.found,
        seconds=time.monotonic() - begin,
        load_before=load_before,
        notes=options.note + missing + contests.failures,
        out=options.out,
        complete=not options.brokers,
        extra={
            "brokers": {
                name: {
                    "version": broker.version,
                    "settings": broker.settings,
                    "survives": broker.survives,
                }
                for name, broker in running.items()
            },
            "clients": _clients(),
        },
    )


def _start(place: Path, modules: list[str]) -> tuple[dict[str, Running], list[str]]:
    """All of them at once; an idle broker takes next to nothing. And who is missing, and why."""
    starters: dict[str, Callable[[Path], Running]] = {
        "Fila": fila.start,
        "Fila compiled": partial(fila.start, compiled=True),
        "Fila fsync": partial(fila.start, durability="fsync"),
    }
    for shown, module in RIVALS.items():
        if module in modules:
            starters[shown] = importlib.import_module(f"bench.rivals.servers.{module}").start
    running: dict[str, Running] = {}
    missing: list[str] = []
    for shown, start in starters.items():
        directory = place / shown.replace(" ", "-").lower()
        directory.mkdir()
        try:
            running[shown] = start(directory)
            sys.stdout.write(f"{shown}: {running[shown].version}\n")
        except (InstallError, ProcessError, OSError) as error:
            missing.append(f"{shown} is missing: {error}")
            sys.stdout.write(missing[-1] + "\n")
        sys.stdout.flush()
    return running, missing


def _clients() -> dict[str, str]:
    """The versions of the clients, as pip knows them."""
    names = [wheel.split("[")[0] for wheel in install.WHEELS]
    script = f"import importlib.metadata as m; print(*[m.version(name) for name in {names!r}])"
    found = subprocess.run(
        [str(install.PYTHON), "-c", script], capture_output=True, text=True, check=True
    )
    return dict(zip(names, found.stdout.split(), strict=True))


if __name__ == "__main__":
    sys.exit(main())
