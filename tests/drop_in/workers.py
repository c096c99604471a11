"""Real Celery workers, and a Redis for their results."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 120.0


class Project:
    """The project's surroundings: which broker, which log, and how to run its programs."""

    def __init__(self, broker: str, folder: Path, **more: str) -> None:
        self.log = folder / "log"
        self.folder = folder
        self.environ = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PROJECT_BROKER": broker,
            "PROJECT_LOG": str(self.log),
            **more,
        }

    def lines(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []

    def python(self, code: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", f"from tests.drop_in.project import *\n{code}"],
            env=self.environ, cwd=self.folder, capture_output=True, text=True,
            timeout=PATIENCE_S, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def celery(self, *words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "celery", "-A", "tests.drop_in.project", *words],
            env=self.environ, cwd=self.folder, capture_output=True, text=True,
            timeout=PATIENCE_S, check=False,
        )  # fmt: skip
        return done.stdout + done.stderr

    @contextmanager
    def worker(self, *options: str, name: str = "one") -> Iterator[Worker]:
        running = Worker(self, name, options)
        try:
            running.until_ready()
            yield running
        finally:
            running.kill()


class Worker:
    def __init__(self, project: Project, name: str, options: tuple[str, ...]) -> None:
        self.output = project.folder / f"{name}.out"
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "celery", "-A", "tests.drop_in.project", "worker",
                 "--hostname", f"{name}@test", "--loglevel", "INFO", *options],
                env={**project.environ, "C_FORCE_ROOT": "1"}, cwd=project.folder,
                stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip

    def said(self) -> str:
        return self.output.read_text(errors="replace")

    def until_ready(self) -> None:
        wait_for(lambda: " ready." in self.said() or self.process.poll() is not None)
        assert self.process.poll() is None, self.said()

    def stop(self) -> int:
        """As an operator does: it finishes what it has begun."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)

    def kill(self) -> None:
        """Kill -9, children included."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(PATIENCE_S)


def wait_for(condition: Callable[[], Any], timeout_s: float = PATIENCE_S) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.05)


@contextmanager
def redis(folder: Path) -> Iterator[str]:
    """The address of a Redis of our own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "",
         "--dir", str(folder)],
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        wait_for(lambda: not socket.socket().connect_ex(("127.0.0.1", port)))
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        process.kill()
        process.wait()
