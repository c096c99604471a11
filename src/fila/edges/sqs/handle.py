"""Receipt handles: one delivery of one message, as its receiver names it.

A handle is the key under which the message lies. A message that failed lies under another one
afterwards, so a handle of an earlier delivery names nothing any more, also after a restart.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as BadBase64
from typing import Final

from fila.core import rows
from fila.edges.sqs.faults import SqsError

KEY_BYTES: Final = rows.MESSAGE_KEY.size


def handle_of(key: bytes) -> str:
    return urlsafe_b64encode(key).decode()


def key_of(handle: object) -> bytes:
    """Raises SqsError for what was never a handle."""
    if isinstance(handle, str) and len(handle) <= 4 * KEY_BYTES:
        try:
            key = urlsafe_b64decode(handle.encode("ascii"))
        except (BadBase64, ValueError):
            key = b""
        if len(key) == KEY_BYTES:
            return key
    raise SqsError("ReceiptHandleIsInvalid", "the receipt handle is none of this broker")
