from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CreateQueueRequest(_message.Message):
    __slots__ = ("name", "config")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    name: str
    config: QueueConfig
    def __init__(self, name: _Optional[str] = ..., config: _Optional[_Union[QueueConfig, _Mapping]] = ...) -> None: ...

class QueueConfig(_message.Message):
    __slots__ = ("on_enqueue_script", "on_failure_script", "visibility_timeout_ms", "max_attempts", "cost")
    ON_ENQUEUE_SCRIPT_FIELD_NUMBER: _ClassVar[int]
    ON_FAILURE_SCRIPT_FIELD_NUMBER: _ClassVar[int]
    VISIBILITY_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    MAX_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    on_enqueue_script: str
    on_failure_script: str
    visibility_timeout_ms: int
    max_attempts: int
    cost: str
    def __init__(self, on_enqueue_script: _Optional[str] = ..., on_failure_script: _Optional[str] = ..., visibility_timeout_ms: _Optional[int] = ..., max_attempts: _Optional[int] = ..., cost: _Optional[str] = ...) -> None: ...

class CreateQueueResponse(_message.Message):
    __slots__ = ("queue_id",)
    QUEUE_ID_FIELD_NUMBER: _ClassVar[int]
    queue_id: str
    def __init__(self, queue_id: _Optional[str] = ...) -> None: ...

class DeleteQueueRequest(_message.Message):
    __slots__ = ("queue",)
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    queue: str
    def __init__(self, queue: _Optional[str] = ...) -> None: ...

class DeleteQueueResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class UpdateQueueRequest(_message.Message):
    __slots__ = ("queue", "settings", "expected_version", "from_version", "note", "unrehearsed")
    class SettingsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    FROM_VERSION_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    UNREHEARSED_FIELD_NUMBER: _ClassVar[int]
    queue: str
    settings: _containers.ScalarMap[str, str]
    expected_version: int
    from_version: int
    note: str
    unrehearsed: bool
    def __init__(self, queue: _Optional[str] = ..., settings: _Optional[_Mapping[str, str]] = ..., expected_version: _Optional[int] = ..., from_version: _Optional[int] = ..., note: _Optional[str] = ..., unrehearsed: _Optional[bool] = ...) -> None: ...

class UpdateQueueResponse(_message.Message):
    __slots__ = ("version",)
    VERSION_FIELD_NUMBER: _ClassVar[int]
    version: int
    def __init__(self, version: _Optional[int] = ...) -> None: ...

class GetQueueRequest(_message.Message):
    __slots__ = ("queue", "version")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    queue: str
    version: int
    def __init__(self, queue: _Optional[str] = ..., version: _Optional[int] = ...) -> None: ...

class GetQueueResponse(_message.Message):
    __slots__ = ("settings", "version", "at_ms", "who", "note")
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    AT_MS_FIELD_NUMBER: _ClassVar[int]
    WHO_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    settings: _containers.RepeatedCompositeFieldContainer[ConfigEntry]
    version: int
    at_ms: int
    who: str
    note: str
    def __init__(self, settings: _Optional[_Iterable[_Union[ConfigEntry, _Mapping]]] = ..., version: _Optional[int] = ..., at_ms: _Optional[int] = ..., who: _Optional[str] = ..., note: _Optional[str] = ...) -> None: ...

class ReclassifyRequest(_message.Message):
    __slots__ = ("queue", "rate", "dry_run", "cancel")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    RATE_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    CANCEL_FIELD_NUMBER: _ClassVar[int]
    queue: str
    rate: int
    dry_run: bool
    cancel: bool
    def __init__(self, queue: _Optional[str] = ..., rate: _Optional[int] = ..., dry_run: _Optional[bool] = ..., cancel: _Optional[bool] = ...) -> None: ...

class ReclassifyResponse(_message.Message):
    __slots__ = ("document",)
    DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    document: bytes
    def __init__(self, document: _Optional[bytes] = ...) -> None: ...

class GetReclassifyRequest(_message.Message):
    __slots__ = ("queue",)
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    queue: str
    def __init__(self, queue: _Optional[str] = ...) -> None: ...

