"""Writes a data directory for later releases to open: `tests/data/format-1-VERSION.tar.gz`.

    python tests/data/make.py tests/data/format-1-0.1.0.tar.gz

Run it with the sources of the release whose data it is to be (PYTHONPATH=…/src), when a format
changes and with every release; files once made stay. What is inside is `CONTENT` of
`tests/storage/test_upgrade.py`.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

from fila import FilaClient

FAIR = 'function on_enqueue(msg) return { fairness_key = msg.headers["tenant"] } end'
GIVE_UP = 'function on_failure(msg) return { action = "dlq" } end'


def main(archive: Path) -> None:
    with tempfile.TemporaryDirectory() as place:
        data = Path(place) / "data"
        (Path(place) / "fila.toml").touch()
        with socket.create_server(("127.0.0.1", 0)) as free:
            addr = f"127.0.0.1:{free.getsockname()[1]}"
        command = [sys.executable, "-m", "fila.server.main", "--listen", addr]
        server = subprocess.Popen([*command, "--data-dir", str(data)], cwd=place)
        try:
            fill(connected(addr))
        finally:
            server.terminate()
            assert server.wait(30) == 0
        with tarfile.open(archive, "w:gz") as tar:
            tar.add(data, "data", filter=lambda one: None if one.name.endswith("/LOG") else one)


def fill(client: FilaClient) -> None:
    client.create_queue("orders", on_enqueue=FAIR, on_failure=GIVE_UP)
    client.create_queue("empty")
    for number in range(10):
        for tenant in ("acme", "globex", "initech"):
            client.enqueue("orders", {"tenant": tenant}, f"{tenant} {number}".encode())
    taken = client.consume("orders", prefetch=1)
    for number, message in zip(range(6), taken, strict=False):
        if number < 4:
            message.ack()
        else:
            message.nack("it was refused")
    client.set_config("throttle.provider:mail", "5,10")
    client.create_api_key("billing")
    client.close()


def connected(addr: str) -> FilaClient:
    for _ in range(100):
        try:
            return FilaClient(addr)
        except Exception:
            time.sleep(0.1)
    raise SystemExit("the broker does not answer")


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
