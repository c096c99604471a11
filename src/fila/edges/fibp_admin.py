"""FIBP's admin operations: queues, config, stats, redrive, API keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from fila.core import stats
from fila.core.rejection import Rejection
from fila.wire import bodies, errors, layouts
from fila.wire import opcodes as op
from fila.wire.fields import LIST_ITEMS_MAX

if TYPE_CHECKING:
    from fila.edges.fibp import FibpConnection


def handle(connection: FibpConnection, opcode: int, request_id: int, body: bytes) -> None:
    """Carry out one admin request. A body that does not parse raises InvalidBody."""
    _HANDLERS[opcode](connection, request_id, body)


def _create_queue(connection: FibpConnection, request_id: int, body: bytes) -> None:
    request = layouts.decode(bodies.CreateQueue, body)
    fault = connection.broker.create_queue(
        request.name, request.on_enqueue, request.on_failure, request.visibility_timeout_ms
    )
    result = (
        bodies.CreateQueueResult(fault.code, "", fault.message)
        if fault
        else bodies.CreateQueueResult(errors.OK, request.name)
    )
    _answer(connection, request_id, result)


def _delete_queue(connection: FibpConnection, request_id: int, body: bytes) -> None:
    request = layouts.decode(bodies.DeleteQueue, body)
    fault = connection.broker.delete_queue(request.queue)
    _answer(connection, request_id, bodies.DeleteQueueResult(*(fault or (errors.OK, None))))


def _get_stats(connection: FibpConnection, request_id: int, body: bytes) -> None:
    request = layouts.decode(bodies.GetStats, body)
    found = stats.stats(connection.broker.machine, request.queue, LIST_ITEMS_MAX)
    if isinstance(found, Rejection):
        connection.refuse(request_id, found, {})
        return
    result = bodies.GetStatsResult(
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
    _answer(connection, request_id, result)


def _list_queues(connection: FibpConnection, request_id: int, body: bytes) -> None:
    found = stats.summaries(connection.broker.machine)[:LIST_ITEMS_MAX]
    queues = tuple(
        bodies.QueueSummary(one.name, one.depth, one.in_flight, one.consumers, 0) for one in found
    )
    _answer(connection, request_id, bodies.ListQueuesResult(errors.OK, 0, queues))


def _set_config(connection: FibpConnection, request_id: int, body: bytes) -> None:
    request = layouts.decode(bodies.SetConfig, body)
    fault = connection.broker.set_config(request.key, request.value)
    _answer(connection, request_id, bodies.SetConfigResult(*(fault or (errors.OK, None))))


def _get_config(connection: FibpConnection, request_id: int, body: bytes) -> None:
    request = layouts.decode(bodies.GetConfig, body)
    value = connection.broker.machine.state.config.get(request.key, "")
    _answer(connection, request_id, bodies.GetConfigResult(errors.OK, value))


def _list_config(connection: FibpConnection, request_id: int, body: bytes) -> None:
    prefix = layouts.decode(bodies.ListConfig, body).prefix
    config = connection.broker.machine.state.config
    found = [bodies.ConfigEntry(*item) for item in sorted(config.items())]
    entries = tuple(entry for entry in found if entry.key.startswith(prefix))[:LIST_ITEMS_MAX]
    _answer(connection, request_id, bodies.ListConfigResult(errors.OK, entries))


def _redrive(connection: FibpConnection, request_id: int, body: bytes) -> None:
    request = layouts.decode(bodies.Redrive, body)

    def done(moved: int) -> None:
        connection.broker.begin()
        _answer(connection, request_id, bodies.RedriveResult(errors.OK, moved))

    fault = connection.broker.redrive(request.dlq_queue, request.limit, done)
    if fault is not None:
        connection.refuse(request_id, fault, {})


def _no_keys(connection: FibpConnection, request_id: int, body: bytes) -> None:
    text = "API keys and ACLs are not available: authentication is off on this broker"
    connection.refuse(request_id, Rejection(errors.FORBIDDEN, text), {})


def _answer(connection: FibpConnection, request_id: int, result: tuple[object, ...]) -> None:
    connection.reply(layouts.opcode_of(result), request_id, layouts.encode(result))


_HANDLERS: Final[dict[int, Callable[[FibpConnection, int, bytes], None]]] = {
    op.CREATE_QUEUE: _create_queue,
    op.DELETE_QUEUE: _delete_queue,
    op.GET_STATS: _get_stats,
    op.LIST_QUEUES: _list_queues,
    op.SET_CONFIG: _set_config,
    op.GET_CONFIG: _get_config,
    op.LIST_CONFIG: _list_config,
    op.REDRIVE: _redrive,
    op.CREATE_API_KEY: _no_keys,
    op.REVOKE_API_KEY: _no_keys,
    op.LIST_API_KEYS: _no_keys,
    op.SET_ACL: _no_keys,
    op.GET_ACL: _no_keys,
}
