"""Redis Streams: append-only file, flushed every second."""

from __future__ import annotations

from pathlib import Path

from bench.rivals import install
from bench.rivals.servers.running import Running, free_port, version_of, wait_for
from bench.system import process


def start(place: Path) -> Running:
    server = str(install.program("redis-server", "usr/bin/redis-server"))
    env = install.environment()
    port = free_port()
    settings = {
        "bind": "127.0.0.1",
        "port": str(port),
        "dir": str(place),
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "",
        "daemonize": "no",
    }
    arguments = [server]
    for name, value in settings.items():
        arguments += [f"--{name}", value]
    child = process.start(arguments, place / "log", env, cwd=place)
    wait_for(child, port, place / "log")
    return Running(
        f"127.0.0.1:{port}",
        child,
        version_of(server, "--version", env=env).split(" sha=")[0],
        "AOF everysec, no snapshots; XADD with approximate MAXLEN, consumer group, XACK",
        "process death; power loss but for a second",
    )
