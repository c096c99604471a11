from fila.edges.grpc.v1 import messages_pb2 as _messages_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class EnqueueWithRequest(_message.Message):
    __slots__ = ("messages",)
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[MessageWithOptions]
    def __init__(self, messages: _Optional[_Iterable[_Union[MessageWithOptions, _Mapping]]] = ...) -> None: ...

class MessageWithOptions(_message.Message):
    __slots__ = ("queue", "headers", "payload", "delay_ms", "idempotency_key", "fairness_key", "weight", "throttle_keys")
    class HeadersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    FAIRNESS_KEY_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    THROTTLE_KEYS_FIELD_NUMBER: _ClassVar[int]
    queue: str
    headers: _containers.ScalarMap[str, str]
    payload: bytes
    delay_ms: int
    idempotency_key: str
    fairness_key: str
    weight: int
    throttle_keys: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, queue: _Optional[str] = ..., headers: _Optional[_Mapping[str, str]] = ..., payload: _Optional[bytes] = ..., delay_ms: _Optional[int] = ..., idempotency_key: _Optional[str] = ..., fairness_key: _Optional[str] = ..., weight: _Optional[int] = ..., throttle_keys: _Optional[_Iterable[str]] = ...) -> None: ...

class EnqueueWithResponse(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[EnqueueWithResult]
    def __init__(self, results: _Optional[_Iterable[_Union[EnqueueWithResult, _Mapping]]] = ...) -> None: ...

class EnqueueWithResult(_message.Message):
    __slots__ = ("message_id", "duplicate", "code", "message")
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    DUPLICATE_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    message_id: str
    duplicate: bool
    code: int
    message: str
    def __init__(self, message_id: _Optional[str] = ..., duplicate: _Optional[bool] = ..., code: _Optional[int] = ..., message: _Optional[str] = ...) -> None: ...

class ReleaseRequest(_message.Message):
    __slots__ = ("queue", "message_ids")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_IDS_FIELD_NUMBER: _ClassVar[int]
    queue: str
    message_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, queue: _Optional[str] = ..., message_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class ReleaseResponse(_message.Message):
    __slots__ = ("codes",)
    CODES_FIELD_NUMBER: _ClassVar[int]
    codes: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, codes: _Optional[_Iterable[int]] = ...) -> None: ...

class LeaseBatchRequest(_message.Message):
    __slots__ = ("queue", "name", "max_messages", "max_bytes", "visibility_ms", "wait_ms", "count_attempt", "as_arrow")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    MAX_MESSAGES_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    VISIBILITY_MS_FIELD_NUMBER: _ClassVar[int]
    WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    COUNT_ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    AS_ARROW_FIELD_NUMBER: _ClassVar[int]
    queue: str
    name: str
    max_messages: int
    max_bytes: int
    visibility_ms: int
    wait_ms: int
    count_attempt: bool
    as_arrow: bool
    def __init__(self, queue: _Optional[str] = ..., name: _Optional[str] = ..., max_messages: _Optional[int] = ..., max_bytes: _Optional[int] = ..., visibility_ms: _Optional[int] = ..., wait_ms: _Optional[int] = ..., count_attempt: _Optional[bool] = ..., as_arrow: _Optional[bool] = ...) -> None: ...

class LeaseBatchResponse(_message.Message):
    __slots__ = ("again", "expires_at_ms", "message_count", "messages", "arrow")
    AGAIN_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_MS_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_COUNT_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    ARROW_FIELD_NUMBER: _ClassVar[int]
    again: bool
    expires_at_ms: int
    message_count: int
    messages: _containers.RepeatedCompositeFieldContainer[_messages_pb2.Message]
    arrow: bytes
    def __init__(self, again: _Optional[bool] = ..., expires_at_ms: _Optional[int] = ..., message_count: _Optional[int] = ..., messages: _Optional[_Iterable[_Union[_messages_pb2.Message, _Mapping]]] = ..., arrow: _Optional[bytes] = ...) -> None: ...

class BatchSelection(_message.Message):
    __slots__ = ("queue", "name", "below")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    BELOW_FIELD_NUMBER: _ClassVar[int]
    queue: str
    name: str
    below: int
    def __init__(self, queue: _Optional[str] = ..., name: _Optional[str] = ..., below: _Optional[int] = ...) -> None: ...

class ExtendBatchRequest(_message.Message):
    __slots__ = ("queue", "name", "below", "visibility_ms")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    BELOW_FIELD_NUMBER: _ClassVar[int]
    VISIBILITY_MS_FIELD_NUMBER: _ClassVar[int]
    queue: str
    name: str
    below: int
    visibility_ms: int
    def __init__(self, queue: _Optional[str] = ..., name: _Optional[str] = ..., below: _Optional[int] = ..., visibility_ms: _Optional[int] = ...) -> None: ...

