"""PostgreSQL: a table as a queue, SELECT … FOR UPDATE SKIP LOCKED."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from bench.rivals import install
from bench.rivals.install import InstallError
from bench.rivals.servers.running import Running, free_port, version_of, wait_for
from bench.system import process

# What a dedicated server of this size would be given; flushing stays on.
SETTINGS = {
    "shared_buffers": "512MB",
    "max_wal_size": "4GB",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "wal_compression": "off",
    "autovacuum_naptime": "10s",
    "listen_addresses": "127.0.0.1",
}


def start(place: Path) -> Running:
    server = install.program("postgresql", "usr/lib/postgresql/*/bin/postgres")
    env = install.environment()
    user = None
    data = place / "data"
    data.mkdir()
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        user = "nobody"
        for path in (place, data):
            shutil.chown(path, user)
    made = subprocess.run(
        [str(server.with_name("initdb")), "-D", str(data), "-U", "bench", "-A", "trust"],
        env=env,
        user=user,
        cwd=place,
        capture_output=True,
        text=True,
    )
    if made.returncode:
        raise InstallError(f"initdb: {made.stderr.strip().splitlines()[-1]}")
    port = free_port()
    arguments = [str(server), "-D", str(data), "-p", str(port), "-k", str(place)]
    for name, value in SETTINGS.items():
        arguments += ["-c", f"{name}={value}"]
    child = process.start(arguments, place / "log", env, user, place)
    wait_for(child, port, place / "log")
    return Running(
        f"127.0.0.1:{port}",
        child,
        version_of(str(server), "--version", env=env),
        "SKIP LOCKED, 100 rows per transaction, NOTIFY to wake consumers; synchronous commit",
        "power loss",
    )
