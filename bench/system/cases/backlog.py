"""What a deep backlog costs: memory, enqueue rate, the wait for the head, drain rate, start-up.

One broker, one queue without a hook, filled deeper and deeper. `first message` is the time from a
consumer's request to what it gets first. `drain` takes messages out of the old end of the backlog.
Start-up is the time from starting the process to its port, after an orderly stop and after a kill.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time

from bench.system.broker import Broker
from bench.system.flow import flow
from bench.system.frames import Wire, acks_of, enqueue_frames
from bench.system.lab import KIB, Lab
from bench.system.measure import Metric, lower
from fila.wire import bodies, layouts, message_codec
from fila.wire import opcodes as op
from fila.wire.frames import encode_frames

SHORT_DEPTHS = (0, 50_000, 200_000)
FULL_DEPTHS = (0, 200_000, 1_000_000, 5_000_000)
_DISK_PER_MESSAGE = 3 * KIB  # the message, its log, and room to compact
MIB = 2**20


def run(lab: Lab) -> None:
    depths = FULL_DEPTHS if lab.form.full else SHORT_DEPTHS
    with lab.broker() as broker:
        queue = lab.queue(broker)
        depth = 0
        for goal in depths:
            added = goal - depth
            if added * _DISK_PER_MESSAGE > shutil.disk_usage(tempfile.gettempdir()).free:
                sys.stdout.write(f"backlog: {goal:,} left out, the disk is too small\n")
                break
            if added:
                lab.fill(broker, queue, added)
            depth = goal
            lab.add("backlog", {"depth": depth}, _at_depth(lab, broker, queue))


def _at_depth(lab: Lab, broker: Broker, queue: str) -> dict[str, Metric]:
    rounds = range(lab.form.rounds)
    first_ms = [_first_message_ms(broker, queue) for _ in rounds]
    filled_bytes = broker.rss_bytes
    with flow(lab, broker, queue) as found:
        for _ in rounds:
            found.round()
    loaded_bytes = broker.rss_bytes
    stopped_ms, killed_ms = [], []
    for _ in rounds:
        broker.stop()
        broker.start()
        stopped_ms.append(broker.start_s * 1000)
        broker.kill()
        broker.start()
        killed_ms.append(broker.start_s * 1000)
    return found.metrics() | {
        "first message": lower("ms", first_ms),
        "memory filled": lower("MiB", [filled_bytes / MIB], 1),
        "memory loaded": lower("MiB", [loaded_bytes / MIB], 1),
        "memory restarted": lower("MiB", [broker.rss_bytes / MIB], 1),
        "disk": lower("MiB", [broker.disk_bytes / MIB], 1),
        "start after stop": lower("ms", stopped_ms, 0),
        "start after kill": lower("ms", killed_ms, 0),
    }


def _first_message_ms(broker: Broker, queue: str) -> float:
    """One message goes in, a new consumer takes one out."""
    wire = Wire(broker.address)
    wire.sock.sendall(enqueue_frames(queue, KIB, 1)[0])
    next(wire.frames())
    begin = time.monotonic()
    wire.sock.sendall(encode_frames(op.CONSUME, 1, layouts.encode(bodies.Consume(queue, 1))))
    elapsed_ms = 0.0
    acked = False
    while not acked:
        for opcode, start, end in wire.frames():
            if opcode == op.DELIVERY and not elapsed_ms:
                elapsed_ms = (time.monotonic() - begin) * 1000
                cancel = encode_frames(op.CANCEL_CONSUME, 1)
                acks, _, _ = acks_of(
                    wire.data, start, end, message_codec.queue_field(queue.encode())
                )
                wire.sock.sendall(cancel + acks)
            acked = acked or opcode == op.ACK_RESULT
    wire.close()
    return elapsed_ms
