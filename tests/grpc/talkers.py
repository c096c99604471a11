"""Both protocols behind one face, so that the same scenario can be played over either.

What they call differently is made alike here: errors are gRPC's status names with the broker's
text, messages are `Got`. Nothing else is smoothed over.
"""

from __future__ import annotations

import json
from types import TracebackType
from typing import Any, NamedTuple, Protocol

import grpc
from fila.edges.grpc.v1 import admin_pb2
from fila.edges.grpc.v1 import service_pb2 as pb
from fila.wire import bodies, errors, message_codec
from fila.wire import opcodes as op
from fila.wire.message import message_body
from tests.e2e.peer import Closed, Peer, Refused
from tests.grpc.client import Client, message

# The status that stands for each code of the catalogue.
STATUS = {
    errors.QUEUE_NOT_FOUND: "NOT_FOUND",
    errors.MESSAGE_NOT_FOUND: "NOT_FOUND",
    errors.QUEUE_ALREADY_EXISTS: "ALREADY_EXISTS",
    errors.LUA_COMPILATION_ERROR: "INVALID_ARGUMENT",
    errors.NOT_A_DLQ: "INVALID_ARGUMENT",
    errors.PARENT_QUEUE_NOT_FOUND: "FAILED_PRECONDITION",
    errors.INVALID_CONFIG_VALUE: "INVALID_ARGUMENT",
    errors.UNAUTHORIZED: "UNAUTHENTICATED",
    errors.FORBIDDEN: "PERMISSION_DENIED",
    errors.API_KEY_NOT_FOUND: "NOT_FOUND",
    errors.BATCH_NOT_FOUND: "NOT_FOUND",
    errors.SNAPSHOT_EXPIRED: "FAILED_PRECONDITION",
    errors.VERSION_CONFLICT: "ABORTED",
}


class Fault(Exception):  # noqa: N818
    """A refusal, in whichever protocol."""

    def __init__(self, status: str, text: str) -> None:
        super().__init__(f"{status}: {text}")
        self.status = status
        self.text = text


class Got(NamedTuple):
    """A delivered message."""

    id: str
    queue: str
    headers: dict[str, str]
    payload: bytes
    fairness_key: str
    weight: int
    throttle_keys: tuple[str, ...]
    attempts: int
    enqueued_ms: int
    leased_ms: int


class Stats(NamedTuple):
    depth: int
    in_flight: int
    active_keys: int
    consumers: int
    quantum: int
    keys: dict[str, tuple[int, int]]  # pending, weight
    buckets: dict[str, tuple[float, float]]  # rate, burst


class Stream(Protocol):
    def take(self, count: int) -> list[Got]: ...

    def leave(self) -> None: ...


