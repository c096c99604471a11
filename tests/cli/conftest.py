"""A real broker process for the commands to talk to, and two ways to give a command.

`fila(...)` runs a command inside this process, which is fast; `shell(...)` starts a process of its
own, for what only a process has: standard input, signals, pipes.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fila import testing
from fila.cli.main import main

# Whoever started the tests in the background may have them ignore these, and children would too.
for _number, _usual in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(_number) == signal.SIG_IGN:
        signal.signal(_number, _usual)

COMMAND = [sys.executable, "-m", "fila.cli.main"]


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document that was printed."""
        (line,) = self.out.splitlines()
        return json.loads(line)

    @property
    def documents(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture(scope="session")
def backups(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the shared broker puts backups."""
    return tmp_path_factory.mktemp("shared") / "backups"


@pytest.fixture(scope="session")
def broker(backups: Path) -> Iterator[str]:
    """The address of a broker shared by all tests of a process."""
    with testing.broker({"backup.target": backups}) as running:
        yield running.address


@pytest.fixture
def fresh_broker() -> Iterator[str]:
    """The address of a broker without any queue."""
    with testing.broker() as running:
        yield running.address


@pytest.fixture(autouse=True)
def own_surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the contexts or the environment of whoever runs it."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("FILA_ADDR", raising=False)
    monkeypatch.delenv("FILA_API_KEY", raising=False)
    monkeypatch.setenv("COLUMNS", "100")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[..., Result]]:
    """A command as it is written: `run("queue", "list")`."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}

    def run_here(*argv: str) -> Result:
        capsys.readouterr()
        code = main(list(argv))
        seen = capsys.readouterr()
        return Result(code, seen.out, seen.err)

    yield run_here
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def fila(
    run: Callable[..., Result], broker: str, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Result]:
    """A command to the shared broker."""
    monkeypatch.setenv("FILA_ADDR", broker)
    return run


@pytest.fixture
def shell(broker: str) -> Callable[..., Result]:
    """A command to the shared broker in a process of its own."""

    def run_there(*argv: str, stdin: bytes = b"", timeout_s: float = 60.0) -> Result:
        done = subprocess.run(
            [*COMMAND, *argv],
            input=stdin,
            capture_output=True,
            timeout=timeout_s,
            env={**os.environ, "FILA_ADDR": broker},
            check=False,
        )
        return Result(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run_there


_numbers = itertools.count(1)


@pytest.fixture
def queue(fila: Callable[..., Result]) -> str:
    """The name of a queue that was just created."""
    name = f"orders-{next(_numbers)}"
    assert fila("queue", "create", name).code == 0
    return name
