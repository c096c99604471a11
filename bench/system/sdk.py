"""A worker of the load through the Python SDK: `python -m bench.system.sdk '{"role": …}'`.

produce    `enqueue_many` of `batch` messages at a time
pipeline   `enqueue_many_soon` of `batch` messages, some batches under way
stream     `enqueue_soon`, one message per call; the client makes the batches
consume    `receive_many` and `ack_many`; with `stamped`, note each one's latency
pace       one `enqueue` after the other, so many a second, each stamped
single     one message at a time: enqueue, receive, ack
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections import deque
from itertools import cycle, islice
from pathlib import Path
from struct import Struct
from typing import Any

from bench.system.board import Seat
from bench.system.frames import TENANT, tenant
from bench.system.latencies import Latencies
from fila import FilaClient
from fila.client.sync import Receipt

_U64 = Struct(">Q")
_GLANCE_S = 0.0003
_FLUSH_EVERY = 20_000
_UNDER_WAY_MAX = 1_000


def main() -> None:
    told = json.loads(sys.argv[1])
    seat = Seat(Path(told["board"]), told["seats"], told["seat"])
    roles = {
        "produce": produce,
        "pipeline": pipeline,
        "stream": stream,
        "consume": consume,
        "pace": pace,
        "single": single,
    }
    with FilaClient(told["address"]) as client:
        roles[told["role"]](seat, client, told)


def produce(seat: Seat, client: FilaClient, told: dict[str, Any]) -> None:
    batch, unsettled_max = told["batch"], told["unsettled_max"]
    messages = cycle(_messages(told))
    seat.ready()
    while seat.wait_to_run():
        if seat.unsettled + batch > unsettled_max:
            time.sleep(_GLANCE_S)
            continue
        seat.add_sent(batch)
        client.enqueue_many(islice(messages, batch))
        seat.add_stored(batch)


def pipeline(seat: Seat, client: FilaClient, told: dict[str, Any]) -> None:
    batch, unsettled_max = told["batch"], told["unsettled_max"]
    messages = cycle(_messages(told))
    under_way: deque[Receipt[list[str]]] = deque()
    seat.ready()
    while seat.wait_to_run():
        while len(under_way) * batch > _UNDER_WAY_MAX or (under_way and not seat.running):
            seat.add_stored(len(under_way.popleft().result()))
        if seat.unsettled + batch > unsettled_max:
            time.sleep(_GLANCE_S)
            continue
        seat.add_sent(batch)
        under_way.append(client.enqueue_many_soon(islice(messages, batch)))
    for receipt in under_way:
        seat.add_stored(len(receipt.result()))


def stream(seat: Seat, client: FilaClient, told: dict[str, Any]) -> None:
    unsettled_max = told["unsettled_max"]
    messages = cycle(_messages(told))
    waiting = 0
    seat.ready()
    while seat.wait_to_run():
        if seat.unsettled >= unsettled_max:
            time.sleep(_GLANCE_S)
            continue
        for message in islice(messages, 100):
            client.enqueue_soon(*message)
        seat.add_sent(100)
        waiting += 100
        if waiting >= _FLUSH_EVERY:
            client.flush()
            seat.add_stored(waiting)
            waiting = 0
    client.flush()
    seat.add_stored(waiting)


def consume(seat: Seat, client: FilaClient, told: dict[str, Any]) -> None:
    queue, batch, stamped = told["queue"], told["batch"], told["stamped"]
    latencies = Latencies(seat)
    with client.consume(queue, prefetch=told["prefetch"]) as consumer:
        seat.ready()
        while not seat.stopped:
            messages = consumer.receive_many(batch, timeout=0.1)
            if stamped:
                now_ns = time.monotonic_ns()
                for message in messages:
                    latencies.add(now_ns - _U64.unpack_from(message.payload)[0])
            if messages:
                client.ack_many(queue, [message.id for message in messages])
                seat.add_acked(len(messages))
    latencies.write(told["samples"])


def pace(seat: Seat, client: FilaClient, told: dict[str, Any]) -> None:
    queue, pause_s = told["queue"], 1 / told["rate"]
    filler = random.Random(7).randbytes(told["bytes"] - 8)
    seat.ready()
    while seat.wait_to_run():
        due = time.monotonic()
        while seat.running and not seat.stopped:
            wait_s = due - time.monotonic()
            if wait_s > 0:
                time.sleep(wait_s)
            # Stamped when it is sent, as the rivals' are: the caller is one thread, and an enqueue
            # that takes longer than the pause delays the next.
            seat.add_sent(1)
            client.enqueue(queue, None, _U64.pack(time.monotonic_ns()) + filler)
            seat.add_stored(1)
            due += pause_s


def single(seat: Seat, client: FilaClient, told: dict[str, Any]) -> None:
    messages = cycle(_messages(told))
    latencies = Latencies(seat)
    with client.consume(told["queue"], prefetch=1) as consumer:
        seat.ready()
        while seat.wait_to_run():
            begin_ns = time.monotonic_ns()
            client.enqueue(*next(messages))
            seat.add_sent(1)
            seat.add_stored(1)
            message = consumer.receive(timeout=30)
            assert message is not None, "a message that was stored did not come"
            latencies.add(time.monotonic_ns() - begin_ns)
            message.ack()
            seat.add_acked(1)
    latencies.write(told["samples"])


def _messages(told: dict[str, Any]) -> list[tuple[str, dict[str, str] | None, bytes]]:
    """Messages that go round the tenants; payloads differ, so that nobody gains by compression."""
    keys = told["keys"]
    source = random.Random(7)
    count = max(keys, 100)
    return [
        (
            told["queue"],
            {TENANT: tenant(at % keys)} if keys else None,
            source.randbytes(told["bytes"]),
        )
        for at in range(count)
    ]


if __name__ == "__main__":
    main()
