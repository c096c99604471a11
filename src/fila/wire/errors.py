"""Error codes as the wire's modules and the SDK use them, and the exceptions the codecs raise.

The codes are those of `fila.error_codes`, the one catalogue. Never touches frames or sockets.
"""

from fila.error_codes import API_KEY_NOT_FOUND as API_KEY_NOT_FOUND
from fila.error_codes import BATCH_NOT_FOUND as BATCH_NOT_FOUND
from fila.error_codes import CATALOGUE as CATALOGUE
from fila.error_codes import CHANNEL_FULL as CHANNEL_FULL
from fila.error_codes import FORBIDDEN as FORBIDDEN
from fila.error_codes import INTERNAL_ERROR as INTERNAL_ERROR
from fila.error_codes import INVALID_CONFIG_VALUE as INVALID_CONFIG_VALUE
from fila.error_codes import INVALID_FRAME as INVALID_FRAME
from fila.error_codes import LUA_COMPILATION_ERROR as LUA_COMPILATION_ERROR
from fila.error_codes import MESSAGE_NOT_FOUND as MESSAGE_NOT_FOUND
from fila.error_codes import NAMES as NAMES
from fila.error_codes import NODE_NOT_READY as NODE_NOT_READY
from fila.error_codes import NOT_A_DLQ as NOT_A_DLQ
from fila.error_codes import NOT_LEADER as NOT_LEADER
from fila.error_codes import OK as OK
from fila.error_codes import PARENT_QUEUE_NOT_FOUND as PARENT_QUEUE_NOT_FOUND
from fila.error_codes import QUEUE_ALREADY_EXISTS as QUEUE_ALREADY_EXISTS
from fila.error_codes import QUEUE_FULL as QUEUE_FULL
from fila.error_codes import QUEUE_NOT_FOUND as QUEUE_NOT_FOUND
from fila.error_codes import SNAPSHOT_EXPIRED as SNAPSHOT_EXPIRED
from fila.error_codes import STORAGE_ERROR as STORAGE_ERROR
from fila.error_codes import UNAUTHORIZED as UNAUTHORIZED
from fila.error_codes import UNSUPPORTED_VERSION as UNSUPPORTED_VERSION
from fila.error_codes import VERSION_CONFLICT as VERSION_CONFLICT
from fila.error_codes import ErrorEntry as ErrorEntry
from fila.error_codes import name_of as name_of


class WireError(Exception):
    """What the codecs raise; every cause is a subclass."""


class InvalidBody(WireError):  # noqa: N818  the protocol's word
    """A body that does not parse. The message names the field."""


class UnencodableField(WireError, ValueError):  # noqa: N818
    """A value that does not fit its field. The message names the field and its limit."""


class FrameError(WireError):
    """Bytes that are no frame, or a frame the decoder will not assemble.

    `fatal` means the byte stream can no longer be trusted: answer, then close.
    """

    def __init__(self, code: int, message: str, request_id: int, fatal: bool) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.request_id = request_id
        self.fatal = fatal
