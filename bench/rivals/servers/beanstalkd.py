"""Beanstalkd: binlog, flushed every second."""

from __future__ import annotations

from pathlib import Path

from bench.rivals import install
from bench.rivals.servers.running import Running, free_port, version_of, wait_for
from bench.system import process


def start(place: Path) -> Running:
    server = str(install.program("beanstalkd", "usr/bin/beanstalkd"))
    env = install.environment()
    port = free_port()
    (place / "binlog").mkdir()
    arguments = [server, "-l", "127.0.0.1", "-p", str(port), "-b", str(place / "binlog")]
    child = process.start([*arguments, "-f", "1000"], place / "log", env, cwd=place)
    wait_for(child, port, place / "log")
    return Running(
        f"127.0.0.1:{port}",
        child,
        version_of(server, "-v", env=env),
        "binlog, fsync every second; commands written 100 at a time through the client's socket",
        "process death; power loss but for a second",
    )
