"""The .proto files: numbers that clients rely on, and what is generated from them."""

import subprocess
import sys
from pathlib import Path

import pytest

from fila.edges.grpc.connection import METHODS
from fila.edges.grpc.v1 import admin_pb2, bulk_pb2, messages_pb2, reflection_pb2, service_pb2

ROOT = Path(__file__).parents[2]

# Fields by number. Clients in the field use these: a change here breaks them.
FIELDS = {
    "Message": "id headers payload metadata timestamps",
    "MessageMetadata": "fairness_key weight throttle_keys attempt_count queue_id",
    "MessageTimestamps": "enqueued_at leased_at",
    "EnqueueRequest": "messages",
    "EnqueueMessage": "queue headers payload",
    "EnqueueResponse": "results",
    "EnqueueResult": "message_id error",
    "EnqueueError": "code message",
    "StreamEnqueueRequest": "messages sequence_number",
    "StreamEnqueueResponse": "sequence_number results",
    "ConsumeRequest": "queue prefetch",
    "ConsumeResponse": "messages",
    "AckRequest": "messages",
    "AckMessage": "queue message_id",
    "AckResponse": "results",
    "AckResult": "success error",
    "AckSuccess": "",
    "AckError": "code message",
    "NackRequest": "messages",
    "NackMessage": "queue message_id error",
    "NackResponse": "results",
    "NackResult": "success error",
    "NackSuccess": "",
    "NackError": "code message",
    "CreateQueueRequest": "name config",
    "QueueConfig": "on_enqueue_script on_failure_script visibility_timeout_ms max_attempts cost",
    "CreateQueueResponse": "queue_id",
    "UpdateQueueRequest": "queue settings expected_version from_version note unrehearsed",
    "UpdateQueueResponse": "version",
    "GetQueueRequest": "queue version",
    "GetQueueResponse": "settings version at_ms who note",
    "ListVersionsRequest": "queue",
    "ListVersionsResponse": "versions",
    "QueueVersion": "version at_ms who note changed",
    "SetOverrideRequest": "queue fairness_key settings clear note",
    "SetOverrideResponse": "",
    "ListOverridesRequest": "queue",
    "ListOverridesResponse": "document",
    "ReclassifyRequest": "queue rate dry_run cancel",
    "ReclassifyResponse": "document",
    "GetReclassifyRequest": "queue",
    "GetReclassifyResponse": "document",
    "DeleteQueueRequest": "queue",
    "DeleteQueueResponse": "",
    "SetConfigRequest": "key value",
    "SetConfigResponse": "",
    "GetConfigRequest": "key",
    "GetConfigResponse": "value",
    "ListConfigRequest": "prefix",
    "ListConfigResponse": "entries total_count",
    "ConfigEntry": "key value",
    "GetStatsRequest": "queue",
    "GetStatsResponse": "depth in_flight active_fairness_keys active_consumers quantum "
    "per_key_stats per_throttle_stats leader_node_id replication_count cost",
    "PerFairnessKeyStats": "key pending_count current_deficit weight",
    "PerThrottleKeyStats": "key tokens rate_per_second burst",
    "RedriveRequest": "dlq_queue count",
    "RedriveResponse": "redriven",
    "ExplainRequest": "queue fairness_key message_id keys_max",
    "ExplainResponse": "document",
    "PauseQueueRequest": "queue reason",
    "PauseQueueResponse": "",
    "ResumeQueueRequest": "queue",
    "ResumeQueueResponse": "",
    "PauseKeyRequest": "queue fairness_key reason",
    "PauseKeyResponse": "",
    "ResumeKeyRequest": "queue fairness_key",
    "ResumeKeyResponse": "",
    "PurgeRequest": "queue fairness_key",
    "PurgeResponse": "purged",
    "ListQueuesRequest": "",
    "ListQueuesResponse": "queues cluster_node_count",
    "QueueInfo": "name depth in_flight active_consumers leader_node_id",
    "CreateApiKeyRequest": "name expires_at_ms is_superadmin",
    "CreateApiKeyResponse": "key_id key is_superadmin",
    "RevokeApiKeyRequest": "key_id",
    "RevokeApiKeyResponse": "",
    "ListApiKeysRequest": "",
    "ListApiKeysResponse": "keys",
    "ApiKeyInfo": "key_id name created_at_ms expires_at_ms is_superadmin",
    "SetAclRequest": "key_id permissions",
    "SetAclResponse": "",
    "AclPermission": "kind pattern",
    "GetLimitsRequest": "",
    "GetLimitsResponse": "limits",
    "LimitUse": "name used max reached",
    "CreateBackupRequest": "",
    "CreateBackupResponse": "name",
    "ListBackupsRequest": "",
    "ListBackupsResponse": "target backups",
    "Backup": "name state at_ms files bytes new_bytes done_bytes error",
    "WhoAmIRequest": "",
    "WhoAmIResponse": "version form auth key_id name expires_at_ms is_superadmin permissions",
    "GetAclRequest": "key_id",
    "GetAclResponse": "key_id permissions is_superadmin",
    "EnqueueWithRequest": "messages",
    "MessageWithOptions": "queue headers payload delay_ms idempotency_key fairness_key weight "
    "throttle_keys",
    "EnqueueWithResponse": "results",
    "EnqueueWithResult": "message_id duplicate code message",
    "ReleaseRequest": "queue message_ids",
    "ReleaseResponse": "codes",
    "LeaseBatchRequest": "queue name max_messages max_bytes visibility_ms wait_ms count_attempt "
    "as_arrow",
    "LeaseBatchResponse": "again expires_at_ms message_count messages arrow",
    "BatchSelection": "queue name below",
    "ExtendBatchRequest": "queue name below visibility_ms",
    "ExtendRequest": "queue message_ids visibility_ms",
    "ExtendResponse": "visibility_ms missing",
    "BatchCount": "batches messages",
    "ListBatchesRequest": "queue",
    "ListBatchesResponse": "batches",
    "OpenBatch": "name messages leased_at_ms expires_at_ms",
    "BrowseRequest": "queue fairness_key parts ttl_ms",
    "BrowseResponse": "snapshot expires_at_ms message_count ranges",
    "BrowseRange": "start end",
    "BrowsePageRequest": "snapshot start end states max_messages max_bytes as_arrow",
    "BrowsePageResponse": "messages next message_count arrow",
    "BrowsedMessage": "message ready_at_ms state",
    "BrowseCloseRequest": "snapshot",
    "BrowseCloseResponse": "",
}
CODES = {
    "EnqueueErrorCode": ("ENQUEUE_ERROR_CODE_", "UNSPECIFIED QUEUE_NOT_FOUND STORAGE LUA "
                         "PERMISSION_DENIED INVALID_MESSAGE"),
    "AckErrorCode": ("ACK_ERROR_CODE_", "UNSPECIFIED MESSAGE_NOT_FOUND STORAGE PERMISSION_DENIED"),
    "NackErrorCode": (
        "NACK_ERROR_CODE_",
        "UNSPECIFIED MESSAGE_NOT_FOUND STORAGE PERMISSION_DENIED",
    ),
}  # fmt: skip
FILES = (messages_pb2, service_pb2, bulk_pb2, admin_pb2)


