"""The states of a connection, as a table per side.

Owns which operation may arrive when, and what follows. Each side looks up what it *receives*; the
caller answers a refusal with an Error frame (server) or a protocol error (client). Never touches
frames, bodies or sockets.
"""

from enum import Enum
from typing import Final, NamedTuple

from fila.wire import opcodes as op
from fila.wire.errors import INVALID_FRAME


class State(Enum):
    OPENING = "opening"  # nothing has been agreed yet: the handshake is the only thing allowed
    OPEN = "open"
    CLOSED = "closed"


class Refusal(NamedTuple):
    code: int
    message: str
    fatal: bool


Table = dict[State, dict[int, State]]

# What a server may receive.
SERVER: Final[Table] = {
    State.OPENING: {op.HANDSHAKE: State.OPEN},
    State.OPEN: {
        **dict.fromkeys(sorted(op.FROM_CLIENT - {op.HANDSHAKE}), State.OPEN),
        op.DISCONNECT: State.CLOSED,
    },
    State.CLOSED: {},
}

# What a client may receive. An Error in reply to the handshake ends the connection.
CLIENT: Final[Table] = {
    State.OPENING: {
        op.HANDSHAKE_OK: State.OPEN,
        op.ERROR: State.CLOSED,
        op.DISCONNECT: State.CLOSED,
    },
    State.OPEN: {
        **dict.fromkeys(sorted(op.FROM_SERVER - {op.HANDSHAKE_OK}), State.OPEN),
        op.DISCONNECT: State.CLOSED,
    },
    State.CLOSED: {},
}


def receive(table: Table, state: State, opcode: int) -> State | Refusal:
    """The state after this operation arrives, or why it may not.

    Before the handshake a stray operation is fatal: the peer speaks something else. Afterwards it
    costs the sender that one request, so that an old peer survives a new operation.
    """
    following = table[state].get(opcode)
    if following is not None:
        return following
    name = op.name_of(opcode)
    if state is State.OPENING:
        expected = " or ".join(op.name_of(allowed) for allowed in table[state])
        return Refusal(INVALID_FRAME, f"expected {expected} first, got {name}", True)
    if state is State.CLOSED:
        return Refusal(INVALID_FRAME, f"{name} after the connection was closed", True)
    if opcode in op.NAMES:
        return Refusal(INVALID_FRAME, f"{name} is not expected here", False)
    return Refusal(INVALID_FRAME, f"unknown {name}", False)
