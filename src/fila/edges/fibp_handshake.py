"""FIBP's handshake: which version, and by whose key. Until then a connection is a stranger's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fila.broker.session import Session
from fila.core.rejection import Rejection
from fila.wire import bodies, errors, layouts
from fila.wire import opcodes as op

if TYPE_CHECKING:
    from fila.edges.fibp import FibpConnection

LATE_S: Final = 1.0  # before the answer to one wrong key too many


def handshake(connection: FibpConnection, session: Session, request_id: int, body: bytes) -> None:
    version, api_key = layouts.decode(bodies.Handshake, body)
    if version != layouts.PROTOCOL_VERSION:
        text = f"version {version} is not spoken here; use version {layouts.PROTOCOL_VERSION}"
        metadata = {"max_version": str(layouts.PROTOCOL_VERSION)}
        connection.turn_away(request_id, Rejection(errors.UNSUPPORTED_VERSION, text), metadata)
        return
    refused = session.admit(api_key)
    if refused is None:
        connection.admitted()
        frame_bytes_max = connection.limits.frame_bytes_max
        ok = bodies.HandshakeOk(layouts.PROTOCOL_VERSION, 0, frame_bytes_max)
        connection.reply(op.HANDSHAKE_OK, request_id, layouts.encode(ok))
    elif session.late:
        text = f"{refused.message}; too many wrong keys came from this address"
        connection.turn_away_late(request_id, Rejection(refused.code, text), LATE_S)
    else:
        connection.turn_away(request_id, refused, {})