def test_every_field_keeps_its_number() -> None:
    declared = {
        message.name: {field.number: field.name for field in message.fields}
        for file in FILES
        for message in file.DESCRIPTOR.message_types_by_name.values()
    }
    assert declared == {
        name: dict(enumerate(fields.split(), start=1)) for name, fields in FIELDS.items()
    }


def test_every_error_code_keeps_its_number() -> None:
    for name, (prefix, words) in CODES.items():
        enum = service_pb2.DESCRIPTOR.enum_types_by_name[name]
        assert {value.number: value.name for value in enum.values} == {
            number: prefix + word for number, word in enumerate(words.split())
        }


def test_the_numbers_of_other_types_are_as_declared() -> None:
    types = {
        ("MessageMetadata", "weight"): "uint32",
        ("StreamEnqueueRequest", "sequence_number"): "uint64",
        ("QueueConfig", "visibility_timeout_ms"): "uint64",
        ("PerFairnessKeyStats", "current_deficit"): "int64",
        ("PerThrottleKeyStats", "tokens"): "double",
        ("ListConfigResponse", "total_count"): "uint32",
        ("GetStatsResponse", "active_consumers"): "uint32",
        ("RedriveRequest", "count"): "uint64",
        ("EnqueueMessage", "payload"): "bytes",
    }
    names = {1: "double", 3: "int64", 4: "uint64", 12: "bytes", 13: "uint32"}
    for (message, field), expected in types.items():
        file = next(one for one in FILES if message in one.DESCRIPTOR.message_types_by_name)
        found = file.DESCRIPTOR.message_types_by_name[message].fields_by_name[field]
        assert names[found.type] == expected, f"{message}.{field}"


def test_every_declared_method_is_served() -> None:
    declared = {
        f"/{service.full_name}/{method.name}".encode()
        for file in (*FILES, reflection_pb2)
        for service in file.DESCRIPTOR.services_by_name.values()
        for method in service.methods
    }
    assert declared <= METHODS.keys()


def test_generating_again_gives_the_same_files() -> None:
    pytest.importorskip("grpc_tools")
    made = subprocess.run(
        [sys.executable, str(ROOT / "spec/proto/make.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stdout + made.stderr
