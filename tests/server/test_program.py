"""`fila-server` as the system sees it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.process import wait_until

PROGRAM = "import sys; from fila.server.program import main; sys.exit(main())"


@pytest.mark.parametrize("library", ["uvloop", "rocksdict", "lupa"])
def test_without_its_libraries_it_says_what_to_install(library: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.modules[{library!r}] = None; {PROGRAM}"],
        env={**os.environ, "FILA_DATA_DIR": str(tmp_path / "data")},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert library in line and "pip install 'fila-broker[server]'" in line


@pytest.mark.skipif(sys.platform != "linux", reason="the name is a courtesy of Linux")
def test_it_is_found_by_its_name(tmp_path: Path) -> None:
    port_file = tmp_path / "port"
    process = subprocess.Popen(
        [sys.executable, "-m", "fila.server.program", "--listen", "127.0.0.1:0"],
        env={
            **os.environ,
            "FILA_DATA_DIR": str(tmp_path / "data"),
            "FILA_PORT_FILE": str(port_file),
        },
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(port_file.exists, 60, "a port")
        proc = Path(f"/proc/{process.pid}")
        assert (proc / "comm").read_text() == "fila-server\n"
        shown = (proc / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
        assert shown == [b"fila-server", b"--listen", b"127.0.0.1:0"]
    finally:
        process.terminate()
        assert process.wait(20) == 0
