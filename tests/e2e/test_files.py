"""Who may read what the broker writes to disk."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from pathlib import Path

from fila import FilaClient


def test_data_and_journal_are_readable_by_their_owner_alone(tmp_path: Path) -> None:
    data, port_file = tmp_path / "data", tmp_path / "port"
    server = subprocess.Popen(
        [sys.executable, "-m", "fila.server.main", "--listen", "127.0.0.1:0"],
        env={
            **os.environ,
            "FILA_DATA_DIR": str(data),
            "FILA_PORT_FILE": str(port_file),
            "FILA_JOURNAL__ENABLED": "true",
        },
        umask=0o022,
    )
    try:
        limit = time.monotonic() + 60
        while not port_file.exists() and time.monotonic() < limit:
            time.sleep(0.02)
        with FilaClient(port_file.read_text()) as client:
            client.create_queue("orders")
            client.enqueue("orders", {}, b"secret")
        server.terminate()
        assert server.wait(60) == 0
    finally:
        server.kill()
    found = [data, *data.rglob("*")]
    assert any(path.suffix == ".parquet" for path in found)
    for path in found:
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode & 0o077 == 0, f"{path.relative_to(tmp_path)} is {mode:o}"
    assert stat.S_IMODE(port_file.stat().st_mode) == 0o644
