"""How every operation's body travels: one table of layouts and the codec that follows it.

Owns `encode(body)` and `decode(type, bytes)` for all operations. It is the reference, and the only
codec for what is not hot; `hot` walks Enqueue, Delivery, Ack and Nack faster and must agree.
Never touches frames or sockets.

To add a field: append it to the record in `bodies` with a default of None and to its layout here as
`optional …`, last. Fields are never removed or reordered. An absent optional field decodes to None
and may be left out only together with all that follow it.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar

from fila.wire import bodies as b
from fila.wire import fields as f
from fila.wire import opcodes as op

PROTOCOL_VERSION: Final = 1

Body = TypeVar("Body", bound=tuple[Any, ...])


class ListOf(NamedTuple):
    """Items of one record type, counted by a u16 or a u32."""

    counter: str
    item: Any


# Field name to type, in wire order.
Layout = dict[str, Any]

ITEM_LAYOUTS: Final[dict[Any, Layout]] = {
    b.EnqueueItem: {"queue": "string", "headers": "map", "payload": "bytes"},
    b.EnqueueResultItem: {"code": "u8", "message_id": "string"},
    b.DeliveryItem: {
        "id": "string",
        "queue": "string",
        "headers": "map",
        "payload": "bytes",
        "fairness_key": "string",
        "weight": "u32",
        "throttle_keys": "string[]",
        "attempt_count": "u32",
        "enqueued_at_ms": "u64",
        "leased_at_ms": "u64",
    },
    b.AckItem: {"queue": "string", "id": "string"},
    b.CodeItem: {"code": "u8"},
    b.NackItem: {"queue": "string", "id": "string", "error": "string"},
    b.EnqueueWithItem: {
        "queue": "string",
        "headers": "map",
        "payload": "bytes",
        "delay_ms": "u64",
        "idempotency_key": "string",
        "fairness_key": "string",
        "weight": "u32",
        "throttle_keys": "string[]",
    },
    b.EnqueueWithResultItem: {"code": "u8", "message_id": "string", "duplicate": "bool"},
    b.ReleaseItem: {"queue": "string", "id": "string"},
    b.ReleaseCode: {"code": "u8"},
    b.OpenBatch: {
        "name": "string",
        "messages": "u32",
        "leased_at_ms": "u64",
        "expires_at_ms": "u64",
    },
    b.BrowseRange: {"start": "bytes", "end": "bytes"},
    b.FairnessKeyStats: {"key": "string", "pending": "u64", "deficit": "i64", "weight": "u32"},
    b.ThrottleKeyStats: {
        "key": "string",
        "tokens": "f64",
        "rate_per_second": "f64",
        "burst": "f64",
    },
    b.QueueSummary: {
        "name": "string",
        "depth": "u64",
        "in_flight": "u64",
        "active_consumers": "u32",
        "leader_node_id": "u64",
    },
    b.ConfigEntry: {"key": "string", "value": "string"},
    b.ApiKeySummary: {
        "key_id": "string",
        "name": "string",
        "created_at_ms": "u64",
        "expires_at_ms": "u64",
        "is_superadmin": "bool",
    },
    b.Permission: {"kind": "string", "pattern": "string"},
}

OPCODES: Final[dict[Any, int]] = {getattr(b, name): number for number, name in op.NAMES.items()}

_EXPLAINED: Final[Layout] = {"message": "optional string"}
_COUNTED: Final[Layout] = {"code": "u8", "batches": "u32", "messages": "u64"}

LAYOUTS: Final[dict[Any, Layout]] = {
    b.Handshake: {"version": "u16", "api_key": "string?"},
    b.HandshakeOk: {"version": "u16", "node_id": "u64", "max_frame_size": "u32"},
    b.Ping: {},
    b.Pong: {},
    b.Disconnect: {},
    b.Enqueue: {"messages": ListOf("u32", b.EnqueueItem)},
    b.EnqueueResult: {"results": ListOf("u32", b.EnqueueResultItem)},
    b.Consume: {"queue": "string", "prefetch": "optional u32"},
    b.ConsumeOk: {"consumer_id": "string"},
    b.Delivery: {"messages": ListOf("u32", b.DeliveryItem)},
    b.CancelConsume: {},
    b.Ack: {"messages": ListOf("u32", b.AckItem)},
    b.AckResult: {"results": ListOf("u32", b.CodeItem)},
    b.Nack: {"messages": ListOf("u32", b.NackItem)},
    b.NackResult: {"results": ListOf("u32", b.CodeItem)},
    b.EnqueueWith: {"messages": ListOf("u32", b.EnqueueWithItem)},
    b.EnqueueWithResult: {"results": ListOf("u32", b.EnqueueWithResultItem)},
    b.Release: {"messages": ListOf("u32", b.ReleaseItem)},
    b.ReleaseResult: {"results": ListOf("u32", b.ReleaseCode)},
    b.LeaseBatch: {
        "queue": "string",
        "name": "string",
        "max_messages": "u32",
        "max_bytes": "u64",
        "visibility_ms": "u64",
        "wait_ms": "u32",
        "count_attempt": "bool",
        "form": "u8",
    },
    b.LeaseBatchResult: {
        "code": "u8",
        "again": "bool",
        "messages": "u32",
        "expires_at_ms": "u64",
        "form": "u8",
        "body": "bytes",
    },
    b.AckBatch: {"queue": "string", "name": "string", "below": "optional u64"},
    b.AckBatchResult: _COUNTED,
    b.ExtendBatch: {
        "queue": "string",
        "name": "string",
        "visibility_ms": "u64",
        "below": "optional u64",
    },
    b.ExtendBatchResult: _COUNTED,
    b.ReleaseBatch: {"queue": "string", "name": "string", "below": "optional u64"},
    b.ReleaseBatchResult: _COUNTED,
    b.ListBatches: {"queue": "string"},
    b.ListBatchesResult: {"code": "u8", "batches": ListOf("u16", b.OpenBatch)},
    b.Browse: {"queue": "string", "fairness_key": "string?", "parts": "u16", "ttl_ms": "u64"},
    b.BrowseResult: {
        "code": "u8",
        "snapshot": "string",
        "expires_at_ms": "u64",
        "messages": "u64",
        "ranges": ListOf("u16", b.BrowseRange),
    },
    b.BrowsePage: {
        "snapshot": "string",
        "start": "bytes",
        "end": "bytes",
        "states": "u8",
        "max_messages": "u32",
        "max_bytes": "u64",
        "form": "u8",
    },
    b.BrowsePageResult: {
        "code": "u8",
        "messages": "u32",
        "next": "bytes",
        "form": "u8",
        "body": "bytes",
    },
    b.BrowseClose: {"snapshot": "string"},
    b.BrowseCloseResult: {"code": "u8"},
    b.Explain: {
        "queue": "string",
        "fairness_key": "string?",
        "message_id": "string",
        "keys_max": "u32",
    },
    b.ExplainResult: {"code": "u8", "document": "bytes"},
    b.PauseQueue: {"queue": "string", "reason": "string"},
    b.PauseQueueResult: {"code": "u8"},
    b.ResumeQueue: {"queue": "string"},
    b.ResumeQueueResult: {"code": "u8"},
    b.PauseKey: {"queue": "string", "fairness_key": "string", "reason": "string"},
    b.PauseKeyResult: {"code": "u8"},
    b.ResumeKey: {"queue": "string", "fairness_key": "string"},
    b.ResumeKeyResult: {"code": "u8"},
    b.Purge: {"queue": "string", "fairness_key": "string?"},
    b.PurgeResult: {"code": "u8", "purged": "u64"},
    b.CreateQueue: {
        "name": "string",
        "on_enqueue": "string?",
        "on_failure": "string?",
        "visibility_timeout_ms": "u64",
    },
    b.CreateQueueResult: {"code": "u8", "queue_id": "string", **_EXPLAINED},
    b.DeleteQueue: {"queue": "string"},
    b.DeleteQueueResult: {"code": "u8", **_EXPLAINED},
    b.GetStats: {"queue": "string"},
    b.GetStatsResult: {
        "code": "u8",
        "depth": "u64",
        "in_flight": "u64",
        "active_fairness_keys": "u64",
        "active_consumers": "u32",
        "quantum": "u32",
        "leader_node_id": "u64",
        "replication_count": "u32",
        "fairness_keys": ListOf("u16", b.FairnessKeyStats),
        "throttle_keys": ListOf("u16", b.ThrottleKeyStats),
    },
    b.ListQueues: {},
    b.ListQueuesResult: {
        "code": "u8",
        "cluster_node_count": "u32",
        "queues": ListOf("u16", b.QueueSummary),
        **_EXPLAINED,
    },
    b.SetConfig: {"key": "string", "value": "string"},
    b.SetConfigResult: {"code": "u8", **_EXPLAINED},
    b.GetConfig: {"key": "string"},
    b.GetConfigResult: {"code": "u8", "value": "string", **_EXPLAINED},
    b.ListConfig: {"prefix": "string"},
    b.ListConfigResult: {"code": "u8", "entries": ListOf("u16", b.ConfigEntry), **_EXPLAINED},
    b.Redrive: {"dlq_queue": "string", "limit": "u64"},
    b.RedriveResult: {"code": "u8", "redriven": "u64"},
    b.CreateApiKey: {"name": "string", "expires_at_ms": "u64", "is_superadmin": "bool"},
    b.CreateApiKeyResult: {
        "code": "u8",
        "key_id": "string",
        "key": "string",
        "is_superadmin": "bool",
        **_EXPLAINED,
    },
    b.RevokeApiKey: {"key_id": "string"},
    b.RevokeApiKeyResult: {"code": "u8", **_EXPLAINED},
    b.ListApiKeys: {},
    b.ListApiKeysResult: {"code": "u8", "keys": ListOf("u16", b.ApiKeySummary), **_EXPLAINED},
    b.SetAcl: {"key_id": "string", "permissions": ListOf("u16", b.Permission)},
    b.SetAclResult: {"code": "u8", **_EXPLAINED},
    b.GetAcl: {"key_id": "string"},
    b.GetAclResult: {
        "code": "u8",
        "key_id": "string",
        "is_superadmin": "bool",
        "permissions": ListOf("u16", b.Permission),
        **_EXPLAINED,
    },
    b.Error: {"code": "u8", "message": "string", "metadata": "map"},
}


def encode(body: tuple[Any, ...]) -> bytes:
    """The bytes of a body record."""
    return _write(type(body), LAYOUTS[type(body)], body, "")


def decode(body_type: type[Body], body: bytes) -> Body:
    """The record in these bytes; bytes after the last field it knows are ignored."""
    record: Body = _read(f.FieldReader(body), body_type, LAYOUTS[body_type], "")
    return record


def opcode_of(body: tuple[Any, ...]) -> int:
    return OPCODES[type(body)]


_WRITERS: Final[dict[str, Callable[[Any, str], bytes]]] = {
    "u8": f.u8_field,
    "u16": f.u16_field,
    "u32": f.u32_field,
    "u64": f.u64_field,
    "i64": f.i64_field,
    "f64": f.f64_field,
    "bool": f.boolean_field,
    "string": f.string_field,
    "bytes": f.blob_field,
    "map": f.string_map_field,
    "string[]": f.strings_field,
    "string?": f.optional_string_field,
}

_READERS: Final[dict[str, Callable[[f.FieldReader, str], Any]]] = {
    "u8": f.FieldReader.u8,
    "u16": f.FieldReader.u16,
    "u32": f.FieldReader.u32,
    "u64": f.FieldReader.u64,
    "i64": f.FieldReader.i64,
    "f64": f.FieldReader.f64,
    "bool": f.FieldReader.boolean,
    "string": f.FieldReader.string,
    "bytes": f.FieldReader.blob,
    "map": f.FieldReader.string_map,
    "string[]": f.FieldReader.strings,
    "string?": f.FieldReader.optional_string,
}

# The fewest bytes a field can take, so that a claimed count is checked before anything is built.
_BYTES_MIN: Final[dict[str, int]] = {
    "u8": 1,
    "u16": 2,
    "u32": 4,
    "u64": 8,
    "i64": 8,
    "f64": 8,
    "bool": 1,
    "string": 2,
    "bytes": 4,
    "map": 2,
    "string[]": 2,
    "string?": 1,
}


def _write(record_type: Any, layout: Layout, record: tuple[Any, ...], where: str) -> bytes:
    parts: list[bytes] = []
    left_out = ""
    for (name, kind), value in zip(layout.items(), record, strict=True):
        field = where + name
        if isinstance(kind, ListOf):
            parts.append(_WRITERS[kind.counter](len(value), field))
            item_layout = ITEM_LAYOUTS[kind.item]
            for index, item in enumerate(value):
                parts.append(_write(kind.item, item_layout, item, f"{field}[{index}]."))
            continue
        if kind.startswith("optional "):
            if value is None:
                left_out = left_out or field
                continue
            assert not left_out, f"{field} is given but {left_out} before it is not"
            kind = kind.removeprefix("optional ")
        parts.append(_WRITERS[kind](value, field))
    return b"".join(parts)


def _read(reader: f.FieldReader, record_type: Any, layout: Layout, where: str) -> Any:
    values: list[Any] = []
    for name, kind in layout.items():
        field = where + name
        if isinstance(kind, ListOf):
            item_layout = ITEM_LAYOUTS[kind.item]
            bytes_min = sum(_BYTES_MIN[item_kind] for item_kind in item_layout.values())
            count = reader.count(_READERS[kind.counter](reader, field), bytes_min, field)
            values.append(
                tuple(
                    [
                        _read(reader, kind.item, item_layout, f"{field}[{index}].")
                        for index in range(count)
                    ]
                )
            )
            continue
        if kind.startswith("optional "):
            if not reader.remaining:
                values.append(None)
                continue
            kind = kind.removeprefix("optional ")
        values.append(_READERS[kind](reader, field))
    return record_type(*values)
