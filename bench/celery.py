"""Celery on Redis and on Fila, in one run: `python -m bench.celery [--full]`.

noisy neighbour   one tenant sends 10,000 tasks, then three others send 100 each; a worker of four
                  processes starts. When were the three served, in tasks and in seconds?
no-op tasks       tasks that do nothing, sent beforehand; how many a second do four processes run?
sending           how many a second does one process send?

The project is the same but for the broker's address. Rounds alternate between the two.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.drop_in.workers import redis

from bench import command
from bench.record import Findings, Row, Target
from fila import testing

PROJECT = """
import os, time
from celery import Celery
app = Celery("bench_project", broker=os.environ["BENCH_BROKER"])
app.conf.task_ignore_result = True
app.conf.worker_prefetch_multiplier = int(os.environ["BENCH_PREFETCH"])
LOG = os.open(os.environ["BENCH_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

@app.task(fila_key="tenant")
def job(tenant):
    os.write(LOG, f"{time.monotonic()} {tenant}\\n".encode())
"""
PATIENCE_S = 600.0


class Side:
    """One of the two brokers, and a directory for what the project leaves."""

    def __init__(self, name: str, address: str, folder: Path) -> None:
        self.name = name
        self.folder = folder / name
        self.folder.mkdir()
        self.log = self.folder / "log"
        (self.folder / "bench_project.py").write_text(PROJECT)
        self.environ = {
            **os.environ,
            "PYTHONPATH": str(self.folder),
            "BENCH_BROKER": address,
            "BENCH_LOG": str(self.log),
            "C_FORCE_ROOT": "1",
        }

    def sent(self, *batches: tuple[str, int]) -> float:
        """Send so many tasks of each tenant, one after the other; returns tasks a second."""
        code = (
            "import time\nfrom bench_project import job\n"
            "job.delay('warm')\nbegin = time.monotonic()\n"
            f"for tenant, count in {batches!r}:\n"
            "    for _ in range(count): job.delay(tenant)\n"
            "print(time.monotonic() - begin)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], env={**self.environ, "BENCH_PREFETCH": "1"},
            cwd=self.folder, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return sum(count for _, count in batches) / float(done.stdout)

    def worked(self, count: int, prefetch: int) -> list[tuple[float, str]]:
        """Let a worker of four processes run so many tasks; when each ran, and whose it was."""
        self.log.unlink(missing_ok=True)
        worker = subprocess.Popen(
            [sys.executable, "-m", "celery", "-A", "bench_project", "worker",
             "--concurrency", "4", "--loglevel", "ERROR"],
            env={**self.environ, "BENCH_PREFETCH": str(prefetch)}, cwd=self.folder,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            deadline = time.monotonic() + PATIENCE_S
            while len(lines := self._lines()) < count + 1:  # the warm one as well
                assert time.monotonic() < deadline, f"{self.name}: {len(lines)} of {count} tasks"
                time.sleep(0.2)
        finally:
            worker.terminate()
            worker.wait(60)
        rows = [line.split() for line in lines]
        return sorted((float(at), tenant) for at, tenant in rows)[1:]

    def _lines(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


def neighbours(side: Side, noisy: int, quiet: int) -> Row:
    side.sent(("noisy", noisy), *((f"quiet-{at}", quiet) for at in range(3)))
    ran = side.worked(noisy + 3 * quiet, prefetch=1)
    last = max(at for at, (_, tenant) in enumerate(ran) if tenant != "noisy")
    return {
        "broker": side.name,
        "tasks until the quiet three were served": last + 1,
        "seconds": round(ran[last][0] - ran[0][0], 2),
    }


def rates(side: Side, count: int) -> tuple[float, float]:
    """Tasks sent, and run, a second."""
    sent = side.sent(("one", count))
    ran = side.worked(count, prefetch=4)
    return sent, (len(ran) - 1) / (ran[-1][0] - ran[0][0])


def run(full: bool) -> Findings:
    noisy, quiet, count, rounds = (10_000, 100, 10_000, 3) if full else (1_000, 10, 2_000, 1)
    with tempfile.TemporaryDirectory() as place, testing.broker() as broker:
        folder = Path(place)
        with redis(folder) as address:
            fila = Side("Fila", f"fila://{broker.address}/", folder)
            rival = Side("Redis", address, folder)
            order = [neighbours(side, noisy, quiet) for side in (rival, fila)]
            pairs = []
            for at in range(rounds):
                turn = (fila, rival) if at % 2 else (rival, fila)
                found = {side.name: rates(side, count) for side in turn}
                pairs.append((found["Fila"], found["Redis"]))
    sent, worked = ([(ours[at], theirs[at]) for ours, theirs in pairs] for at in range(2))
    ratio = statistics.median(ours / theirs for ours, theirs in worked)
    return Findings(
        "A stock Celery project on Redis and on Fila, by a change of address; four processes.",
        {
            "one noisy tenant, three quiet ones": order,
            "a second": [_row("tasks run", worked), _row("tasks sent by one process", sent)],
        },
        [Target("no-op tasks against Redis", ">= 0.9", f"{ratio:.2f}", ratio >= 0.9)],
        [f"{noisy:,} tasks of one tenant first, then {quiet} of each of three others."],
    )


def _row(what: str, pairs: list[tuple[float, float]]) -> Row:
    return {
        "what": what,
        "Fila": round(statistics.median(ours for ours, _ in pairs)),
        "Redis": round(statistics.median(theirs for _, theirs in pairs)),
        "ratio": round(statistics.median(ours / theirs for ours, theirs in pairs), 2),
    }


if __name__ == "__main__":
    sys.exit(0 if command.main("celery", run) else 1)
