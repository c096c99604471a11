"""What can go wrong, one exception per cause.

Owns the SDK's exception tree and the path from a wire code to an exception with a text a person can
act on. `retryable` says whether the same call may succeed later, unchanged; for wire codes the
catalogue decides. Never touches sockets or state.

    FilaError
      QueueNotFoundError … InternalError     the broker said no; `code` is the wire code
      BatchError                             some items of a batch were refused; see `results`
      ConnectionLostError                    the connection broke before the answer came
        ConnectFailedError                   it could not be opened in the first place
      RequestTimeoutError                    no answer in time
      ClientClosedError                      the client was closed
      ProtocolError                          the peer does not speak FIBP properly
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from fila.wire import errors as codes

_RETRYABLE: Final = frozenset(entry.code for entry in codes.CATALOGUE if entry.retryable)


class FilaError(Exception):
    """The root of everything the SDK raises on purpose."""

    code: int | None = None
    retryable: bool = False

    def __init__(self, message: str, metadata: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.metadata: dict[str, str] = dict(metadata or {})

    def again(self) -> "FilaError":
        """A copy to raise: one failure may end many calls, each with its own traceback."""
        return type(self)(self.message, self.metadata)


class _RefusalError(FilaError):
    """The broker said no; whether later may help is the catalogue's to say."""

    def __init_subclass__(cls) -> None:
        cls.retryable = cls.code in _RETRYABLE


class QueueNotFoundError(_RefusalError):
    code = codes.QUEUE_NOT_FOUND


class MessageNotFoundError(_RefusalError):
    """The message is not leased to this consumer: unknown, pending again, or already settled."""

    code = codes.MESSAGE_NOT_FOUND


class QueueAlreadyExistsError(_RefusalError):
    code = codes.QUEUE_ALREADY_EXISTS


class LuaCompilationError(_RefusalError):
    code = codes.LUA_COMPILATION_ERROR


class StorageError(_RefusalError):
    code = codes.STORAGE_ERROR


class NotADLQError(_RefusalError):
    code = codes.NOT_A_DLQ


class ParentQueueNotFoundError(_RefusalError):
    code = codes.PARENT_QUEUE_NOT_FOUND


class InvalidConfigValueError(_RefusalError):
    code = codes.INVALID_CONFIG_VALUE


class OverloadedError(_RefusalError):
    """Nothing was stored; try again after `retry_after_ms`."""

    code = codes.CHANNEL_FULL

    @property
    def retry_after_ms(self) -> int | None:
        text = self.metadata.get("retry_after_ms", "")
        return int(text) if text.isascii() and text.isdigit() else None


class UnauthorizedError(_RefusalError):
    code = codes.UNAUTHORIZED


class ForbiddenError(_RefusalError):
    code = codes.FORBIDDEN


class NotLeaderError(_RefusalError):
    """Another node leads this queue; `leader_addr` says which, if the broker knew."""

    code = codes.NOT_LEADER

    @property
    def leader_addr(self) -> str | None:
        return self.metadata.get("leader_addr")


class UnsupportedVersionError(_RefusalError):
    code = codes.UNSUPPORTED_VERSION


class ProtocolError(_RefusalError):
    """One side sent what the other cannot accept."""

    code = codes.INVALID_FRAME


class ApiKeyNotFoundError(_RefusalError):
    code = codes.API_KEY_NOT_FOUND


class NodeNotReadyError(_RefusalError):
    code = codes.NODE_NOT_READY


class BatchNotFoundError(_RefusalError):
    """No lease batch of this name is open: acked, released, expired, or never leased."""

    code = codes.BATCH_NOT_FOUND


class SnapshotExpiredError(_RefusalError):
    """The snapshot being browsed was closed or its time is up; browse again."""

    code = codes.SNAPSHOT_EXPIRED


class VersionConflictError(_RefusalError):
    """The queue has another version than the one that was expected: somebody changed it."""

    code = codes.VERSION_CONFLICT


class QueueFullError(_RefusalError):
    """As much waits in the queue, or of the fairness key, as may. Where all of a request was
    refused for it, `metadata` has `retry_after_ms`, `depth` and `limit`."""

    code = codes.QUEUE_FULL


