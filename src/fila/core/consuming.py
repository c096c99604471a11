"""Consumers come, go, and are held while their clients do not read."""

from __future__ import annotations

from fila.core import effect
from fila.core.command import Consume, HandBack, Hold, Leave
from fila.core.effect import Event
from fila.core.lease import Consumer
from fila.core.queue import Queue
from fila.core.rejection import Rejection, invalid_value
from fila.core.state import State


def consume(state: State, queue: Queue, command: Consume) -> Rejection | None:
    settings = state.settings
    prefetch = command.prefetch or settings.prefetch_default
    if not 1 <= prefetch <= settings.prefetch_max:
        return invalid_value("prefetch", f"{prefetch} is not within 1 to {settings.prefetch_max}")
    assert command.consumer not in queue.consumers, "consumer ids are unique"
    prefetch_bytes = command.prefetch_bytes or settings.prefetch_bytes
    consumer = Consumer(command.consumer, queue, command.connection, prefetch, prefetch_bytes)
    queue.consumers[consumer.id] = consumer
    queue.connections[consumer.connection] = queue.connections.get(consumer.connection, 0) + 1
    queue.attending += 1
    state.add_ready(queue, consumer)
    if state.journal:
        joined = Event(
            state.now,
            effect.EVENT_CONSUMER_JOINED,
            queue.name,
            consumer=consumer.id,
            credit_delta=prefetch,
        )
        state.events.append(joined)
    return None


def leave(state: State, queue: Queue, command: Leave) -> int:
    """1 when it was there. What it holds is handed back from now on, some messages with each turn,
    or stays leased."""
    consumer = queue.consumers.pop(command.consumer, None)
    if consumer is None:
        return 0
    if consumer.ready:
        queue.drop_ready(consumer, state.now)
    if not consumer.held:
        queue.attending -= 1
        queue.watch(state.now)
    consumer.gone = True
    left = queue.connections[consumer.connection] - 1
    if left:
        queue.connections[consumer.connection] = left
    else:
        del queue.connections[consumer.connection]
    if command.release:
        state.returning.add(consumer)
    elif consumer.leases:
        queue.departed.setdefault(consumer.connection, {})[consumer] = None
    if state.journal:
        gone = Event(
            state.now,
            effect.EVENT_CONSUMER_LEFT,
            queue.name,
            consumer=consumer.id,
            credit_delta=-consumer.credit_messages,
        )
        state.events.append(gone)
    return 1


def hand_back(state: State, queue: Queue, command: HandBack) -> int:
    """Hand back what consumers of this connection held when they left: how many they are."""
    consumers = queue.departed.pop(command.connection, {})
    for consumer in consumers:
        state.returning.add(consumer)
    return len(consumers)


def hold(state: State, queue: Queue, command: Hold) -> int:
    consumer = queue.consumers.get(command.consumer)
    if consumer is None or consumer.held == command.held:
        return 0
    consumer.held = command.held
    queue.attending += -1 if command.held else 1
    if consumer.ready:
        queue.drop_ready(consumer, state.now)
    elif consumer.may_receive():
        state.add_ready(queue, consumer)
    queue.watch(state.now)
    return 1
