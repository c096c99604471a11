"""A broker that runs, and how to reach it."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.system import process
from bench.system.process import ProcessError


@dataclass
class Running:
    address: str
    child: subprocess.Popen[bytes]
    version: str
    settings: str  # in words, for the report
    survives: str  # what an acknowledged message survives
    helpers: Sequence[subprocess.Popen[bytes]] = field(default=())

    @property
    def pid(self) -> int:
        return self.child.pid

    def stop(self) -> None:
        process.end(self.child)
        for helper in self.helpers:
            process.end(helper)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for(
    child: subprocess.Popen[bytes], port: int, output: Path, timeout_s: float = 60.0
) -> None:
    """Until the port answers."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if child.poll() is not None or time.monotonic() > deadline:
                process.end(child)
                raise ProcessError(f"it did not start:\n{process.tail(output)}") from None
            time.sleep(0.05)


def version_of(*arguments: str, env: dict[str, str] | None = None) -> str:
    """The first line a program says about itself."""
    done = subprocess.run(arguments, capture_output=True, text=True, env=env)
    return ((done.stdout or done.stderr).strip().splitlines() or ["unknown"])[0]
