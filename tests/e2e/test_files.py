"""Who may read what the broker writes to disk."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from fila import testing


def test_data_and_journal_are_readable_by_their_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0o022)  # as most users have it; the broker inherits it
    try:
        with testing.broker({"journal.enabled": True}, directory=tmp_path) as running:
            with running.client() as client:
                client.create_queue("orders")
                client.enqueue("orders", {}, b"secret")
            assert running.stop() == 0
    finally:
        os.umask(before)
    found = [running.data_dir, *running.data_dir.rglob("*")]
    assert any(path.suffix == ".parquet" for path in found)
    for path in found:
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode & 0o077 == 0, f"{path.relative_to(tmp_path)} is {mode:o}"
    assert stat.S_IMODE(running.port_file.stat().st_mode) == 0o644
