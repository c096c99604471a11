"""The kinds of listener a broker can have, and how one connects to each: TLS, keys, both, neither.

Owns peers that speak TLS and say a key. What they say besides is the business of their users.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from fila.wire import bodies
from tests.e2e.peer import Peer
from tests.e2e.process import Broker

CERTS = Path(__file__).parents[1] / "client" / "certs"
KEY = "root"
_TLS = {"tls.cert_file": CERTS / "server.pem", "tls.key_file": CERTS / "server.key"}
_CLIENTS = {"tls.ca_file": CERTS / "ca.pem"}
_KEYS: dict[str, object] = {"auth.bootstrap_apikey": KEY}


class Listener(NamedTuple):
    """How a broker listens, and what those who attack it have."""

    settings: dict[str, object]
    tls: bool = False
    certificate: bool = False
    key: str | None = None  # of the attackers; healthy clients always have what is asked for

    def broker(self, data_dir: Path) -> Broker:
        every = {"log.level": "warning", **self.settings}
        return _Broker(data_dir, every, self._peer(KEY if _asks(self.settings) else None))

    def attacker(self) -> Callable[..., Peer]:
        return self._peer(self.key)

    def _peer(self, key: str | None) -> Callable[..., Peer]:
        def connect(address: tuple[str, int], **options: Any) -> Peer:
            return _Peer(address, key=key, tls=self.tls, certificate=self.certificate, **options)

        return connect


LISTENERS = {
    "plain": Listener({}),
    "keys": Listener(_KEYS, key=KEY),
    "tls": Listener({**_TLS}, tls=True),
    "mtls": Listener({**_TLS, **_CLIENTS, **_KEYS}, tls=True, certificate=True, key=KEY),
    # No key: nothing but the handshake, and each is answered at once.
    "doorstep": Listener({**_TLS, **_KEYS, "auth.max_wrong_keys": 10_000}, tls=True),
}


def _asks(settings: dict[str, object]) -> bool:
    return "auth.bootstrap_apikey" in settings


class _Socket(ssl.SSLSocket):
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


class _Peer(Peer):
    """Says its key when it shakes hands."""

    def __init__(
        self,
        address: tuple[str, int],
        key: str | None,
        tls: bool,
        certificate: bool,
        handshake: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(address, handshake=False, **options)
        self._key = key
        if tls:
            context = ssl.create_default_context(cafile=str(CERTS / "ca.pem"))
            context.sslsocket_class = _Socket
            if certificate:
                context.load_cert_chain(CERTS / "client.pem", CERTS / "client.key")
            plain = self.socket
            self.socket: socket.socket = context.wrap_socket(plain, server_hostname="localhost")
        if handshake:
            self.request(bodies.Handshake(1, key), bodies.HandshakeOk)

    def post(self, record: tuple[Any, ...], request_id: int | None = None) -> int:
        if record == bodies.Handshake(1, None):
            record = bodies.Handshake(1, self._key)
        return super().post(record, request_id)


class _Broker(Broker):
    def __init__(
        self, data_dir: Path, settings: dict[str, object], connect: Callable[..., Peer]
    ) -> None:
        super().__init__(data_dir, settings)
        self._connect = connect

    def peer(self, **options: Any) -> Peer:
        return self._connect(self.address, **options)