class ExtendRequest(_message.Message):
    __slots__ = ("queue", "message_ids", "visibility_ms")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_IDS_FIELD_NUMBER: _ClassVar[int]
    VISIBILITY_MS_FIELD_NUMBER: _ClassVar[int]
    queue: str
    message_ids: _containers.RepeatedScalarFieldContainer[str]
    visibility_ms: int
    def __init__(self, queue: _Optional[str] = ..., message_ids: _Optional[_Iterable[str]] = ..., visibility_ms: _Optional[int] = ...) -> None: ...

class ExtendResponse(_message.Message):
    __slots__ = ("visibility_ms", "missing")
    VISIBILITY_MS_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    visibility_ms: int
    missing: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, visibility_ms: _Optional[int] = ..., missing: _Optional[_Iterable[str]] = ...) -> None: ...

class BatchCount(_message.Message):
    __slots__ = ("batches", "messages")
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    batches: int
    messages: int
    def __init__(self, batches: _Optional[int] = ..., messages: _Optional[int] = ...) -> None: ...

class ListBatchesRequest(_message.Message):
    __slots__ = ("queue",)
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    queue: str
    def __init__(self, queue: _Optional[str] = ...) -> None: ...

class ListBatchesResponse(_message.Message):
    __slots__ = ("batches",)
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    batches: _containers.RepeatedCompositeFieldContainer[OpenBatch]
    def __init__(self, batches: _Optional[_Iterable[_Union[OpenBatch, _Mapping]]] = ...) -> None: ...

class OpenBatch(_message.Message):
    __slots__ = ("name", "messages", "leased_at_ms", "expires_at_ms")
    NAME_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    LEASED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_MS_FIELD_NUMBER: _ClassVar[int]
    name: str
    messages: int
    leased_at_ms: int
    expires_at_ms: int
    def __init__(self, name: _Optional[str] = ..., messages: _Optional[int] = ..., leased_at_ms: _Optional[int] = ..., expires_at_ms: _Optional[int] = ...) -> None: ...

class BrowseRequest(_message.Message):
    __slots__ = ("queue", "fairness_key", "parts", "ttl_ms")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    FAIRNESS_KEY_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    TTL_MS_FIELD_NUMBER: _ClassVar[int]
    queue: str
    fairness_key: str
    parts: int
    ttl_ms: int
    def __init__(self, queue: _Optional[str] = ..., fairness_key: _Optional[str] = ..., parts: _Optional[int] = ..., ttl_ms: _Optional[int] = ...) -> None: ...

class BrowseResponse(_message.Message):
    __slots__ = ("snapshot", "expires_at_ms", "message_count", "ranges")
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_MS_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_COUNT_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    snapshot: str
    expires_at_ms: int
    message_count: int
    ranges: _containers.RepeatedCompositeFieldContainer[BrowseRange]
    def __init__(self, snapshot: _Optional[str] = ..., expires_at_ms: _Optional[int] = ..., message_count: _Optional[int] = ..., ranges: _Optional[_Iterable[_Union[BrowseRange, _Mapping]]] = ...) -> None: ...

class BrowseRange(_message.Message):
    __slots__ = ("start", "end")
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    start: bytes
    end: bytes
    def __init__(self, start: _Optional[bytes] = ..., end: _Optional[bytes] = ...) -> None: ...

class BrowsePageRequest(_message.Message):
    __slots__ = ("snapshot", "start", "end", "states", "max_messages", "max_bytes", "as_arrow")
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    MAX_MESSAGES_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    AS_ARROW_FIELD_NUMBER: _ClassVar[int]
    snapshot: str
    start: bytes
    end: bytes
    states: int
    max_messages: int
    max_bytes: int
    as_arrow: bool
    def __init__(self, snapshot: _Optional[str] = ..., start: _Optional[bytes] = ..., end: _Optional[bytes] = ..., states: _Optional[int] = ..., max_messages: _Optional[int] = ..., max_bytes: _Optional[int] = ..., as_arrow: _Optional[bool] = ...) -> None: ...

class BrowsePageResponse(_message.Message):
    __slots__ = ("messages", "next", "message_count", "arrow")
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_COUNT_FIELD_NUMBER: _ClassVar[int]
    ARROW_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[BrowsedMessage]
    next: bytes
    message_count: int
    arrow: bytes
    def __init__(self, messages: _Optional[_Iterable[_Union[BrowsedMessage, _Mapping]]] = ..., next: _Optional[bytes] = ..., message_count: _Optional[int] = ..., arrow: _Optional[bytes] = ...) -> None: ...

class BrowsedMessage(_message.Message):
    __slots__ = ("message", "ready_at_ms", "state")
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    READY_AT_MS_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    message: _messages_pb2.Message
    ready_at_ms: int
    state: int
    def __init__(self, message: _Optional[_Union[_messages_pb2.Message, _Mapping]] = ..., ready_at_ms: _Optional[int] = ..., state: _Optional[int] = ...) -> None: ...

class BrowseCloseRequest(_message.Message):
    __slots__ = ("snapshot",)
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    snapshot: str
    def __init__(self, snapshot: _Optional[str] = ...) -> None: ...

class BrowseCloseResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
