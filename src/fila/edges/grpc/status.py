"""How a call ended: gRPC's status codes, what each rejection becomes, and the bytes of it."""

from __future__ import annotations

from typing import Final, NamedTuple

from fila.core.rejection import Rejection
from fila.edges.grpc import fields
from fila.wire import errors

OK: Final = 0
INVALID_ARGUMENT: Final = 3
DEADLINE_EXCEEDED: Final = 4
NOT_FOUND: Final = 5
ALREADY_EXISTS: Final = 6
PERMISSION_DENIED: Final = 7
RESOURCE_EXHAUSTED: Final = 8
FAILED_PRECONDITION: Final = 9
ABORTED: Final = 10
UNIMPLEMENTED: Final = 12
INTERNAL: Final = 13
UNAVAILABLE: Final = 14
UNAUTHENTICATED: Final = 16

MESSAGE_BYTES_MAX: Final = 1_024  # clients refuse trailers of more than 8 KiB

STATUS_OF: Final[dict[int, int]] = {
    errors.QUEUE_NOT_FOUND: NOT_FOUND,
    errors.MESSAGE_NOT_FOUND: NOT_FOUND,
    errors.QUEUE_ALREADY_EXISTS: ALREADY_EXISTS,
    errors.LUA_COMPILATION_ERROR: INVALID_ARGUMENT,
    errors.STORAGE_ERROR: INTERNAL,
    errors.NOT_A_DLQ: INVALID_ARGUMENT,
    errors.PARENT_QUEUE_NOT_FOUND: FAILED_PRECONDITION,
    errors.INVALID_CONFIG_VALUE: INVALID_ARGUMENT,
    errors.CHANNEL_FULL: RESOURCE_EXHAUSTED,
    errors.UNAUTHORIZED: UNAUTHENTICATED,
    errors.FORBIDDEN: PERMISSION_DENIED,
    errors.NOT_LEADER: UNAVAILABLE,
    errors.UNSUPPORTED_VERSION: UNIMPLEMENTED,
    errors.INVALID_FRAME: INVALID_ARGUMENT,
    errors.API_KEY_NOT_FOUND: NOT_FOUND,
    errors.NODE_NOT_READY: UNAVAILABLE,
    errors.BATCH_NOT_FOUND: NOT_FOUND,
    errors.SNAPSHOT_EXPIRED: FAILED_PRECONDITION,
    errors.VERSION_CONFLICT: ABORTED,
    errors.QUEUE_FULL: RESOURCE_EXHAUSTED,
    errors.INTERNAL_ERROR: INTERNAL,
}


class Status(NamedTuple):
    code: int
    message: str = ""


DONE: Final = Status(OK)

RESPONSE_BLOCK: Final = fields.status_200(
    [(b"content-type", b"application/grpc"), (b"grpc-accept-encoding", b"identity")]
)
OK_BLOCK: Final = fields.encode([(b"grpc-status", b"0")])


def of(why: Rejection) -> Status:
    return Status(STATUS_OF.get(why.code, INTERNAL), why.message)


def of_queue(queue: str, why: Rejection) -> Status:
    """A queue without a name is a mistake in the request, not a queue that is missing."""
    if not queue and why.code == errors.QUEUE_NOT_FOUND:
        return Status(INVALID_ARGUMENT, "a queue name is required")
    return of(why)


def trailers_block(status: Status) -> bytes:
    if not status.message:
        return fields.encode([(b"grpc-status", b"%d" % status.code)])
    return fields.encode(
        [(b"grpc-status", b"%d" % status.code), (b"grpc-message", _escaped(status.message))]
    )


def http_block(code: bytes, message: str) -> bytes:
    """For requests that are not gRPC at all."""
    name = b"\x08\x03" + code  # entry 8 of the static table names ":status"
    return name + fields.encode(
        [(b"content-type", b"text/plain"), (b"grpc-message", _escaped(message))]
    )


def _escaped(message: str) -> bytes:
    """Printable ASCII; everything else, and the percent sign, as %XX."""
    cut = message.encode(errors="replace")[:MESSAGE_BYTES_MAX].decode(errors="ignore").encode()
    return b"".join(
        [
            b"%c" % byte if 0x20 <= byte <= 0x7E and byte != 0x25 else b"%%%02X" % byte
            for byte in cut
        ]
    )
