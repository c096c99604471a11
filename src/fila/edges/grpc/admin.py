"""FilaAdmin: queues, config, statistics, API keys and ACLs on a session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from google.protobuf.message import Message

from fila.core.rejection import Rejection
from fila.edges.grpc import status as grpc_status
from fila.edges.grpc.call import Method, UnaryCall, parser
from fila.edges.grpc.service import of_queue
from fila.edges.grpc.status import Status
from fila.edges.grpc.v1 import admin_pb2 as pb
from fila.security.permission import Permission

REQUEST_BYTES_MAX: Final = 4 * 1024 * 1024
KEYS_MAX: Final = 65_535  # fairness keys, and as many buckets, in one answer

Answer = bytes | Status | None


def _create_queue(call: UnaryCall, request: pb.CreateQueueRequest) -> Answer:
    config = request.config
    fault = call.session.create_queue(
        request.name,
        config.on_enqueue_script or None,
        config.on_failure_script or None,
        config.visibility_timeout_ms,
    )
    return _done(fault, pb.CreateQueueResponse(queue_id=request.name))


def _delete_queue(call: UnaryCall, request: pb.DeleteQueueRequest) -> Answer:
    fault = call.session.delete_queue(request.queue)
    if fault is not None:
        return of_queue(request.queue, fault)
    return pb.DeleteQueueResponse().SerializeToString()


def _set_config(call: UnaryCall, request: pb.SetConfigRequest) -> Answer:
    return _done(call.session.set_config(request.key, request.value), pb.SetConfigResponse())


def _get_config(call: UnaryCall, request: pb.GetConfigRequest) -> Answer:
    value = call.session.get_config(request.key)
    if isinstance(value, Rejection):
        return grpc_status.of(value)
    if not value:
        return Status(grpc_status.NOT_FOUND, f'config key "{request.key}" is not set')
    return pb.GetConfigResponse(value=value).SerializeToString()


def _list_config(call: UnaryCall, request: pb.ListConfigRequest) -> Answer:
    found = call.session.list_config(request.prefix)
    if isinstance(found, Rejection):
        return grpc_status.of(found)
    entries = [pb.ConfigEntry(key=key, value=value) for key, value in found]
    return pb.ListConfigResponse(entries=entries, total_count=len(entries)).SerializeToString()


def _get_stats(call: UnaryCall, request: pb.GetStatsRequest) -> Answer:
    found = call.session.stats(request.queue, KEYS_MAX)
    if isinstance(found, Rejection):
        return of_queue(request.queue, found)
    return pb.GetStatsResponse(
        depth=found.depth,
        in_flight=found.in_flight,
        active_fairness_keys=found.active_keys,
        active_consumers=found.consumers,
        quantum=found.quantum,
        per_key_stats=[
            pb.PerFairnessKeyStats(
                key=one.key.decode(),
                pending_count=one.pending,
                current_deficit=one.deficit,
                weight=one.weight,
            )
            for one in found.keys
        ],
        per_throttle_stats=[
            pb.PerThrottleKeyStats(
                key=one.key.decode(),
                tokens=one.tokens,
                rate_per_second=one.rate,
                burst=one.burst,
            )
            for one in found.buckets
        ],
    ).SerializeToString()


def _redrive(call: UnaryCall, request: pb.RedriveRequest) -> Answer:
    def done(moved: int) -> None:
        call.answer(pb.RedriveResponse(redriven=moved).SerializeToString())

    fault = call.session.redrive(request.dlq_queue, request.count, done)
    return of_queue(request.dlq_queue, fault) if fault is not None else None


def _list_queues(call: UnaryCall, request: pb.ListQueuesRequest) -> Answer:
    queues = [
        pb.QueueInfo(
            name=one.name,
            depth=one.depth,
            in_flight=one.in_flight,
            active_consumers=one.consumers,
        )
        for one in call.session.queues()
    ]
    return pb.ListQueuesResponse(queues=queues).SerializeToString()


def _explain(call: UnaryCall, request: pb.ExplainRequest) -> Answer:
    key = request.fairness_key if request.HasField("fairness_key") else None
    keys_max = request.keys_max or 10
    found = call.session.explain(request.queue, key, request.message_id, keys_max)
    if isinstance(found, Rejection):
        return of_queue(request.queue, found)
    return pb.ExplainResponse(document=found).SerializeToString()


def _pause_queue(call: UnaryCall, request: pb.PauseQueueRequest) -> Answer:
    fault = call.session.pause_queue(request.queue, request.reason)
    return _stopped(request.queue, fault, pb.PauseQueueResponse())


def _resume_queue(call: UnaryCall, request: pb.ResumeQueueRequest) -> Answer:
    fault = call.session.resume_queue(request.queue)
    return _stopped(request.queue, fault, pb.ResumeQueueResponse())


def _pause_key(call: UnaryCall, request: pb.PauseKeyRequest) -> Answer:
    fault = call.session.pause_key(request.queue, request.fairness_key, request.reason)
    return _stopped(request.queue, fault, pb.PauseKeyResponse())


def _resume_key(call: UnaryCall, request: pb.ResumeKeyRequest) -> Answer:
    fault = call.session.resume_key(request.queue, request.fairness_key)
    return _stopped(request.queue, fault, pb.ResumeKeyResponse())


def _purge(call: UnaryCall, request: pb.PurgeRequest) -> Answer:
    def done(purged: int) -> None:
        call.answer(pb.PurgeResponse(purged=purged).SerializeToString())

    key = request.fairness_key if request.HasField("fairness_key") else None
    fault = call.session.purge(request.queue, key, done)
    return of_queue(request.queue, fault) if fault is not None else None


def _create_key(call: UnaryCall, request: pb.CreateApiKeyRequest) -> Answer:
    made = call.session.create_key(request.name, request.expires_at_ms, request.is_superadmin)
    if isinstance(made, Rejection):
        return grpc_status.of(made)
    key, secret = made
    return pb.CreateApiKeyResponse(
        key_id=key.id, key=secret, is_superadmin=key.superadmin
    ).SerializeToString()


def _revoke_key(call: UnaryCall, request: pb.RevokeApiKeyRequest) -> Answer:
    return _done(call.session.revoke_key(request.key_id), pb.RevokeApiKeyResponse())


def _list_keys(call: UnaryCall, request: pb.ListApiKeysRequest) -> Answer:
    found = call.session.keys()
    if isinstance(found, Rejection):
        return grpc_status.of(found)
    keys = [
        pb.ApiKeyInfo(
            key_id=one.id,
            name=one.name,
            created_at_ms=one.created_ms,
            expires_at_ms=one.expires_ms,
            is_superadmin=one.superadmin,
        )
        for one in found
    ]
    return pb.ListApiKeysResponse(keys=keys).SerializeToString()


def _set_acl(call: UnaryCall, request: pb.SetAclRequest) -> Answer:
    permissions = tuple(Permission(one.kind, one.pattern) for one in request.permissions)
    return _done(call.session.set_acl(request.key_id, permissions), pb.SetAclResponse())


def _get_acl(call: UnaryCall, request: pb.GetAclRequest) -> Answer:
    found = call.session.get_acl(request.key_id)
    if isinstance(found, Rejection):
        return grpc_status.of(found)
    permissions = [
        pb.AclPermission(kind=kind, pattern=pattern) for kind, pattern in found.permissions
    ]
    return pb.GetAclResponse(
        key_id=found.id, permissions=permissions, is_superadmin=found.superadmin
    ).SerializeToString()


def _stopped(queue: str, fault: Rejection | None, response: Message) -> Answer:
    return of_queue(queue, fault) if fault is not None else response.SerializeToString()


def _done(fault: Rejection | None, response: Message) -> Answer:
    return grpc_status.of(fault) if fault is not None else response.SerializeToString()


def _method(request: type[Message], apply: Callable[[UnaryCall, Any], Answer]) -> Method:
    return Method(UnaryCall, parser(request), apply, request.DESCRIPTOR.name, REQUEST_BYTES_MAX)


METHODS: Final[dict[bytes, Method]] = {
    b"/fila.v1.FilaAdmin/CreateQueue": _method(pb.CreateQueueRequest, _create_queue),
    b"/fila.v1.FilaAdmin/DeleteQueue": _method(pb.DeleteQueueRequest, _delete_queue),
    b"/fila.v1.FilaAdmin/SetConfig": _method(pb.SetConfigRequest, _set_config),
    b"/fila.v1.FilaAdmin/GetConfig": _method(pb.GetConfigRequest, _get_config),
    b"/fila.v1.FilaAdmin/ListConfig": _method(pb.ListConfigRequest, _list_config),
    b"/fila.v1.FilaAdmin/GetStats": _method(pb.GetStatsRequest, _get_stats),
    b"/fila.v1.FilaAdmin/Redrive": _method(pb.RedriveRequest, _redrive),
    b"/fila.v1.FilaAdmin/Explain": _method(pb.ExplainRequest, _explain),
    b"/fila.v1.FilaAdmin/PauseQueue": _method(pb.PauseQueueRequest, _pause_queue),
    b"/fila.v1.FilaAdmin/ResumeQueue": _method(pb.ResumeQueueRequest, _resume_queue),
    b"/fila.v1.FilaAdmin/PauseKey": _method(pb.PauseKeyRequest, _pause_key),
    b"/fila.v1.FilaAdmin/ResumeKey": _method(pb.ResumeKeyRequest, _resume_key),
    b"/fila.v1.FilaAdmin/Purge": _method(pb.PurgeRequest, _purge),
    b"/fila.v1.FilaAdmin/ListQueues": _method(pb.ListQueuesRequest, _list_queues),
    b"/fila.v1.FilaAdmin/CreateApiKey": _method(pb.CreateApiKeyRequest, _create_key),
    b"/fila.v1.FilaAdmin/RevokeApiKey": _method(pb.RevokeApiKeyRequest, _revoke_key),
    b"/fila.v1.FilaAdmin/ListApiKeys": _method(pb.ListApiKeysRequest, _list_keys),
    b"/fila.v1.FilaAdmin/SetAcl": _method(pb.SetAclRequest, _set_acl),
    b"/fila.v1.FilaAdmin/GetAcl": _method(pb.GetAclRequest, _get_acl),
}
