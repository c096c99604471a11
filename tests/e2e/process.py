"""A broker process under test: started, stopped, killed and started again on one data directory.

The process is `fila.testing`'s; here it speaks FIBP, dies with the tests and tells what it uses.
`FILA_E2E_SERVER` names another command to test, for example an installed `fila-server`.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from fila.testing.process import ServerProcess
from tests.e2e.peer import Peer

STOP_S = 30.0
_LEASH = Path(__file__).with_name("leash.py")


class Broker(ServerProcess):
    """One data directory and, at most of the times, one process that serves it."""

    def __init__(
        self,
        data_dir: Path,
        settings: Mapping[str, object] | None = None,
        limits: Mapping[str, int] | None = None,
    ) -> None:
        """`settings` are `section.key` → value; `limits` are resource → limit, `NOFILE` → 64."""
        super().__init__(data_dir, settings)
        self.limits = limits or {}
        self.server = server_command()

    @property
    def address(self) -> tuple[str, int]:
        return self.endpoint

    def command(self) -> list[str]:
        return [*leash(self.limits), *self.server]

    def wait(self, timeout_s: float = STOP_S) -> int:
        return super().wait(timeout_s)

    def peer(self, **options: object) -> Peer:
        """A connection that has shaken hands."""
        return Peer(self.address, **options)  # type: ignore[arg-type]

    def rss_bytes(self) -> int:
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("no VmRSS: has the broker ended?\n" + self.log())

    def cpu_s(self) -> float:
        """Processor time it has used, user and system."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def leash(limits: Mapping[str, int]) -> list[str]:
    """What stands before a command that is to end with this process."""
    return [sys.executable, "-ISs", str(_LEASH), str(os.getpid()), json.dumps(dict(limits))]


def server_command() -> list[str]:
    named = os.environ.get("FILA_E2E_SERVER")
    return shlex.split(named) if named else [sys.executable, "-m", "fila.server.main"]


def wait_until(condition: Callable[[], object], timeout_s: float, what: str) -> None:
    """Look every few milliseconds until the condition holds."""
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, f"waited {timeout_s} s for {what}"
        time.sleep(0.005)
