"""The demo's own broker: a process on a free port, on a directory that goes away with it.

Owns that process from start to end. It is told nothing by the user's environment or files, and
changes none.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from fila.cli.failure import Failure

_START_S: Final = 20.0
_STOP_S: Final = 6.0
_POLL_S: Final = 0.02


@contextmanager
def own_broker() -> Iterator[str]:
    """Yields the address of a broker that lives as long as the `with` block."""
    with TemporaryDirectory(prefix="fila-demo-") as directory:
        home = Path(directory)
        process = _start(home)
        try:
            yield _address(process, home)
        finally:
            process.terminate()
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _start(home: Path) -> subprocess.Popen[bytes]:
    config = home / "fila.toml"
    config.write_text("")  # an empty file: all defaults, whatever lies in the working directory
    environment = {name: value for name, value in os.environ.items() if name[:5] != "FILA_"}
    environment["FILA_PORT_FILE"] = str(home / "port")
    command = [sys.executable, "-m", "fila.server.main", "--config", str(config)]
    command += ["--listen", "127.0.0.1:0", "--data-dir", str(home / "data")]
    with open(home / "log", "wb") as log:
        return subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # Ctrl-C is for us; the broker goes after its clients
        )


def _address(process: subprocess.Popen[bytes], home: Path) -> str:
    port_file = home / "port"
    deadline = time.monotonic() + _START_S
    while not port_file.exists():
        if process.poll() is not None:
            raise _not_started(home)
        if time.monotonic() > deadline:
            raise Failure(f"the broker did not start within {_START_S:.0f} s")
        time.sleep(_POLL_S)
    return port_file.read_text().strip()


def _not_started(home: Path) -> Failure:
    lines = (home / "log").read_text(errors="replace").strip().splitlines() or ["no reason given"]
    hint = 'pip install "fila[server]"' if "ModuleNotFoundError" in lines[-1] else ""
    return Failure(f"the broker did not start: {lines[-1]}", hint)
