"""A broker process under test: started, stopped, killed and started again on one data directory.

Owns the process, its port file and its log. Every wait has an end and a condition; none is a fixed
sleep. `FILA_E2E_SERVER` names another command to test, for example an installed `fila-server`.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType

from tests.e2e.peer import Peer

READY_S = 20.0
STOP_S = 10.0
_LEASH = Path(__file__).with_name("leash.py")


class Broker:
    """One data directory and, at most of the times, one process that serves it."""

    def __init__(
        self,
        data_dir: Path,
        settings: Mapping[str, object] | None = None,
        limits: Mapping[str, int] | None = None,
    ) -> None:
        """`settings` are `section.key` → value; `limits` are resource → limit, `NOFILE` → 64."""
        self.data_dir = data_dir
        self.settings = dict(settings or {})
        self.listen = "127.0.0.1:0"
        self.address = ("", 0)
        self.port_file = data_dir.with_name(data_dir.name + ".port")
        self.log_file = data_dir.with_name(data_dir.name + ".log")
        self.limits = limits or {}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "the broker has not been started"
        return self._process

    def start(self) -> Broker:
        """Start and wait until it accepts connections."""
        self.launch()
        wait_until(lambda: self.port_file.exists() or self._ended(), READY_S, "a port file")
        assert not self._ended(), f"the broker did not start:\n{self.log()}"
        host, _, port = self.port_file.read_text().rpartition(":")
        self.address = (host, int(port))
        return self

    def launch(self) -> None:
        """Start without waiting."""
        assert self._process is None or self._ended(), "it is running already"
        self.port_file.unlink(missing_ok=True)
        environ = {name: text for name, text in os.environ.items() if not name.startswith("FILA_")}
        environ["FILA_PORT_FILE"] = str(self.port_file)
        for name, value in self.settings.items():
            environ["FILA_" + name.replace(".", "__").upper()] = str(value)
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                [*leash(self.limits), *server_command(), *self._arguments()],
                env=environ,
                cwd=self.data_dir.parent,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def stop(self) -> int:
        """Ask it to stop; its exit code."""
        if not self._ended():
            self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self, timeout_s: float = STOP_S) -> int:
        return self.process.wait(timeout_s)

    def kill(self) -> None:
        """SIGKILL: nothing of it runs any further."""
        self.process.kill()
        self.process.wait()

    def restart(self) -> Broker:
        """Kill it and start it again."""
        self.kill()
        return self.start()

    def peer(self, **options: object) -> Peer:
        """A connection that has shaken hands."""
        return Peer(self.address, **options)  # type: ignore[arg-type]

    def log(self) -> str:
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def rss_bytes(self) -> int:
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("no VmRSS: has the broker ended?\n" + self.log())

    def cpu_s(self) -> float:
        """Processor time it has used, user and system."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def alive(self) -> bool:
        return not self._ended()

    def _ended(self) -> bool:
        return self.process.poll() is not None

    def _arguments(self) -> list[str]:
        return ["--listen", self.listen, "--data-dir", str(self.data_dir)]

    def __enter__(self) -> Broker:
        return self if self._process is not None else self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None and not self._ended():
            self.kill()


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
