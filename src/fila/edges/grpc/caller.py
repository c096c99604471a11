"""A caller: one API key on one HTTP/2 connection, with its session and its calls.

gRPC says who calls with every call. Calls with the same key on one connection share a session, as
the requests on a FIBP connection do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fila.broker.session import Session, Sessions
from fila.core.effect import Delivery
from fila.core.rejection import Rejection
from fila.edges.grpc import status as grpc_status

if TYPE_CHECKING:
    from fila.edges.grpc.call import Call
    from fila.edges.grpc.connection import GrpcConnection
    from fila.edges.grpc.service import ConsumeCall


class Caller:
    """The session's connection to its client."""

    def __init__(
        self, connection: GrpcConnection, sessions: Sessions, name: str, peer: str
    ) -> None:
        self._connection = connection
        self._name = name  # under which the connection knows it
        self.calls: set[Call] = set()
        self.consumers: dict[str, ConsumeCall] = {}
        self.session: Session = sessions.open(self, peer)

    def admit(self, secret: str | None) -> Rejection | None:
        return self.session.admit(secret)

    def close(self) -> None:
        """What its consumers hold stays leased."""
        self.consumers.clear()
        self.session.close()

    # --- what the broker and the session send (ClientConnection)

    def send(self, data: bytes) -> None:
        raise AssertionError("answers go to the calls themselves")

    def deliver(self, delivery: Delivery) -> None:
        call = self.consumers.get(delivery.consumer.id)
        if call is not None:
            call.deliver(delivery)

    def consumer_ended(self, consumer: str, why: Rejection) -> None:
        call = self.consumers.pop(consumer, None)
        self.session.forget(consumer)
        if call is not None:
            try:
                call.end(grpc_status.of(why))
            except Exception as error:
                self._connection.fail_soon(error)

    def flush(self) -> None:
        self._connection.flush()

    def takes_more(self) -> bool:
        return self._connection.takes_more()

    def expelled(self, why: Rejection) -> None:
        status = grpc_status.of(why)
        self.consumers.clear()
        for call in list(self.calls):
            call.expel(status)
        self._connection.forget(self._name)
        self.close()