class GetReclassifyResponse(_message.Message):
    __slots__ = ("document",)
    DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    document: bytes
    def __init__(self, document: _Optional[bytes] = ...) -> None: ...

class SetOverrideRequest(_message.Message):
    __slots__ = ("queue", "fairness_key", "settings", "clear", "note")
    class SettingsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    FAIRNESS_KEY_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    CLEAR_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    queue: str
    fairness_key: str
    settings: _containers.ScalarMap[str, str]
    clear: bool
    note: str
    def __init__(self, queue: _Optional[str] = ..., fairness_key: _Optional[str] = ..., settings: _Optional[_Mapping[str, str]] = ..., clear: _Optional[bool] = ..., note: _Optional[str] = ...) -> None: ...

class SetOverrideResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListOverridesRequest(_message.Message):
    __slots__ = ("queue",)
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    queue: str
    def __init__(self, queue: _Optional[str] = ...) -> None: ...

class ListOverridesResponse(_message.Message):
    __slots__ = ("document",)
    DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    document: bytes
    def __init__(self, document: _Optional[bytes] = ...) -> None: ...

class ListVersionsRequest(_message.Message):
    __slots__ = ("queue",)
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    queue: str
    def __init__(self, queue: _Optional[str] = ...) -> None: ...

class ListVersionsResponse(_message.Message):
    __slots__ = ("versions",)
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    versions: _containers.RepeatedCompositeFieldContainer[QueueVersion]
    def __init__(self, versions: _Optional[_Iterable[_Union[QueueVersion, _Mapping]]] = ...) -> None: ...

class QueueVersion(_message.Message):
    __slots__ = ("version", "at_ms", "who", "note", "changed")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    AT_MS_FIELD_NUMBER: _ClassVar[int]
    WHO_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    version: int
    at_ms: int
    who: str
    note: str
    changed: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, version: _Optional[int] = ..., at_ms: _Optional[int] = ..., who: _Optional[str] = ..., note: _Optional[str] = ..., changed: _Optional[_Iterable[str]] = ...) -> None: ...

