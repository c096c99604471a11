"""The error catalogue: one list of codes for the core, the wire and every SDK.

Owns the numbers, names and meanings of what can go wrong, and which of it is worth another try.
`spec/errors.json` and the table in `spec/fibp.md` are written from here. Imports nothing of Fila:
the core, which knows no wire, and the wire, which knows no core, both say what stands here.

A new code takes the next free number below 0xFF; a number once given is never reused.
"""

from typing import Final, NamedTuple

OK: Final = 0x00
QUEUE_NOT_FOUND: Final = 0x01
MESSAGE_NOT_FOUND: Final = 0x02
QUEUE_ALREADY_EXISTS: Final = 0x03
LUA_COMPILATION_ERROR: Final = 0x04
STORAGE_ERROR: Final = 0x05
NOT_A_DLQ: Final = 0x06
PARENT_QUEUE_NOT_FOUND: Final = 0x07
INVALID_CONFIG_VALUE: Final = 0x08
CHANNEL_FULL: Final = 0x09
UNAUTHORIZED: Final = 0x0A
FORBIDDEN: Final = 0x0B
NOT_LEADER: Final = 0x0C
UNSUPPORTED_VERSION: Final = 0x0D
INVALID_FRAME: Final = 0x0E
API_KEY_NOT_FOUND: Final = 0x0F
NODE_NOT_READY: Final = 0x10
BATCH_NOT_FOUND: Final = 0x11
SNAPSHOT_EXPIRED: Final = 0x12
VERSION_CONFLICT: Final = 0x13
QUEUE_FULL: Final = 0x14
INTERNAL_ERROR: Final = 0xFF


class ErrorEntry(NamedTuple):
    code: int
    name: str
    meaning: str
    # Keys an Error frame of this code carries in its metadata map.
    metadata: tuple[str, ...]
    # Whether the same call may succeed later, unchanged.
    retryable: bool = False


CATALOGUE: Final[tuple[ErrorEntry, ...]] = (
    ErrorEntry(OK, "Ok", "The operation was carried out.", ()),
    ErrorEntry(QUEUE_NOT_FOUND, "QueueNotFound", "No queue has this name.", ()),
    ErrorEntry(
        MESSAGE_NOT_FOUND,
        "MessageNotFound",
        "The id is not a UUID, or the message is not leased here: unknown, pending or finished.",
        (),
    ),
    ErrorEntry(QUEUE_ALREADY_EXISTS, "QueueAlreadyExists", "A queue has this name already.", ()),
    ErrorEntry(
        LUA_COMPILATION_ERROR,
        "LuaCompilationError",
        "A hook script does not compile or does not define its function.",
        (),
    ),
    ErrorEntry(
        STORAGE_ERROR,
        "StorageError",
        "The store could not do what was asked of it, or the queue is quarantined: its rows cannot "
        "be read, and `fila explain` says why.",
        (),
    ),
    ErrorEntry(NOT_A_DLQ, "NotADLQ", "The queue is not a dead letter queue.", ()),
    ErrorEntry(
        PARENT_QUEUE_NOT_FOUND,
        "ParentQueueNotFound",
        "The queue a dead letter queue belongs to no longer exists.",
        (),
    ),
    ErrorEntry(
        INVALID_CONFIG_VALUE,
        "InvalidConfigValue",
        "A setting, name or number is outside what it may be.",
        (),
    ),
    ErrorEntry(
        CHANNEL_FULL,
        "ChannelFull",
        "The broker is overloaded; nothing was stored; try again after the time given.",
        ("retry_after_ms",),
        retryable=True,
    ),
    ErrorEntry(UNAUTHORIZED, "Unauthorized", "The API key is missing, wrong or expired.", ()),
    ErrorEntry(FORBIDDEN, "Forbidden", "The API key lacks the permission the text names.", ()),
    ErrorEntry(
        NOT_LEADER,
        "NotLeader",
        "Another node leads this queue; ask there.",
        ("leader_addr",),
        retryable=True,
    ),
    ErrorEntry(
        UNSUPPORTED_VERSION,
        "UnsupportedVersion",
        "The server does not speak this version of the protocol.",
        ("max_version",),
    ),
    ErrorEntry(
        INVALID_FRAME,
        "InvalidFrame",
        "A frame or its body is malformed, unknown, or out of place.",
        (),
    ),
    ErrorEntry(API_KEY_NOT_FOUND, "ApiKeyNotFound", "No API key has this id.", ()),
    ErrorEntry(
        NODE_NOT_READY,
        "NodeNotReady",
        "The node is starting; try again in a moment.",
        (),
        retryable=True,
    ),
    ErrorEntry(
        BATCH_NOT_FOUND,
        "BatchNotFound",
        "No lease batch of this name is open: it was acked, released, or its time ran out.",
        (),
    ),
    ErrorEntry(
        SNAPSHOT_EXPIRED,
        "SnapshotExpired",
        "The snapshot was closed or its time is up; browse again for a new one.",
        (),
    ),
    ErrorEntry(
        VERSION_CONFLICT,
        "VersionConflict",
        "The queue has another version than the one that was expected: somebody changed it; look "
        "at what it is now.",
        (),
    ),
    ErrorEntry(
        QUEUE_FULL,
        "QueueFull",
        "As much waits in the queue, or of the message's fairness key, as may; it was not stored; "
        "try again when consumers caught up.",
        ("retry_after_ms", "depth", "limit"),
        retryable=True,
    ),
    ErrorEntry(
        INTERNAL_ERROR, "InternalError", "The broker failed unexpectedly; its log says why.", ()
    ),
)

NAMES: Final[dict[int, str]] = {entry.code: entry.name for entry in CATALOGUE}


def name_of(code: int) -> str:
    """The code's name, or its number in hex when the catalogue does not know it."""
    return NAMES.get(code) or f"error 0x{code:02X}"
