"""What a caller did wrong, by SQS's codes. SDKs choose exceptions and retries by them.

Owns the codes and how each is called in the two forms: the JSON form names a shape, the query form
a code, and the two differ for some. Knows nothing of HTTP beyond the status.
"""

from __future__ import annotations

from typing import Final

from fila.core.rejection import Rejection
from fila.error_codes import (
    CHANNEL_FULL,
    FORBIDDEN,
    INTERNAL_ERROR,
    NODE_NOT_READY,
    NOT_A_DLQ,
    PARENT_QUEUE_NOT_FOUND,
    QUEUE_ALREADY_EXISTS,
    QUEUE_FULL,
    QUEUE_NOT_FOUND,
    STORAGE_ERROR,
    UNAUTHORIZED,
)

_OLD: Final = "AWS.SimpleQueueService."
# Shapes of the JSON form that have another code in the query form.
_QUERY_CODES: Final = {
    "QueueDoesNotExist": _OLD + "NonExistentQueue",
    "QueueNameExists": "QueueAlreadyExists",
    "BatchEntryIdsNotDistinct": _OLD + "BatchEntryIdsNotDistinct",
    "BatchRequestTooLong": _OLD + "BatchRequestTooLong",
    "EmptyBatchRequest": _OLD + "EmptyBatchRequest",
    "InvalidBatchEntryId": _OLD + "InvalidBatchEntryId",
    "TooManyEntriesInBatchRequest": _OLD + "TooManyEntriesInBatchRequest",
    "MessageNotInflight": _OLD + "MessageNotInflight",
    "UnsupportedOperation": _OLD + "UnsupportedOperation",
}
_STATUS: Final = {
    "AccessDenied": 403,
    "InvalidClientTokenId": 403,
    "MissingAuthenticationToken": 403,
    "SignatureDoesNotMatch": 403,
    "ResourceNotFoundException": 404,
    "InternalFailure": 500,
    "ServiceUnavailable": 503,
}
_OF_REJECTIONS: Final = {
    QUEUE_NOT_FOUND: "QueueDoesNotExist",
    QUEUE_ALREADY_EXISTS: "QueueNameExists",
    FORBIDDEN: "AccessDenied",
    UNAUTHORIZED: "InvalidClientTokenId",
    CHANNEL_FULL: "RequestThrottled",
    QUEUE_FULL: "RequestThrottled",
    NOT_A_DLQ: "ResourceNotFoundException",
    PARENT_QUEUE_NOT_FOUND: "ResourceNotFoundException",
    STORAGE_ERROR: "ServiceUnavailable",
    NODE_NOT_READY: "ServiceUnavailable",
    INTERNAL_ERROR: "InternalFailure",
}


class SqsError(Exception):
    """A request, or one entry of a batch, that is not carried out, and why."""

    def __init__(self, code: str, message: str, retry_after_s: int = 0) -> None:
        super().__init__(message)
        self.code = code
        self.retry_after_s = retry_after_s

    @property
    def query_code(self) -> str:
        return _QUERY_CODES.get(self.code, self.code)

    @property
    def status(self) -> int:
        return _STATUS.get(self.code, 400)

    @property
    def sender_fault(self) -> bool:
        return self.status < 500 and self.code != "RequestThrottled"


def of(why: Rejection) -> SqsError:
    """What the broker says no to."""
    return SqsError(_OF_REJECTIONS.get(why.code, "InvalidParameterValue"), why.message)


def invalid(name: str, why: str) -> SqsError:
    return SqsError("InvalidParameterValue", f"{name}: {why}")


def missing(name: str) -> SqsError:
    return SqsError("MissingParameter", f"the parameter {name} is missing")


def unsupported(what: str) -> SqsError:
    return SqsError("UnsupportedOperation", what)