class Talker(Protocol):
    """A client with one connection and, perhaps, a key."""

    def create_queue(
        self, name: str, on_enqueue: str = "", on_failure: str = "", visibility_ms: int = 0
    ) -> None: ...

    def delete_queue(self, name: str) -> None: ...

    def enqueue(self, queue: str, *payloads: bytes, headers: dict[str, str]) -> list[str]: ...

    def enqueue_mixed(self, *items: tuple[str, bytes]) -> list[str]:
        """An id, or the status of what went wrong, for every (queue, payload)."""

    def consume(self, queue: str, prefetch: int = 0) -> Stream: ...

    def ack(self, queue: str, *ids: str) -> list[str]:
        """`OK` or a status for every id."""

    def nack(self, queue: str, *ids: str, error: str = "") -> list[str]: ...

    def stats(self, queue: str) -> Stats: ...

    def queues(self) -> dict[str, tuple[int, int, int]]:
        """Depth, in flight and consumers of every queue."""

    def set_config(self, key: str, value: str) -> None: ...

    def get_config(self, key: str) -> str | None: ...

    def list_config(self, prefix: str) -> dict[str, str]: ...

    def redrive(self, queue: str, count: int = 0) -> int: ...

    def explain(self, queue: str, key: str | None = None, message_id: str = "") -> dict[str, Any]:
        """The document."""

    def update_queue(self, queue: str, settings: dict[str, str], expected: int = 0) -> int: ...

    def queue_settings(self, queue: str, version: int = 0) -> dict[str, str]: ...

    def versions(self, queue: str) -> list[tuple[int, str, list[str]]]:
        """Number, author and what changed of every version."""

    def set_override(
        self, queue: str, key: str, settings: dict[str, str], clear: bool = False
    ) -> None: ...

    def overrides(self, queue: str) -> list[dict[str, Any]]: ...

    def reclassify(self, queue: str) -> dict[str, Any]: ...

    def reclassification(self, queue: str) -> dict[str, Any]: ...

    def pause_queue(self, queue: str, reason: str = "") -> None: ...

    def resume_queue(self, queue: str) -> None: ...

    def pause_key(self, queue: str, key: str, reason: str = "") -> None: ...

    def resume_key(self, queue: str, key: str) -> None: ...

    def purge(self, queue: str, key: str | None = None) -> int: ...

    def create_key(self, name: str, expires_ms: int = 0, superadmin: bool = False) -> Any:
        """An object with key_id, key and is_superadmin."""

    def revoke_key(self, key_id: str) -> None: ...

    def api_keys(self) -> list[Any]:
        """Objects with key_id, name, created_at_ms, expires_at_ms and is_superadmin."""

    def limits(self) -> list[Any]:
        """Objects with name, used, max and reached."""

    def create_backup(self) -> str:
        """Its name."""

    def backups(self) -> Any:
        """An object with target and backups."""

    def who_am_i(self) -> Any:
        """An object with version, form, auth, key_id, name, is_superadmin and permissions."""

    def set_acl(self, key_id: str, *permissions: tuple[str, str]) -> None: ...

    def get_acl(self, key_id: str) -> tuple[bool, list[tuple[str, str]]]: ...

    def close(self) -> None: ...


