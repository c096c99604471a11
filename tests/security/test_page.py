"""docs/security.md makes a broker secure: its commands run as they stand, in an empty directory."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fila import FilaClient, FilaError
from fila.testing.process import ServerProcess
from tests.security.certificates import OPENSSL

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
BLOCK = re.compile(r"^```(bash|toml|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)

pytestmark = pytest.mark.skipif(OPENSSL is None, reason="openssl is not installed")


class Reader:
    """Somebody who follows the page."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.address = "localhost:5555"
        self.server: ServerProcess | None = None
        self.environ = {
            **{name: text for name, text in os.environ.items() if not name.startswith("FILA_")},
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "XDG_CONFIG_HOME": str(place / "config"),
        }

    def run(self, language: str, block: str) -> str:
        block = block.replace("localhost:5555", self.address)
        shell = ["bash", "-euo", "pipefail", "-c"]
        command = shell if language == "bash" else [sys.executable, "-c"]
        done = subprocess.run(
            [*command, block],
            env=self.environ,
            cwd=self.place,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, f"{block}\n--- said\n{done.stdout}{done.stderr}"
        return done.stdout

    def bootstrap_key(self) -> str:
        return (self.place / "bootstrap.key").read_text().strip()

    def start(self, bootstrap: bool) -> None:
        own = {"bootstrap_apikey": self.bootstrap_key()} if bootstrap else {}
        self.server = ServerProcess(self.place / "data", own).start()
        self.address = f"localhost:{self.server.endpoint[1]}"

    def stop(self) -> None:
        if self.server is not None:
            assert self.server.stop() == 0
            self.server = None


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    made = Reader(tmp_path)
    yield made
    made.stop()


def test_the_page_secures_a_broker(reader: Reader) -> None:
    blocks = BLOCK.findall(PAGE.read_text())
    tokens: dict[str, str] = {}
    for language, block in blocks:
        if language == "toml":
            (reader.place / "fila.toml").write_text(block)
            continue
        if language == "python":
            block = block.replace("TOKEN", tokens["billing"])
        said = reader.run(language, block)
        if "> bootstrap.key" in block:
            reader.start(bootstrap=True)
        tokens |= dict(re.findall(r'Created API key "(\w+)"\n.*\nToken      : (\w+)', said))
    assert set(tokens) == {"ops", "billing"}

    # What the page promises of the broker it made.
    tls = {"tls_ca": str(reader.place / "ca.pem")}
    pair = {"tls_cert": f"{reader.place}/client.pem", "tls_key": f"{reader.place}/client.key"}
    for options in (
        {},
        {"api_key": tokens["ops"]},
        tls | {"api_key": tokens["ops"]},
        tls | pair,
        tls | pair | {"api_key": tokens["billing"]},  # revoked by the last block
    ):
        with pytest.raises(FilaError):
            FilaClient(reader.address, reconnect=False, connect_timeout=3, **options)  # type: ignore[arg-type]
    reader.stop()
    reader.start(bootstrap=False)
    bootstrap = reader.bootstrap_key()
    with pytest.raises(FilaError):
        FilaClient(reader.address, reconnect=False, api_key=bootstrap, **tls, **pair)  # type: ignore[arg-type]
    with FilaClient(reader.address, api_key=tokens["ops"], **tls, **pair) as client:  # type: ignore[arg-type]
        assert [one.name for one in client.list_queues()] == ["orders", "orders.dlq"]
