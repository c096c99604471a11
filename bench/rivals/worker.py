"""A load process, the same for all brokers: `python -m bench.rivals.worker '{"role": …}'`.

produce    publish in batches of 100, as long as not too much is unsettled
consume    receive up to 100 and acknowledge them; with `stamped`, note each one's latency
single     one message at a time: publish and wait, receive, acknowledge
pace       one message at a time, so many a second, each stamped
fair       one tenant's 10,000 messages, then 100 each of three: count the deliveries until the
           last quiet one
"""

from __future__ import annotations

import importlib
import json
import random
import sys
import time
from itertools import cycle, islice
from pathlib import Path
from struct import Struct
from typing import Any

from bench.rivals.clients.contract import PREFETCH, Client, Message
from bench.system.board import Seat
from bench.system.latencies import Latencies

_U64 = Struct(">Q")
_GLANCE_S = 0.0003
_IDLE_S = 0.1
BATCH = 100
BYTES = 1_024
TENANTS = 10
UNSETTLED_MAX = 4_000
NOISY, QUIET, QUIET_TENANTS = 10_000, 100, 3


def main() -> None:
    told = json.loads(sys.argv[1])
    seat = Seat(Path(told["board"]), told["seats"], told["seat"])
    module = importlib.import_module(f"bench.rivals.clients.{told['client']}")
    client: Client = module.connect(told["address"], told["queue"])
    client.declare()
    roles = {
        "produce": produce,
        "consume": consume,
        "single": single,
        "pace": pace,
        "fair": fair,
    }
    roles[told["role"]](seat, client, told)
    client.close()


def produce(seat: Seat, client: Client, told: dict[str, Any]) -> None:
    messages = cycle(_messages())
    seat.ready()
    while seat.wait_to_run():
        if seat.unsettled + BATCH > UNSETTLED_MAX:
            client.flush()  # what is only handed over may be what the consumers lack
            time.sleep(_GLANCE_S)
            continue
        client.publish(list(islice(messages, BATCH)))
        seat.add_sent(BATCH)
        if not seat.running:
            client.flush()


def consume(seat: Seat, client: Client, told: dict[str, Any]) -> None:
    latencies = Latencies(seat)
    client.subscribe(PREFETCH)
    limit = 1 if told["stamped"] else BATCH
    seat.ready()
    while not seat.stopped:
        if not seat.running and seat.unsettled <= 0:
            time.sleep(_GLANCE_S * 10)  # others are being measured
            continue
        messages = client.receive(limit, _IDLE_S)
        if told["stamped"]:
            now_ns = time.monotonic_ns()
            for _, payload in messages:
                latencies.add(now_ns - _U64.unpack_from(payload)[0])
        if messages:
            client.settle(wait=told["stamped"])
            seat.add_acked(len(messages))
    latencies.write(told["samples"])


def single(seat: Seat, client: Client, told: dict[str, Any]) -> None:
    messages = cycle(_messages())
    client.subscribe(PREFETCH)
    seat.ready()
    while seat.wait_to_run():
        client.publish([next(messages)])
        client.flush()
        seat.add_sent(1)
        received = 0
        while not received:
            received = len(client.receive(1, 1.0))
        client.settle()
        seat.add_acked(1)


def pace(seat: Seat, client: Client, told: dict[str, Any]) -> None:
    pause_s = 1 / told["rate"]
    filler = random.Random(7).randbytes(BYTES - 8)
    seat.ready()
    while seat.wait_to_run():
        due = time.monotonic()
        while seat.running and not seat.stopped:
            wait_s = due - time.monotonic()
            if wait_s > 0:
                time.sleep(wait_s)
            seat.add_sent(1)
            client.publish([("t0", _U64.pack(time.monotonic_ns()) + filler)])
            client.flush()
            due = max(due + pause_s, time.monotonic() - pause_s)


def fair(seat: Seat, client: Client, told: dict[str, Any]) -> None:
    loads = [("noisy", NOISY)] + [(f"quiet{at}", QUIET) for at in range(QUIET_TENANTS)]
    payload = bytes(100)
    seat.ready()
    seat.wait_to_run()
    for tenant, count in loads:
        for _ in range(count // BATCH):
            client.publish([(tenant, payload)] * BATCH)
    client.flush()
    client.subscribe(BATCH)
    deliveries = last_quiet = 0
    quiet = QUIET * QUIET_TENANTS
    while quiet:
        messages = client.receive(BATCH, 1.0)
        for tenant, _ in messages:
            deliveries += 1
            if tenant != "noisy":
                quiet -= 1
                last_quiet = deliveries
        client.settle()
    seat.add_acked(last_quiet)
    while not seat.stopped:
        time.sleep(_GLANCE_S)


def _messages() -> list[Message]:
    """Messages that go round the tenants; payloads differ, so that nobody gains by compression."""
    source = random.Random(7)
    return [(f"t{at % TENANTS}", source.randbytes(BYTES)) for at in range(BATCH)]


if __name__ == "__main__":
    main()