class _Closing:
    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Any:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class FibpTalker(_Closing):
    def __init__(self, address: tuple[str, int], key: str | None = None) -> None:
        self.peer = Peer(address, handshake=False)
        with fibp_faults():
            self.peer.request(bodies.Handshake(1, key), bodies.HandshakeOk)

    def __enter__(self) -> FibpTalker:
        return self

    def create_queue(
        self, name: str, on_enqueue: str = "", on_failure: str = "", visibility_ms: int = 0
    ) -> None:
        with fibp_faults():
            self.peer.create_queue(name, on_enqueue or None, on_failure or None, visibility_ms)

    def delete_queue(self, name: str) -> None:
        with fibp_faults():
            self.peer.delete_queue(name)

    def enqueue(
        self, queue: str, *payloads: bytes, headers: dict[str, str] | None = None
    ) -> list[str]:
        with fibp_faults():
            return self.peer.enqueue(queue, *payloads, headers=headers)

    def enqueue_mixed(self, *items: tuple[str, bytes]) -> list[str]:
        messages = [
            (message_codec.queue_field(queue.encode()), message_body({}, payload))
            for queue, payload in items
        ]
        with fibp_faults():
            request = self.peer.send(op.ENQUEUE, message_codec.encode_enqueue(messages))
            results = self.peer.enqueue_results(request)
        return [id if code == errors.OK else STATUS[code] for code, id in results]

    def consume(self, queue: str, prefetch: int = 0) -> FibpStream:
        with fibp_faults():
            return FibpStream(self.peer, self.peer.consume(queue, prefetch or None))

    def ack(self, queue: str, *ids: str) -> list[str]:
        with fibp_faults():
            return [_status(code) for code in self.peer.ack(queue, *ids)]

    def nack(self, queue: str, *ids: str, error: str = "") -> list[str]:
        with fibp_faults():
            return [_status(code) for code in self.peer.nack(queue, *ids, error=error)]

    def stats(self, queue: str) -> Stats:
        with fibp_faults():
            found = self.peer.stats(queue)
        return Stats(
            found.depth,
            found.in_flight,
            found.active_fairness_keys,
            found.active_consumers,
            found.quantum,
            {one.key: (one.pending, one.weight) for one in found.fairness_keys},
            {one.key: (one.rate_per_second, one.burst) for one in found.throttle_keys},
        )

    def queues(self) -> dict[str, tuple[int, int, int]]:
        with fibp_faults():
            found = self.peer.queues()
        return {
            name: (one.depth, one.in_flight, one.active_consumers) for name, one in found.items()
        }

    def set_config(self, key: str, value: str) -> None:
        with fibp_faults():
            self.peer.set_config(key, value)

    def get_config(self, key: str) -> str | None:
        with fibp_faults():
            return self.peer.get_config(key) or None

    def list_config(self, prefix: str) -> dict[str, str]:
        with fibp_faults():
            return self.peer.list_config(prefix)

    def redrive(self, queue: str, count: int = 0) -> int:
        with fibp_faults():
            return self.peer.redrive(queue, count)

    def explain(self, queue: str, key: str | None = None, message_id: str = "") -> dict[str, Any]:
        with fibp_faults():
            record = bodies.Explain(queue, key, message_id)
            found: dict[str, Any] = json.loads(
                self.peer.request(record, bodies.ExplainResult).document
            )
            return found

    def update_queue(self, queue: str, settings: dict[str, str], expected: int = 0) -> int:
        with fibp_faults():
            record = bodies.UpdateQueue(queue, settings, expected)
            return self.peer.request(record, bodies.UpdateQueueResult).version

    def queue_settings(self, queue: str, version: int = 0) -> dict[str, str]:
        with fibp_faults():
            record = bodies.GetQueue(queue, version)
            found = self.peer.request(record, bodies.GetQueueResult)
            return {one.key: one.value for one in found.settings}

    def versions(self, queue: str) -> list[tuple[int, str, list[str]]]:
        with fibp_faults():
            found = self.peer.request(bodies.ListVersions(queue), bodies.ListVersionsResult)
            return [(one.version, one.who, list(one.changed)) for one in found.versions]

    def set_override(
        self, queue: str, key: str, settings: dict[str, str], clear: bool = False
    ) -> None:
        with fibp_faults():
            record = bodies.SetOverride(queue, key, settings, clear)
            self.peer.request(record, bodies.SetOverrideResult)

    def overrides(self, queue: str) -> list[dict[str, Any]]:
        with fibp_faults():
            found = self.peer.request(bodies.ListOverrides(queue), bodies.ListOverridesResult)
            document: list[dict[str, Any]] = json.loads(found.document)
            return document

    def reclassify(self, queue: str) -> dict[str, Any]:
        with fibp_faults():
            found = self.peer.request(bodies.Reclassify(queue), bodies.ReclassifyResult)
            document: dict[str, Any] = json.loads(found.document)
            return document

    def reclassification(self, queue: str) -> dict[str, Any]:
        with fibp_faults():
            found = self.peer.request(bodies.GetReclassify(queue), bodies.GetReclassifyResult)
            document: dict[str, Any] = json.loads(found.document)
            return document

    def pause_queue(self, queue: str, reason: str = "") -> None:
        with fibp_faults():
            self.peer.request(bodies.PauseQueue(queue, reason), bodies.PauseQueueResult)

    def resume_queue(self, queue: str) -> None:
        with fibp_faults():
            self.peer.request(bodies.ResumeQueue(queue), bodies.ResumeQueueResult)

    def pause_key(self, queue: str, key: str, reason: str = "") -> None:
        with fibp_faults():
            self.peer.request(bodies.PauseKey(queue, key, reason), bodies.PauseKeyResult)

    def resume_key(self, queue: str, key: str) -> None:
        with fibp_faults():
            self.peer.request(bodies.ResumeKey(queue, key), bodies.ResumeKeyResult)

    def purge(self, queue: str, key: str | None = None) -> int:
        with fibp_faults():
            return self.peer.request(bodies.Purge(queue, key), bodies.PurgeResult).purged

    def create_key(self, name: str, expires_ms: int = 0, superadmin: bool = False) -> Any:
        with fibp_faults():
            record = bodies.CreateApiKey(name, expires_ms, superadmin)
            return self.peer.request(record, bodies.CreateApiKeyResult)

    def revoke_key(self, key_id: str) -> None:
        with fibp_faults():
            self.peer.request(bodies.RevokeApiKey(key_id), bodies.RevokeApiKeyResult)

    def api_keys(self) -> list[Any]:
        with fibp_faults():
            return list(self.peer.request(bodies.ListApiKeys(), bodies.ListApiKeysResult).keys)

    def limits(self) -> list[Any]:
        with fibp_faults():
            return list(self.peer.request(bodies.GetLimits(), bodies.GetLimitsResult).limits)

    def create_backup(self) -> str:
        with fibp_faults():
            return str(self.peer.request(bodies.CreateBackup(), bodies.CreateBackupResult).name)

    def backups(self) -> Any:
        with fibp_faults():
            return self.peer.request(bodies.ListBackups(), bodies.ListBackupsResult)

    def who_am_i(self) -> Any:
        with fibp_faults():
            return self.peer.request(bodies.WhoAmI(), bodies.WhoAmIResult)

    def set_acl(self, key_id: str, *permissions: tuple[str, str]) -> None:
        wanted = tuple(bodies.Permission(*one) for one in permissions)
        with fibp_faults():
            self.peer.request(bodies.SetAcl(key_id, wanted), bodies.SetAclResult)

    def get_acl(self, key_id: str) -> tuple[bool, list[tuple[str, str]]]:
        with fibp_faults():
            found = self.peer.request(bodies.GetAcl(key_id), bodies.GetAclResult)
        return found.is_superadmin, [(one.kind, one.pattern) for one in found.permissions]

    def close(self) -> None:
        self.peer.close()


