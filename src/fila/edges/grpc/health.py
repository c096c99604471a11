"""The gRPC health service: whether the broker takes calls. Needs no API key: balancers have none.

A broker that answers at all serves; one that stops says so to those who watch.
"""

from __future__ import annotations

from typing import Any, Final

from fila.edges.grpc import message_codec
from fila.edges.grpc import status as grpc_status
from fila.edges.grpc.call import Method, parser
from fila.edges.grpc.status import Status
from fila.edges.grpc.unary import OneRequestCall, UnaryCall
from fila.edges.grpc.v1 import health_pb2 as pb

SERVICES: Final = ("", "fila.v1.FilaService", "fila.v1.FilaBulk", "fila.v1.FilaAdmin")
REQUEST_BYTES_MAX: Final = 4_096

_State = pb.HealthCheckResponse


class WatchCall(OneRequestCall):
    """Open until the client or the broker goes."""

    def requested(self, request: Any) -> None:
        known = request.service in SERVICES
        self._say(_State.SERVING if known else _State.SERVICE_UNKNOWN)

    def end(self, status: Status) -> None:
        if status.code == grpc_status.UNAVAILABLE and not self.ended:
            self._say(_State.NOT_SERVING)
        super().end(status)

    def _say(self, state: pb.HealthCheckResponse.ServingStatus) -> None:
        message = pb.HealthCheckResponse(status=state).SerializeToString()
        self.write(message_codec.message_prefix(len(message)) + message)


def _check(call: UnaryCall, request: pb.HealthCheckRequest) -> bytes | Status:
    if request.service not in SERVICES:
        return Status(grpc_status.NOT_FOUND, f'service "{request.service}" is not here')
    return pb.HealthCheckResponse(status=_State.SERVING).SerializeToString()


_REQUEST: Final = parser(pb.HealthCheckRequest)
METHODS: Final[dict[bytes, Method]] = {
    b"/grpc.health.v1.Health/Check": Method(
        UnaryCall, _REQUEST, _check, "HealthCheckRequest", REQUEST_BYTES_MAX, open_to_all=True
    ),
    b"/grpc.health.v1.Health/Watch": Method(
        WatchCall, _REQUEST, None, "HealthCheckRequest", REQUEST_BYTES_MAX, open_to_all=True
    ),
}