class InternalError(_RefusalError):
    code = codes.INTERNAL_ERROR


class ConnectionLostError(FilaError, ConnectionError):
    """The connection broke before the broker answered: the request may or may not have counted."""

    retryable = True


class ConnectFailedError(ConnectionLostError):
    """The broker could not be reached."""


class RequestTimeoutError(FilaError, TimeoutError):
    """No answer in time: the request may or may not have counted."""

    retryable = True


class ClientClosedError(FilaError):
    """The client was closed before or during the call."""


class BatchError(FilaError):
    """Some items of a batch were refused; the others went through.

    `results` has one entry per item, in order: what a single call would have returned, or the
    exception it would have raised. `errors` maps the index of each refused item to its exception.
    Retryable when every refused item is; only those should be sent again.
    """

    def __init__(self, results: Sequence[Any]) -> None:
        self.results = list(results)
        self.errors: dict[int, FilaError] = {
            index: result for index, result in enumerate(results) if isinstance(result, FilaError)
        }
        self.retryable = all(error.retryable for error in self.errors.values())
        first = next(iter(self.errors.values()))
        super().__init__(f"{len(self.errors)} of {len(self.results)} items failed; first: {first}")


def raise_refused(results: Sequence[Any]) -> None:
    """A BatchError if one of the results is an exception."""
    if any(isinstance(result, FilaError) for result in results):
        raise BatchError(results)


BY_CODE: Final[dict[int, type[FilaError]]] = {
    cause.code: cause
    for cause in (
        QueueNotFoundError,
        MessageNotFoundError,
        QueueAlreadyExistsError,
        LuaCompilationError,
        StorageError,
        NotADLQError,
        ParentQueueNotFoundError,
        InvalidConfigValueError,
        OverloadedError,
        UnauthorizedError,
        ForbiddenError,
        NotLeaderError,
        UnsupportedVersionError,
        ProtocolError,
        ApiKeyNotFoundError,
        NodeNotReadyError,
        BatchNotFoundError,
        SnapshotExpiredError,
        VersionConflictError,
        QueueFullError,
        InternalError,
    )
    if cause.code is not None
}

_MEANINGS: Final = {entry.code: entry.meaning for entry in codes.CATALOGUE}


def from_code(
    code: int, message: str | None, subject: str = "", metadata: Mapping[str, str] | None = None
) -> FilaError:
    """The exception for a wire code. Without the broker's own words, `subject` says what it met."""
    if not message:
        message = _text_for(code, subject)
    return BY_CODE.get(code, InternalError)(message, metadata)


def refused_enqueue(code: int, queue: str) -> FilaError:
    return from_code(code, None, f'queue "{queue}"')


def refused_settlement(code: int, queue: str, message_id: str) -> FilaError:
    if code == codes.MESSAGE_NOT_FOUND:
        return MessageNotFoundError(
            f'message "{message_id}" is not leased from queue "{queue}" by this client: '
            "it was settled already, its lease ran out, or it never existed"
        )
    if code == codes.QUEUE_NOT_FOUND:
        return from_code(code, None, f'queue "{queue}"')
    return from_code(code, None, f'message "{message_id}" of queue "{queue}"')


def why_not_connected(error: BaseException) -> str:
    """What an operating system's error means for somebody who wants to reach a broker."""
    if isinstance(error, ConnectionRefusedError) or "Connect call failed" in str(error):
        return "connection refused; is the broker running there?"
    if isinstance(error, TimeoutError):
        return "timed out"
    name = type(error).__name__
    if name == "gaierror":
        return f"the host name cannot be resolved ({error})"
    if name.startswith("SSL"):
        return f"TLS: {error}"
    return str(error) or name


def _text_for(code: int, subject: str) -> str:
    if code == codes.QUEUE_NOT_FOUND and subject:
        return f"{subject} does not exist"
    if code == codes.QUEUE_ALREADY_EXISTS and subject:
        return f"{subject} already exists"
    meaning = _MEANINGS.get(code) or f"the broker answered with {codes.name_of(code)}"
    return f"{subject}: {meaning}" if subject else meaning