class FibpStream:
    def __init__(self, peer: Peer, stream: int) -> None:
        self._peer = peer
        self._stream = stream

    def take(self, count: int) -> list[Got]:
        with fibp_faults():
            return [Got(*one[:-1]) for one in self._peer.take(self._stream, count)]

    def ended(self) -> Fault:
        """How the broker ended it: an Error frame for the stream, or for the connection."""
        try:
            self._peer.reply(self._stream)
        except Refused as refused:
            return _fault(refused)
        except Closed:
            try:
                self._peer.reply(0)
            except Refused as refused:
                return _fault(refused)
            raise
        raise AssertionError("the stream goes on")

    def leave(self) -> None:
        self._peer.cancel(self._stream)


class GrpcTalker(_Closing):
    def __init__(self, address: tuple[str, int], key: str | None = None) -> None:
        self.client = Client(address, key)

    def __enter__(self) -> GrpcTalker:
        return self

    def create_queue(
        self, name: str, on_enqueue: str = "", on_failure: str = "", visibility_ms: int = 0
    ) -> None:
        with grpc_faults():
            self.client.create_queue(name, on_enqueue, on_failure, visibility_ms)

    def delete_queue(self, name: str) -> None:
        with grpc_faults():
            self.client.delete_queue(name)

    def enqueue(
        self, queue: str, *payloads: bytes, headers: dict[str, str] | None = None
    ) -> list[str]:
        messages = [message(queue, payload, headers) for payload in payloads]
        with grpc_faults():
            results = self.client.call("Enqueue", pb.EnqueueRequest(messages=messages)).results
        return [_item(one) for one in results]

    def enqueue_mixed(self, *items: tuple[str, bytes]) -> list[str]:
        messages = [message(queue, payload) for queue, payload in items]
        with grpc_faults():
            results = self.client.call("Enqueue", pb.EnqueueRequest(messages=messages)).results
        names = {1: "NOT_FOUND", 4: "PERMISSION_DENIED"}
        return [one.message_id or names[one.error.code] for one in results]

    def consume(self, queue: str, prefetch: int = 0) -> GrpcStream:
        """A refusal shows when something is taken, not before."""
        call = self.client.consume(queue, prefetch).call
        call.initial_metadata()  # comes when the consumer is accepted, or with the refusal
        return GrpcStream(call)

    def ack(self, queue: str, *ids: str) -> list[str]:
        with grpc_faults():
            return [_settled(one) for one in self.client.ack(queue, *ids)]

    def nack(self, queue: str, *ids: str, error: str = "") -> list[str]:
        with grpc_faults():
            return [_settled(one) for one in self.client.nack(queue, *ids, error=error)]

    def stats(self, queue: str) -> Stats:
        with grpc_faults():
            found = self.client.stats(queue)
        return Stats(
            found.depth,
            found.in_flight,
            found.active_fairness_keys,
            found.active_consumers,
            found.quantum,
            {one.key: (one.pending_count, one.weight) for one in found.per_key_stats},
            {one.key: (one.rate_per_second, one.burst) for one in found.per_throttle_stats},
        )

    def queues(self) -> dict[str, tuple[int, int, int]]:
        with grpc_faults():
            found = self.client.queues()
        return {one.name: (one.depth, one.in_flight, one.active_consumers) for one in found}

    def set_config(self, key: str, value: str) -> None:
        with grpc_faults():
            self.client.set_config(key, value)

    def get_config(self, key: str) -> str | None:
        try:
            with grpc_faults():
                return self.client.get_config(key)
        except Fault as fault:
            if fault.status == "NOT_FOUND":
                return None
            raise

    def list_config(self, prefix: str) -> dict[str, str]:
        with grpc_faults():
            return self.client.list_config(prefix)

    def redrive(self, queue: str, count: int = 0) -> int:
        with grpc_faults():
            return self.client.redrive(queue, count)

    def explain(self, queue: str, key: str | None = None, message_id: str = "") -> dict[str, Any]:
        with grpc_faults():
            request = admin_pb2.ExplainRequest(queue=queue, fairness_key=key, message_id=message_id)
            found: dict[str, Any] = json.loads(self.client.call("Explain", request).document)
            return found

    def update_queue(self, queue: str, settings: dict[str, str], expected: int = 0) -> int:
        with grpc_faults():
            request = admin_pb2.UpdateQueueRequest(
                queue=queue, settings=settings, expected_version=expected
            )
            version: int = self.client.call("UpdateQueue", request).version
            return version

    def queue_settings(self, queue: str, version: int = 0) -> dict[str, str]:
        with grpc_faults():
            request = admin_pb2.GetQueueRequest(queue=queue, version=version)
            found = self.client.call("GetQueue", request)
            return {one.key: one.value for one in found.settings}

    def versions(self, queue: str) -> list[tuple[int, str, list[str]]]:
        with grpc_faults():
            found = self.client.call("ListVersions", admin_pb2.ListVersionsRequest(queue=queue))
            return [(one.version, one.who, list(one.changed)) for one in found.versions]

    def set_override(
        self, queue: str, key: str, settings: dict[str, str], clear: bool = False
    ) -> None:
        with grpc_faults():
            request = admin_pb2.SetOverrideRequest(
                queue=queue, fairness_key=key, settings=settings, clear=clear
            )
            self.client.call("SetOverride", request)

    def overrides(self, queue: str) -> list[dict[str, Any]]:
        with grpc_faults():
            found = self.client.call("ListOverrides", admin_pb2.ListOverridesRequest(queue=queue))
            document: list[dict[str, Any]] = json.loads(found.document)
            return document

    def reclassify(self, queue: str) -> dict[str, Any]:
        with grpc_faults():
            found = self.client.call("Reclassify", admin_pb2.ReclassifyRequest(queue=queue))
            document: dict[str, Any] = json.loads(found.document)
            return document

    def reclassification(self, queue: str) -> dict[str, Any]:
        with grpc_faults():
            found = self.client.call("GetReclassify", admin_pb2.GetReclassifyRequest(queue=queue))
            document: dict[str, Any] = json.loads(found.document)
            return document

    def pause_queue(self, queue: str, reason: str = "") -> None:
        with grpc_faults():
            self.client.call("PauseQueue", admin_pb2.PauseQueueRequest(queue=queue, reason=reason))

    def resume_queue(self, queue: str) -> None:
        with grpc_faults():
            self.client.call("ResumeQueue", admin_pb2.ResumeQueueRequest(queue=queue))

    def pause_key(self, queue: str, key: str, reason: str = "") -> None:
        with grpc_faults():
            self.client.call(
                "PauseKey", admin_pb2.PauseKeyRequest(queue=queue, fairness_key=key, reason=reason)
            )

    def resume_key(self, queue: str, key: str) -> None:
        with grpc_faults():
            self.client.call("ResumeKey", admin_pb2.ResumeKeyRequest(queue=queue, fairness_key=key))

    def purge(self, queue: str, key: str | None = None) -> int:
        with grpc_faults():
            return self.client.call(
                "Purge", admin_pb2.PurgeRequest(queue=queue, fairness_key=key)
            ).purged

    def create_key(
        self, name: str, expires_ms: int = 0, superadmin: bool = False
    ) -> admin_pb2.CreateApiKeyResponse:
        with grpc_faults():
            return self.client.create_key(name, expires_ms, superadmin)

    def revoke_key(self, key_id: str) -> None:
        with grpc_faults():
            self.client.revoke_key(key_id)

    def api_keys(self) -> list[Any]:
        with grpc_faults():
            return list(self.client.api_keys())

    def limits(self) -> list[Any]:
        with grpc_faults():
            return list(self.client.call("GetLimits", admin_pb2.GetLimitsRequest()).limits)

    def create_backup(self) -> str:
        with grpc_faults():
            return str(self.client.call("CreateBackup", admin_pb2.CreateBackupRequest()).name)

    def backups(self) -> Any:
        with grpc_faults():
            return self.client.call("ListBackups", admin_pb2.ListBackupsRequest())

    def who_am_i(self) -> Any:
        with grpc_faults():
            return self.client.call("WhoAmI", admin_pb2.WhoAmIRequest())

    def set_acl(self, key_id: str, *permissions: tuple[str, str]) -> None:
        with grpc_faults():
            self.client.set_acl(key_id, *permissions)

    def get_acl(self, key_id: str) -> tuple[bool, list[tuple[str, str]]]:
        with grpc_faults():
            found = self.client.get_acl(key_id)
        return found.is_superadmin, [(one.kind, one.pattern) for one in found.permissions]

    def close(self) -> None:
        self.client.close()


