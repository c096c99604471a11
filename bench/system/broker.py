"""A Fila server of our own: a child process on a free loopback port with data of its own.

Owns starting, restarting and stopping it. Settings are given as `section.key`, the way the
configuration file names them.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from bench.system import form, process
from bench.system.process import ProcessError

_START_S = 60.0


class Broker:
    """Use as a context manager."""

    def __init__(
        self,
        place: Path,
        settings: Mapping[str, str] | None = None,
        compiled: bool | None = None,
        package: Path | None = None,
    ) -> None:
        """`package`: the directory to import `fila` from, for another version than this one."""
        place.mkdir(parents=True)
        self._package = package or form.package(compiled)
        self._place = place
        self._settings = settings or {}
        self.address = ""
        self.start_s = 0.0  # from the start of the process until it said where it listens

    def __enter__(self) -> Broker:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        port_file = self._place / "port"
        port_file.unlink(missing_ok=True)
        env = {
            name: value for name, value in os.environ.items() if not name.startswith("FILA_")
        } | {
            "PYTHONPATH": str(self._package),
            "FILA_PORT_FILE": str(port_file),
            "FILA_GUI_PORT_FILE": str(self._place / "gui"),
            "FILA_LOG__LEVEL": "warning",
        }
        for name, value in self._settings.items():
            section, key = name.split(".")
            env[f"FILA_{section}__{key}".upper()] = value
        arguments = [sys.executable, "-m", "fila.server.main", "--listen", "127.0.0.1:0"]
        arguments += ["--data-dir", str(self._place / "data")]
        begin = time.monotonic()
        self.child = process.start(arguments, self._place / "log", env, cwd=self._place)
        while not port_file.exists():
            if self.child.poll() is not None or time.monotonic() > begin + _START_S:
                process.end(self.child)
                raise ProcessError("the server did not start:\n" + self.log())
            time.sleep(0.002)
        self.start_s = time.monotonic() - begin
        self.address = port_file.read_text()

    def stop(self) -> None:
        code = process.end(self.child)
        if code not in (0, -9):
            raise ProcessError(f"the server ended with {code}:\n{self.log()}")

    def kill(self) -> None:
        """What a crash looks like."""
        self.child.kill()
        self.child.wait()

    def log(self) -> str:
        return process.tail(self._place / "log")

    @property
    def http_address(self) -> str:
        """Of a broker whose settings turn the HTTP port on."""
        return (self._place / "gui").read_text()

    @property
    def pid(self) -> int:
        return self.child.pid

    @property
    def rss_bytes(self) -> int:
        return process.rss_bytes(self.pid)

    @property
    def cpu_s(self) -> float:
        return process.cpu_s(self.pid)

    @property
    def disk_bytes(self) -> int:
        total = 0
        for path in (self._place / "data").rglob("*"):
            try:
                total += path.stat().st_size
            except OSError:
                pass  # compacted away meanwhile
        return total
