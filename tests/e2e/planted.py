"""`python -m tests.e2e.planted SEED …`: the server, whose decoders fail at random over attackers.

A decoder that raises what nobody foresaw must cost the connection whose bytes it read, and nothing
else. Here the production server runs with such faults planted in whatever reads a client's bytes,
for every connection but those from `HEALTHY`. Owns the list of places; nothing of this is in the
package. At its end it says how often it failed on purpose.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import os
import random
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

HEALTHY = "127.0.0.2"  # connections from here are left alone
RATE = 0.02  # of all calls of a planted function
RARE = ("fila.edges.protocol_detection:", "h11:")  # called seldom, so they fail more often
RARE_RATE = 0.1
SAID = "planted failures: "

# Whatever reads a client's bytes, and what encodes an answer once the command was applied.
PLACES = (
    "fila.edges.protocol_detection:ProtocolDetector._detect",
    "fila.wire.frames:FrameDecoder.feed",
    "fila.wire.layouts:decode",
    "fila.wire.message_codec:encode_enqueue_results",
    "fila.wire.message_codec:encode_codes",
    "fila.edges.grpc.http2:Http2.feed",
    "fila.edges.grpc.http2:Http2._frame",
    "fila.edges.grpc.fields:FieldsDecoder.decode",
    "fila.edges.grpc.message_codec:encode_enqueued",
    "fila.edges.grpc.message_codec:encode_settled",
    "fila.edges.grpc.message_codec:message_prefix",
    "h11:Connection.receive_data",
    "h11:Connection.next_event",
)
READERS = (
    "fila.edges.protocol_detection:ProtocolDetector.data_received",
    "fila.edges.fibp:FibpConnection.data_received",
    "fila.edges.grpc.connection:GrpcConnection.data_received",
    "fila.edges.http.connection:HttpConnection.data_received",
)


class Plant:
    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._armed = False
        self.failed: Counter[str] = Counter()

    def sow(self) -> None:
        for place in READERS:
            _replace(place, self._reading)
        for place in PLACES:
            _replace(place, functools.partial(self._failing, place))
        # Each request that carries messages, and each method of gRPC, has a parser in a table.
        from fila.edges.fibp_messages import KINDS
        from fila.edges.grpc.connection import METHODS

        for opcode, kind in KINDS.items():
            KINDS[opcode] = kind._replace(read=self._failing(f"read {opcode}", kind.read))

        for path, method in METHODS.items():
            name = f"parse {method.request}"
            METHODS[path] = method._replace(parse=self._failing(name, method.parse))

    def _reading(self, function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def data_received(connection: Any, data: bytes) -> None:
            before = self._armed
            self._armed = _peer(connection) != HEALTHY
            try:
                function(connection, data)
            finally:
                self._armed = before

        return data_received

    def _failing(self, place: str, function: Callable[..., Any]) -> Callable[..., Any]:
        rate = RARE_RATE if place.startswith(RARE) else RATE

        @functools.wraps(function)
        def fails_at_random(*arguments: Any, **named: Any) -> Any:
            if self._armed and self._chance.random() < rate:
                self.failed[place] += 1
                self._armed = False  # one is enough; ending the connection in order is no decoder
                raise self._error()
            return function(*arguments, **named)

        return fails_at_random

    def _error(self) -> Exception:
        """None that a decoder foresees inside itself, and turns into a refusal: IndexError."""
        return self._chance.choice(
            (
                RuntimeError("planted"),
                AssertionError("planted"),
                KeyError("planted"),
                LookupError("planted"),
                TypeError("planted"),
                ValueError("planted"),
                OverflowError("planted"),
                RecursionError("planted"),
                MemoryError("planted"),
                BufferError("planted"),
                OSError("planted"),
                asyncio.InvalidStateError("planted"),
            )
        )


def _replace(place: str, wrap: Callable[[Any], Any]) -> None:
    module, _, path = place.partition(":")
    owner: Any = importlib.import_module(module)
    *owners, name = path.split(".")
    for one in owners:
        owner = getattr(owner, one)
    setattr(owner, name, wrap(getattr(owner, name)))


def _peer(connection: Any) -> str:
    transport = connection._transport
    peer = transport.get_extra_info("peername") if transport is not None else None
    return str(peer[0]) if peer else HEALTHY


def main() -> int:
    plant = Plant(int(sys.argv[1]))
    os.environ["FILA_GUI__LISTEN_ADDR"] = "127.0.0.1:0"
    os.environ["FILA_GUI_PORT_FILE"] = os.environ["FILA_PORT_FILE"] + ".http"
    from fila.server.main import main as serve

    plant.sow()
    try:
        return serve(sys.argv[2:])
    finally:
        print(f"{SAID}{sum(plant.failed.values())} {dict(plant.failed)}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