class GrpcStream:
    def __init__(self, call: Any) -> None:
        self._call = call
        self._waiting: list[Got] = []

    def take(self, count: int) -> list[Got]:
        with grpc_faults():
            while len(self._waiting) < count:
                self._waiting += [_got(one) for one in next(self._call).messages]
        taken, self._waiting = self._waiting[:count], self._waiting[count:]
        return taken

    def ended(self) -> Fault:
        try:
            next(self._call)
        except grpc.RpcError as refused:
            return Fault(refused.code().name, refused.details())
        raise AssertionError("the stream goes on")

    def leave(self) -> None:
        self._call.cancel()


class fibp_faults:  # noqa: N801  read as a statement
    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: Any
    ) -> None:
        if isinstance(error, Refused):
            raise _fault(error) from error


class grpc_faults:  # noqa: N801
    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: Any
    ) -> None:
        if isinstance(error, grpc.RpcError):
            raise Fault(error.code().name, error.details()) from error


def _fault(refused: Refused) -> Fault:
    return Fault(STATUS[refused.code], refused.message)


def _status(code: int) -> str:
    return "OK" if code == errors.OK else STATUS[code]


def _item(result: pb.EnqueueResult) -> str:
    if result.message_id:
        return result.message_id
    names = {1: "NOT_FOUND", 4: "PERMISSION_DENIED"}
    raise Fault(names[result.error.code], result.error.message)


def _settled(result: Any) -> str:
    if result.WhichOneof("result") == "success":
        return "OK"
    names = {1: "NOT_FOUND", 3: "PERMISSION_DENIED"}
    return names[result.error.code]


def _got(one: Any) -> Got:
    return Got(
        one.id,
        one.metadata.queue_id,
        dict(one.headers),
        one.payload,
        one.metadata.fairness_key,
        one.metadata.weight,
        tuple(one.metadata.throttle_keys),
        one.metadata.attempt_count,
        one.timestamps.enqueued_at.ToMilliseconds(),
        one.timestamps.leased_at.ToMilliseconds(),
    )
