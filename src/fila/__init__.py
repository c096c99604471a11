"""Fila: a message broker with fair scheduling and per-key throttling.

    from fila import FilaClient

    client = FilaClient("localhost:5555")
    client.enqueue("orders", {"tenant": "acme"}, b"hello")

`FilaClient(...)` is synchronous; `await FilaClient.connect(...)` is asynchronous. Names are loaded
when first used, so that importing the package costs next to nothing.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from fila.client import errors
    from fila.client.aio import AsyncConsumer, AsyncFilaClient, AsyncMessage, AsyncReceipt
    from fila.client.browsing import BrowsedMessage, Page, Snapshot
    from fila.client.calls import Acl, ApiKey, Caller, QueueList, QueueSettings, QueueStats
    from fila.client.errors import (
        ApiKeyNotFoundError,
        BatchError,
        BatchNotFoundError,
        ClientClosedError,
        ConnectFailedError,
        ConnectionLostError,
        FilaError,
        ForbiddenError,
        InternalError,
        InvalidConfigValueError,
        LuaCompilationError,
        MessageNotFoundError,
        NodeNotReadyError,
        NotADLQError,
        NotLeaderError,
        OverloadedError,
        ParentQueueNotFoundError,
        ProtocolError,
        QueueAlreadyExistsError,
        QueueFullError,
        QueueNotFoundError,
        RequestTimeoutError,
        SnapshotExpiredError,
        StorageError,
        UnauthorizedError,
        UnsupportedVersionError,
        VersionConflictError,
    )
    from fila.client.event import ConnectionEvent
    from fila.client.leases import BatchCount, LeasedBatch
    from fila.client.message import Message, Metadata
    from fila.client.new_message import Enqueued, NewMessage
    from fila.client.options import ClientOptions
    from fila.client.sync import Consumer, FilaClient, Receipt, SyncMessage
    from fila.client.trace import trace_context
    from fila.wire.bodies import (
        ApiKeySummary,
        BrowseRange,
        FairnessKeyStats,
        OpenBatch,
        Permission,
        QueueSummary,
        QueueVersion,
        ThrottleKeyStats,
    )

_HOMES = {
    "fila.client.aio": ("AsyncConsumer", "AsyncFilaClient", "AsyncMessage", "AsyncReceipt"),
    "fila.client.browsing": ("BrowsedMessage", "Page", "Snapshot"),
    "fila.client.calls": ("Acl", "ApiKey", "Caller", "QueueList", "QueueSettings", "QueueStats"),
    "fila.client.errors": (
        "ApiKeyNotFoundError",
        "BatchError",
        "BatchNotFoundError",
        "ClientClosedError",
        "ConnectFailedError",
        "ConnectionLostError",
        "FilaError",
        "ForbiddenError",
        "InternalError",
        "InvalidConfigValueError",
        "LuaCompilationError",
        "MessageNotFoundError",
        "NodeNotReadyError",
        "NotADLQError",
        "NotLeaderError",
        "OverloadedError",
        "ParentQueueNotFoundError",
        "ProtocolError",
        "QueueAlreadyExistsError",
        "QueueFullError",
        "QueueNotFoundError",
        "RequestTimeoutError",
        "SnapshotExpiredError",
        "StorageError",
        "UnauthorizedError",
        "UnsupportedVersionError",
        "VersionConflictError",
    ),
    "fila.client.event": ("ConnectionEvent",),
    "fila.client.leases": ("BatchCount", "LeasedBatch"),
    "fila.client.message": ("Message", "Metadata"),
    "fila.client.new_message": ("Enqueued", "NewMessage"),
    "fila.client.options": ("ClientOptions",),
    "fila.client.sync": ("Consumer", "FilaClient", "Receipt", "SyncMessage"),
    "fila.client.trace": ("trace_context",),
    "fila.wire.bodies": (
        "ApiKeySummary",
        "BrowseRange",
        "FairnessKeyStats",
        "OpenBatch",
        "Permission",
        "QueueSummary",
        "QueueVersion",
        "ThrottleKeyStats",
    ),
}

_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Acl",
    "ApiKey",
    "ApiKeyNotFoundError",
    "ApiKeySummary",
    "AsyncConsumer",
    "AsyncFilaClient",
    "AsyncMessage",
    "AsyncReceipt",
    "BatchCount",
    "BatchError",
    "BatchNotFoundError",
    "BrowseRange",
    "BrowsedMessage",
    "Caller",
    "ClientClosedError",
    "ClientOptions",
    "ConnectFailedError",
    "ConnectionEvent",
    "ConnectionLostError",
    "Consumer",
    "Enqueued",
    "FairnessKeyStats",
    "FilaClient",
    "FilaError",
    "ForbiddenError",
    "InternalError",
    "InvalidConfigValueError",
    "LeasedBatch",
    "LuaCompilationError",
    "Message",
    "MessageNotFoundError",
    "Metadata",
    "NewMessage",
    "NodeNotReadyError",
    "NotADLQError",
    "NotLeaderError",
    "OpenBatch",
    "OverloadedError",
    "Page",
    "ParentQueueNotFoundError",
    "Permission",
    "ProtocolError",
    "QueueAlreadyExistsError",
    "QueueFullError",
    "QueueList",
    "QueueNotFoundError",
    "QueueSettings",
    "QueueStats",
    "QueueSummary",
    "QueueVersion",
    "Receipt",
    "RequestTimeoutError",
    "Snapshot",
    "SnapshotExpiredError",
    "StorageError",
    "SyncMessage",
    "ThrottleKeyStats",
    "UnauthorizedError",
    "UnsupportedVersionError",
    "VersionConflictError",
    "__version__",
    "errors",
    "trace_context",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "errors":
        value: Any = import_module("fila.client.errors")
    elif name in _HOME_OF:
        value = getattr(import_module(_HOME_OF[name]), name)
    else:
        raise AttributeError(f"module 'fila' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
