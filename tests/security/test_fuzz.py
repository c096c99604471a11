"""The frame fuzzer of tests/e2e against a broker behind TLS that asks for keys.

Once from inside, with the superadmin's key, and once from the doorstep, with none.
"""

from __future__ import annotations

import socket
import ssl
from pathlib import Path
from typing import Any

import pytest

from fila.wire import bodies
from tests.e2e import fuzz
from tests.e2e.peer import Peer
from tests.e2e.process import Broker

CERTS = Path(__file__).parents[1] / "client" / "certs"
KEY = "root"
SETTINGS = {
    "log.level": "warning",
    "auth.bootstrap_apikey": KEY,
    "tls.cert_file": CERTS / "server.pem",
    "tls.key_file": CERTS / "server.key",
}


class Secured(ssl.SSLSocket):
    """An end of the connection shows as it does without TLS."""

    def recv(self, *arguments: Any) -> bytes:
        try:
            return super().recv(*arguments)
        except ssl.SSLError as error:
            raise ConnectionResetError(str(error)) from error

    def sendall(self, *arguments: Any) -> None:
        try:
            super().sendall(*arguments)
        except ssl.SSLError as error:
            raise ConnectionResetError(str(error)) from error


class SecuredPeer(Peer):
    """Says the key when it shakes hands."""

    key: str | None = KEY

    def __init__(self, address: tuple[str, int], handshake: bool = True, **options: Any) -> None:
        super().__init__(address, handshake=False, **options)
        context = ssl.create_default_context(cafile=str(CERTS / "ca.pem"))
        context.sslsocket_class = Secured
        self.socket: socket.socket = context.wrap_socket(self.socket, server_hostname="localhost")
        if handshake:
            self.request(bodies.Handshake(1, KEY), bodies.HandshakeOk)

    def post(self, record: tuple[Any, ...], request_id: int | None = None) -> int:
        if record == bodies.Handshake(1, None):
            record = bodies.Handshake(1, self.key)
        return super().post(record, request_id)


class Stranger(SecuredPeer):
    key = None


class SecuredBroker(Broker):
    def peer(self, **options: Any) -> Peer:
        return SecuredPeer(self.address, **options)


@pytest.mark.parametrize("attacker", [SecuredPeer, Stranger], ids=["inside", "doorstep"])
def test_hostile_frames_hurt_nobody_behind_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attacker: type[Peer]
) -> None:
    monkeypatch.setattr(fuzz, "Peer", attacker)
    with SecuredBroker(tmp_path / "data", SETTINGS) as broker:
        report = fuzz.Fuzz(broker, seed=11).run(frames=3_000)
        assert report.broken == [], report.text()
        assert report.healthy_rounds > 5
        if attacker is Stranger:
            assert report.answers["Unauthorized"] > 20
            assert report.answers["results"] == 0
        else:
            assert report.answers["results"] > 20
        assert broker.stop() == 0
