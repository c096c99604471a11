"""FIBP's admin operations: queues, config, stats, redrive, API keys and ACLs.

Failures come inside the result, but for GetStats and Redrive and for refusals of the guard, which
are Error frames.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from fila.broker.session import Session
from fila.core.rejection import Rejection
from fila.edges.reason import clipped
from fila.security.permission import Permission
from fila.wire import bodies, errors, layouts
from fila.wire import opcodes as op
from fila.wire.fields import LIST_ITEMS_MAX

if TYPE_CHECKING:
    from fila.edges.fibp import FibpConnection

# What a handler gives back: the result, or a rejection that goes out as an Error frame, or nothing
# yet (a redrive answers when it is done).
Answer = tuple[object, ...] | Rejection | None


def handle(connection: FibpConnection, opcode: int, request_id: int, body: bytes) -> None:
    """Carry out one admin request. A body that does not parse raises InvalidBody."""
    session = connection.session
    assert session is not None
    if opcode == op.REDRIVE:
        answer = _redrive(connection, session, request_id, body)
    else:
        answer = _HANDLERS[opcode](session, body)
    if isinstance(answer, Rejection):
        connection.refuse(request_id, answer, {})
    elif answer is not None:
        _send(connection, request_id, answer)


def _create_queue(session: Session, body: bytes) -> Answer:
    request = layouts.decode(bodies.CreateQueue, body)
    fault = session.create_queue(
        request.name, request.on_enqueue, request.on_failure, request.visibility_timeout_ms
    )
    return _refusal(fault) or (
        bodies.CreateQueueResult(fault.code, "", fault.message)
        if fault
        else bodies.CreateQueueResult(errors.OK, request.name)
    )


def _delete_queue(session: Session, body: bytes) -> Answer:
    fault = session.delete_queue(layouts.decode(bodies.DeleteQueue, body).queue)
    return _refusal(fault) or bodies.DeleteQueueResult(*(fault or (errors.OK, None)))


def _get_stats(session: Session, body: bytes) -> Answer:
    found = session.stats(layouts.decode(bodies.GetStats, body).queue, LIST_ITEMS_MAX)
    if isinstance(found, Rejection):
        return found
    return bodies.GetStatsResult(
        errors.OK,
        found.depth,
        found.in_flight,
        found.active_keys,
        found.consumers,
        found.quantum,
        fairness_keys=tuple(
            bodies.FairnessKeyStats(one.key.decode(), one.pending, one.deficit, one.weight)
            for one in found.keys
        ),
        throttle_keys=tuple(
            bodies.ThrottleKeyStats(one.key.decode(), one.tokens, one.rate, one.burst)
            for one in found.buckets
        ),
    )


def _list_queues(session: Session, body: bytes) -> Answer:
    queues = tuple(
        bodies.QueueSummary(one.name, one.depth, one.in_flight, one.consumers, 0)
        for one in session.queues()[:LIST_ITEMS_MAX]
    )
    return bodies.ListQueuesResult(errors.OK, 0, queues)


def _set_config(session: Session, body: bytes) -> Answer:
    request = layouts.decode(bodies.SetConfig, body)
    fault = session.set_config(request.key, request.value)
    return _refusal(fault) or bodies.SetConfigResult(*(fault or (errors.OK, None)))


def _get_config(session: Session, body: bytes) -> Answer:
    value = session.get_config(layouts.decode(bodies.GetConfig, body).key)
    return value if isinstance(value, Rejection) else bodies.GetConfigResult(errors.OK, value)


def _list_config(session: Session, body: bytes) -> Answer:
    found = session.list_config(layouts.decode(bodies.ListConfig, body).prefix)
    if isinstance(found, Rejection):
        return found
    entries = tuple(bodies.ConfigEntry(*pair) for pair in found[:LIST_ITEMS_MAX])
    return bodies.ListConfigResult(errors.OK, entries)


def _redrive(connection: FibpConnection, session: Session, request_id: int, body: bytes) -> Answer:
    request = layouts.decode(bodies.Redrive, body)

    def done(moved: int) -> None:
        connection.broker.begin()
        _send(connection, request_id, bodies.RedriveResult(errors.OK, moved))

    return session.redrive(request.dlq_queue, request.limit, done)


def _create_key(session: Session, body: bytes) -> Answer:
    request = layouts.decode(bodies.CreateApiKey, body)
    made = session.create_key(request.name, request.expires_at_ms, request.is_superadmin)
    if isinstance(made, Rejection):
        return _refusal(made) or bodies.CreateApiKeyResult(made.code, "", "", False, made.message)
    key, secret = made
    return bodies.CreateApiKeyResult(errors.OK, key.id, secret, key.superadmin)


def _revoke_key(session: Session, body: bytes) -> Answer:
    fault = session.revoke_key(layouts.decode(bodies.RevokeApiKey, body).key_id)
    return _refusal(fault) or bodies.RevokeApiKeyResult(*(fault or (errors.OK, None)))


def _list_keys(session: Session, body: bytes) -> Answer:
    found = session.keys()
    if isinstance(found, Rejection):
        return found
    keys = tuple(
        bodies.ApiKeySummary(one.id, one.name, one.created_ms, one.expires_ms, one.superadmin)
        for one in found[:LIST_ITEMS_MAX]
    )
    return bodies.ListApiKeysResult(errors.OK, keys)


def _set_acl(session: Session, body: bytes) -> Answer:
    request = layouts.decode(bodies.SetAcl, body)
    permissions = tuple(Permission(one.kind, one.pattern) for one in request.permissions)
    fault = session.set_acl(request.key_id, permissions)
    return _refusal(fault) or bodies.SetAclResult(*(fault or (errors.OK, None)))


def _get_acl(session: Session, body: bytes) -> Answer:
    found = session.get_acl(layouts.decode(bodies.GetAcl, body).key_id)
    if isinstance(found, Rejection):
        return _refusal(found) or bodies.GetAclResult(found.code, message=found.message)
    permissions = tuple(bodies.Permission(*one) for one in found.permissions)
    return bodies.GetAclResult(errors.OK, found.id, found.superadmin, permissions)


def _refusal(fault: Rejection | None) -> Rejection | None:
    """A refusal of the guard is always an Error frame."""
    return fault if fault is not None and fault.code == errors.FORBIDDEN else None


def _send(connection: FibpConnection, request_id: int, result: Any) -> None:
    if getattr(result, "message", None):
        result = result._replace(message=clipped(result.message))
    connection.reply(layouts.opcode_of(result), request_id, layouts.encode(result))


_HANDLERS: Final[dict[int, Callable[[Session, bytes], Answer]]] = {
    op.CREATE_QUEUE: _create_queue,
    op.DELETE_QUEUE: _delete_queue,
    op.GET_STATS: _get_stats,
    op.LIST_QUEUES: _list_queues,
    op.SET_CONFIG: _set_config,
    op.GET_CONFIG: _get_config,
    op.LIST_CONFIG: _list_config,
    op.CREATE_API_KEY: _create_key,
    op.REVOKE_API_KEY: _revoke_key,
    op.LIST_API_KEYS: _list_keys,
    op.SET_ACL: _set_acl,
    op.GET_ACL: _get_acl,
}
