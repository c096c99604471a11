"""NATS JetStream: a file stream with work-queue retention."""

from __future__ import annotations

from pathlib import Path

from bench.rivals import install
from bench.rivals.servers.running import Running, free_port, version_of, wait_for
from bench.system import process


def start(place: Path) -> Running:
    server = str(install.PYTHON.with_name("nats-server"))
    port = free_port()
    arguments = [server, "-js", "-sd", str(place), "-a", "127.0.0.1", "-p", str(port)]
    child = process.start(arguments, place / "log", cwd=place)
    wait_for(child, port, place / "log")
    return Running(
        f"127.0.0.1:{port}",
        child,
        version_of(server, "--version"),
        "file stream, work-queue retention, default sync interval (2 min); asynchronous publish, "
        "explicit acks",
        "process death",
    )
