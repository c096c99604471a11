"""What other brokers' own clients cost under the load of the SDKs' comparison.

The servers and where they come from are those of `bench.rivals`. What is compared is the client:
its CPU time and memory per message. Their rates are told too, but say what their server does.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.record import ROOT
from bench.rivals import install
from bench.rivals.servers import nats, redis
from bench.rivals.servers.running import Running

HERE = Path(__file__).parent
MODULES = install.PLACE / "node"
NODE_REDIS = "redis@4.7.0"
RUBY_REDIS = "ruby-redis"
LIMIT_S = 600.0
CLIENTS = {"redis-py": "redis", "nats.go": "nats", "node-redis": "redis", "redis-rb": "redis"}
BESIDE = {"redis-py": "python", "nats.go": "go", "node-redis": "js", "redis-rb": "ruby"}
_SERVERS: dict[str, Callable[[Path], Running]] = {"nats": nats.start, "redis": redis.start}


def prepare() -> None:
    """Fetch servers and clients, build the load programs."""
    install.prepare()
    modules = [str(MODULES), "--no-save", "--silent", "--no-package-lock", NODE_REDIS]
    if not (MODULES / "node_modules" / "redis").exists():
        MODULES.mkdir(parents=True, exist_ok=True)
        _run(HERE, "npm", "install", "--prefix", *modules)
    _run(HERE / "nats", "go", "build", "-o", str(install.PLACE / "nats-load"), ".")
    ruby_library()


def ruby_library() -> Path:
    """Where redis-rb is: the machine's, or a package that is unpacked for it."""
    return install.program(RUBY_REDIS, "usr/share/rubygems-integration/*/gems/redis-*/lib")


def program(name: str, role: str, address: str, queue: str, messages: int) -> list[str]:
    plain = [role, address, queue, str(messages)]
    return {
        "redis-py": [str(install.PYTHON), "-m", "bench.field.redis_py", *plain],
        "nats.go": [str(install.PLACE / "nats-load"), *plain],
        "node-redis": ["node", str(HERE / "redis.mjs"), *plain],
        "redis-rb": ["ruby", "-W0", "-I", str(ruby_library()), str(HERE / "redis.rb"), *plain],
    }[name]


def environment() -> dict[str, str]:
    return install.environment() | {
        "FILA_BENCH_MODULES": str(MODULES),
        "PYTHONPATH": str(ROOT),
    }


@contextmanager
def server(name: str) -> Iterator[Running]:
    """The server of a client, with its data in a directory that is removed."""
    with tempfile.TemporaryDirectory(prefix="fila-bench-") as place:
        running = _SERVERS[CLIENTS[name]](Path(place))
        try:
            yield running
        finally:
            running.stop()


def declare(name: str, address: str, queue: str) -> None:
    """Make the queue, before the load programs meet there. nats.go's makes it itself."""
    if CLIENTS[name] == "redis":
        _redis(address, "XGROUP", "CREATE", queue, "workers", "0", "MKSTREAM")


def forget(name: str, address: str, queue: str) -> None:
    if CLIENTS[name] == "redis":
        _redis(address, "DEL", queue)


def _redis(address: str, *command: str) -> None:
    host, port = address.rsplit(":", 1)
    cli = install.program("redis-tools", "usr/bin/redis-cli")
    _run(HERE, str(cli), "-h", host, "-p", port, *command)


def _run(place: Path, *arguments: str) -> None:
    if shutil.which(arguments[0]) is None:
        raise install.InstallError(f"{arguments[0]} is missing on this machine")
    done = subprocess.run(
        arguments, cwd=place, env=environment(), timeout=LIMIT_S, capture_output=True, text=True
    )
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise install.InstallError(f"{' '.join(arguments[:3])}: {' '.join(last)}")
