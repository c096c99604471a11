"""A broker of one scenario: started, frozen, killed and started again on one data directory.

Owns the process, its directory, its certificates and its key. Once started it keeps its port, so
that clients find it again.
"""

import asyncio
import os
import secrets
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

from harness.certificates import Certificates
from harness.places import SOURCE, server_command

READY_S = 60.0


class Broker:
    def __init__(self, place: Path, wanted: dict[str, Any], certificates: Certificates) -> None:
        """`wanted` is the scenario's [broker]: `tls` ("server" or "mutual"), `auth`, `settings`."""
        self.address = ""
        self.api_key = secrets.token_hex(16) if wanted.get("auth") else ""
        self._place = place
        self._wanted = wanted
        self._certificates = certificates
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0

    async def start(self) -> None:
        assert self._process is None, "it is running already"
        if not self._port:
            self._port = _free_port()
        self.address = f"127.0.0.1:{self._port}"
        port_file = self._place / "port"
        port_file.unlink(missing_ok=True)
        with (self._place / "log").open("ab") as log:
            self._process = subprocess.Popen(
                server_command(), env=self._environ(port_file), cwd=self._place,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        end = asyncio.get_running_loop().time() + READY_S
        while not port_file.exists():
            if self._process.poll() is not None:
                raise RuntimeError(f"the broker did not start:\n{self.log()}")
            if asyncio.get_running_loop().time() > end:
                raise RuntimeError(f"the broker was not ready within {READY_S:g} s:\n{self.log()}")
            await asyncio.sleep(0.01)

    async def kill(self) -> None:
        await self._end(signal.SIGKILL)

    async def stop(self) -> None:
        await self._end(signal.SIGTERM)

    def freeze(self) -> None:
        """It neither reads nor answers; its connections stay open."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def log(self) -> str:
        path = self._place / "log"
        return path.read_text(errors="replace")[-4000:] if path.exists() else ""

    async def _end(self, number: int) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGCONT)
            process.send_signal(number)
            await asyncio.to_thread(process.wait, 30)

    def _environ(self, port_file: Path) -> dict[str, str]:
        environ = {name: text for name, text in os.environ.items() if not name.startswith("FILA_")}
        environ["PYTHONPATH"] = os.pathsep.join(
            filter(None, (str(SOURCE), os.environ.get("PYTHONPATH")))
        )
        environ["FILA_SERVER__LISTEN_ADDR"] = self.address
        environ["FILA_DATA_DIR"] = str(self._place / "data")
        environ["FILA_PORT_FILE"] = str(port_file)
        tls = self._wanted.get("tls")
        if tls:
            environ["FILA_TLS__CERT_FILE"] = self._certificates.server
            environ["FILA_TLS__KEY_FILE"] = self._certificates.server_key
        if tls == "mutual":
            environ["FILA_TLS__CA_FILE"] = self._certificates.ca
        if self.api_key:
            environ["FILA_AUTH__BOOTSTRAP_APIKEY"] = self.api_key
        for name, value in self._wanted.get("settings", {}).items():
            environ["FILA_" + name.replace(".", "__").upper()] = str(value)
        return environ


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])