class SetConfigRequest(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: str
    def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class SetConfigResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetConfigRequest(_message.Message):
    __slots__ = ("key",)
    KEY_FIELD_NUMBER: _ClassVar[int]
    key: str
    def __init__(self, key: _Optional[str] = ...) -> None: ...

class GetConfigResponse(_message.Message):
    __slots__ = ("value",)
    VALUE_FIELD_NUMBER: _ClassVar[int]
    value: str
    def __init__(self, value: _Optional[str] = ...) -> None: ...

class ListConfigRequest(_message.Message):
    __slots__ = ("prefix",)
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    prefix: str
    def __init__(self, prefix: _Optional[str] = ...) -> None: ...

class ListConfigResponse(_message.Message):
    __slots__ = ("entries", "total_count")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    TOTAL_COUNT_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[ConfigEntry]
    total_count: int
    def __init__(self, entries: _Optional[_Iterable[_Union[ConfigEntry, _Mapping]]] = ..., total_count: _Optional[int] = ...) -> None: ...

class ConfigEntry(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: str
    def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class GetStatsRequest(_message.Message):
    __slots__ = ("queue",)
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    queue: str
    def __init__(self, queue: _Optional[str] = ...) -> None: ...

class GetStatsResponse(_message.Message):
    __slots__ = ("depth", "in_flight", "active_fairness_keys", "active_consumers", "quantum", "per_key_stats", "per_throttle_stats", "leader_node_id", "replication_count", "cost")
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_FAIRNESS_KEYS_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_CONSUMERS_FIELD_NUMBER: _ClassVar[int]
    QUANTUM_FIELD_NUMBER: _ClassVar[int]
    PER_KEY_STATS_FIELD_NUMBER: _ClassVar[int]
    PER_THROTTLE_STATS_FIELD_NUMBER: _ClassVar[int]
    LEADER_NODE_ID_FIELD_NUMBER: _ClassVar[int]
    REPLICATION_COUNT_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    depth: int
    in_flight: int
    active_fairness_keys: int
    active_consumers: int
    quantum: int
    per_key_stats: _containers.RepeatedCompositeFieldContainer[PerFairnessKeyStats]
    per_throttle_stats: _containers.RepeatedCompositeFieldContainer[PerThrottleKeyStats]
    leader_node_id: int
    replication_count: int
    cost: str
    def __init__(self, depth: _Optional[int] = ..., in_flight: _Optional[int] = ..., active_fairness_keys: _Optional[int] = ..., active_consumers: _Optional[int] = ..., quantum: _Optional[int] = ..., per_key_stats: _Optional[_Iterable[_Union[PerFairnessKeyStats, _Mapping]]] = ..., per_throttle_stats: _Optional[_Iterable[_Union[PerThrottleKeyStats, _Mapping]]] = ..., leader_node_id: _Optional[int] = ..., replication_count: _Optional[int] = ..., cost: _Optional[str] = ...) -> None: ...

class PerFairnessKeyStats(_message.Message):
    __slots__ = ("key", "pending_count", "current_deficit", "weight")
    KEY_FIELD_NUMBER: _ClassVar[int]
    PENDING_COUNT_FIELD_NUMBER: _ClassVar[int]
    CURRENT_DEFICIT_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    key: str
    pending_count: int
    current_deficit: int
    weight: int
    def __init__(self, key: _Optional[str] = ..., pending_count: _Optional[int] = ..., current_deficit: _Optional[int] = ..., weight: _Optional[int] = ...) -> None: ...

class PerThrottleKeyStats(_message.Message):
    __slots__ = ("key", "tokens", "rate_per_second", "burst")
    KEY_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    RATE_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    BURST_FIELD_NUMBER: _ClassVar[int]
    key: str
    tokens: float
    rate_per_second: float
    burst: float
    def __init__(self, key: _Optional[str] = ..., tokens: _Optional[float] = ..., rate_per_second: _Optional[float] = ..., burst: _Optional[float] = ...) -> None: ...

class RedriveRequest(_message.Message):
    __slots__ = ("dlq_queue", "count")
    DLQ_QUEUE_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    dlq_queue: str
    count: int
    def __init__(self, dlq_queue: _Optional[str] = ..., count: _Optional[int] = ...) -> None: ...

class RedriveResponse(_message.Message):
    __slots__ = ("redriven",)
    REDRIVEN_FIELD_NUMBER: _ClassVar[int]
    redriven: int
    def __init__(self, redriven: _Optional[int] = ...) -> None: ...

class ListQueuesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListQueuesResponse(_message.Message):
    __slots__ = ("queues", "cluster_node_count")
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_NODE_COUNT_FIELD_NUMBER: _ClassVar[int]
    queues: _containers.RepeatedCompositeFieldContainer[QueueInfo]
    cluster_node_count: int
    def __init__(self, queues: _Optional[_Iterable[_Union[QueueInfo, _Mapping]]] = ..., cluster_node_count: _Optional[int] = ...) -> None: ...

class QueueInfo(_message.Message):
    __slots__ = ("name", "depth", "in_flight", "active_consumers", "leader_node_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_CONSUMERS_FIELD_NUMBER: _ClassVar[int]
    LEADER_NODE_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    depth: int
    in_flight: int
    active_consumers: int
    leader_node_id: int
    def __init__(self, name: _Optional[str] = ..., depth: _Optional[int] = ..., in_flight: _Optional[int] = ..., active_consumers: _Optional[int] = ..., leader_node_id: _Optional[int] = ...) -> None: ...

class CreateApiKeyRequest(_message.Message):
    __slots__ = ("name", "expires_at_ms", "is_superadmin")
    NAME_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_MS_FIELD_NUMBER: _ClassVar[int]
    IS_SUPERADMIN_FIELD_NUMBER: _ClassVar[int]
    name: str
    expires_at_ms: int
    is_superadmin: bool
    def __init__(self, name: _Optional[str] = ..., expires_at_ms: _Optional[int] = ..., is_superadmin: _Optional[bool] = ...) -> None: ...

class CreateApiKeyResponse(_message.Message):
    __slots__ = ("key_id", "key", "is_superadmin")
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    IS_SUPERADMIN_FIELD_NUMBER: _ClassVar[int]
    key_id: str
    key: str
    is_superadmin: bool
    def __init__(self, key_id: _Optional[str] = ..., key: _Optional[str] = ..., is_superadmin: _Optional[bool] = ...) -> None: ...

class RevokeApiKeyRequest(_message.Message):
    __slots__ = ("key_id",)
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    key_id: str
    def __init__(self, key_id: _Optional[str] = ...) -> None: ...

class RevokeApiKeyResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListApiKeysRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListApiKeysResponse(_message.Message):
    __slots__ = ("keys",)
    KEYS_FIELD_NUMBER: _ClassVar[int]
    keys: _containers.RepeatedCompositeFieldContainer[ApiKeyInfo]
    def __init__(self, keys: _Optional[_Iterable[_Union[ApiKeyInfo, _Mapping]]] = ...) -> None: ...

class ApiKeyInfo(_message.Message):
    __slots__ = ("key_id", "name", "created_at_ms", "expires_at_ms", "is_superadmin")
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_MS_FIELD_NUMBER: _ClassVar[int]
    IS_SUPERADMIN_FIELD_NUMBER: _ClassVar[int]
    key_id: str
    name: str
    created_at_ms: int
    expires_at_ms: int
    is_superadmin: bool
    def __init__(self, key_id: _Optional[str] = ..., name: _Optional[str] = ..., created_at_ms: _Optional[int] = ..., expires_at_ms: _Optional[int] = ..., is_superadmin: _Optional[bool] = ...) -> None: ...

class SetAclRequest(_message.Message):
    __slots__ = ("key_id", "permissions")
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    PERMISSIONS_FIELD_NUMBER: _ClassVar[int]
    key_id: str
    permissions: _containers.RepeatedCompositeFieldContainer[AclPermission]
    def __init__(self, key_id: _Optional[str] = ..., permissions: _Optional[_Iterable[_Union[AclPermission, _Mapping]]] = ...) -> None: ...

class SetAclResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AclPermission(_message.Message):
    __slots__ = ("kind", "pattern")
    KIND_FIELD_NUMBER: _ClassVar[int]
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    kind: str
    pattern: str
    def __init__(self, kind: _Optional[str] = ..., pattern: _Optional[str] = ...) -> None: ...

class GetAclRequest(_message.Message):
    __slots__ = ("key_id",)
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    key_id: str
    def __init__(self, key_id: _Optional[str] = ...) -> None: ...

class GetAclResponse(_message.Message):
    __slots__ = ("key_id", "permissions", "is_superadmin")
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    PERMISSIONS_FIELD_NUMBER: _ClassVar[int]
    IS_SUPERADMIN_FIELD_NUMBER: _ClassVar[int]
    key_id: str
    permissions: _containers.RepeatedCompositeFieldContainer[AclPermission]
    is_superadmin: bool
    def __init__(self, key_id: _Optional[str] = ..., permissions: _Optional[_Iterable[_Union[AclPermission, _Mapping]]] = ..., is_superadmin: _Optional[bool] = ...) -> None: ...

class ExplainRequest(_message.Message):
    __slots__ = ("queue", "fairness_key", "message_id", "keys_max")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    FAIRNESS_KEY_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    KEYS_MAX_FIELD_NUMBER: _ClassVar[int]
    queue: str
    fairness_key: str
    message_id: str
    keys_max: int
    def __init__(self, queue: _Optional[str] = ..., fairness_key: _Optional[str] = ..., message_id: _Optional[str] = ..., keys_max: _Optional[int] = ...) -> None: ...

class ExplainResponse(_message.Message):
    __slots__ = ("document",)
    DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    document: bytes
    def __init__(self, document: _Optional[bytes] = ...) -> None: ...

class PauseQueueRequest(_message.Message):
    __slots__ = ("queue", "reason")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    queue: str
    reason: str
    def __init__(self, queue: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class PauseQueueResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ResumeQueueRequest(_message.Message):
    __slots__ = ("queue",)
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    queue: str
    def __init__(self, queue: _Optional[str] = ...) -> None: ...

class ResumeQueueResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class PauseKeyRequest(_message.Message):
    __slots__ = ("queue", "fairness_key", "reason")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    FAIRNESS_KEY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    queue: str
    fairness_key: str
    reason: str
    def __init__(self, queue: _Optional[str] = ..., fairness_key: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class PauseKeyResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ResumeKeyRequest(_message.Message):
    __slots__ = ("queue", "fairness_key")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    FAIRNESS_KEY_FIELD_NUMBER: _ClassVar[int]
    queue: str
    fairness_key: str
    def __init__(self, queue: _Optional[str] = ..., fairness_key: _Optional[str] = ...) -> None: ...

class ResumeKeyResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class PurgeRequest(_message.Message):
    __slots__ = ("queue", "fairness_key")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    FAIRNESS_KEY_FIELD_NUMBER: _ClassVar[int]
    queue: str
    fairness_key: str
    def __init__(self, queue: _Optional[str] = ..., fairness_key: _Optional[str] = ...) -> None: ...

class PurgeResponse(_message.Message):
    __slots__ = ("purged",)
    PURGED_FIELD_NUMBER: _ClassVar[int]
    purged: int
    def __init__(self, purged: _Optional[int] = ...) -> None: ...

class GetLimitsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetLimitsResponse(_message.Message):
    __slots__ = ("limits",)
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    limits: _containers.RepeatedCompositeFieldContainer[LimitUse]
    def __init__(self, limits: _Optional[_Iterable[_Union[LimitUse, _Mapping]]] = ...) -> None: ...

class LimitUse(_message.Message):
    __slots__ = ("name", "used", "max", "reached")
    NAME_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    MAX_FIELD_NUMBER: _ClassVar[int]
    REACHED_FIELD_NUMBER: _ClassVar[int]
    name: str
    used: int
    max: int
    reached: int
    def __init__(self, name: _Optional[str] = ..., used: _Optional[int] = ..., max: _Optional[int] = ..., reached: _Optional[int] = ...) -> None: ...

class WhoAmIRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class WhoAmIResponse(_message.Message):
    __slots__ = ("version", "form", "auth", "key_id", "name", "expires_at_ms", "is_superadmin", "permissions")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    FORM_FIELD_NUMBER: _ClassVar[int]
    AUTH_FIELD_NUMBER: _ClassVar[int]
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_MS_FIELD_NUMBER: _ClassVar[int]
    IS_SUPERADMIN_FIELD_NUMBER: _ClassVar[int]
    PERMISSIONS_FIELD_NUMBER: _ClassVar[int]
    version: str
    form: str
    auth: bool
    key_id: str
    name: str
    expires_at_ms: int
    is_superadmin: bool
    permissions: _containers.RepeatedCompositeFieldContainer[AclPermission]
    def __init__(self, version: _Optional[str] = ..., form: _Optional[str] = ..., auth: _Optional[bool] = ..., key_id: _Optional[str] = ..., name: _Optional[str] = ..., expires_at_ms: _Optional[int] = ..., is_superadmin: _Optional[bool] = ..., permissions: _Optional[_Iterable[_Union[AclPermission, _Mapping]]] = ...) -> None: ...

class CreateBackupRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CreateBackupResponse(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ListBackupsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListBackupsResponse(_message.Message):
    __slots__ = ("target", "backups")
    TARGET_FIELD_NUMBER: _ClassVar[int]
    BACKUPS_FIELD_NUMBER: _ClassVar[int]
    target: str
    backups: _containers.RepeatedCompositeFieldContainer[Backup]
    def __init__(self, target: _Optional[str] = ..., backups: _Optional[_Iterable[_Union[Backup, _Mapping]]] = ...) -> None: ...

class Backup(_message.Message):
    __slots__ = ("name", "state", "at_ms", "files", "bytes", "new_bytes", "done_bytes", "error")
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    AT_MS_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    NEW_BYTES_FIELD_NUMBER: _ClassVar[int]
    DONE_BYTES_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    name: str
    state: str
    at_ms: int
    files: int
    bytes: int
    new_bytes: int
    done_bytes: int
    error: str
    def __init__(self, name: _Optional[str] = ..., state: _Optional[str] = ..., at_ms: _Optional[int] = ..., files: _Optional[int] = ..., bytes: _Optional[int] = ..., new_bytes: _Optional[int] = ..., done_bytes: _Optional[int] = ..., error: _Optional[str] = ...) -> None: ...
