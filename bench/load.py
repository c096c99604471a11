"""The load programs' Python member, and the reference without any client at all.

    python -m bench.load python produce ADDRESS QUEUE MESSAGES
    python -m bench.load raw consume ADDRESS QUEUE MESSAGES

`raw` sends frames that were made before and answers by cutting ids out of what it received. Like
the load programs in `sdks/*/bench` it prints one line of JSON: {"lang", "role", "messages",
"seconds", "cpu_seconds", "rss_mb"}, the last being the most memory it had.
"""

from __future__ import annotations

import json
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.system import frames
from bench.system.frames import Wire
from fila import FilaClient
from fila.wire import message_codec
from fila.wire import opcodes as op
from fila.wire.frames import encode_frames
from fila.wire.message import message_body

BATCH = 100
PAYLOAD = b"x" * 1024
AHEAD = 8  # batches under way
PREFETCH = 2000


def main() -> None:
    language, role, address, queue, count = sys.argv[1:]
    messages = int(count)
    work: Callable[[Any, str, int], None] = {
        ("python", "produce"): produce,
        ("python", "consume"): consume,
        ("raw", "produce"): produce_raw,
        ("raw", "consume"): consume_raw,
    }[language, role]  # type: ignore[assignment]
    connection: Any = FilaClient(address) if language == "python" else Wire(address)
    begin, cpu = time.monotonic(), time.process_time()
    work(connection, queue, messages)
    told = {
        "lang": language,
        "role": role,
        "messages": messages,
        "seconds": round(time.monotonic() - begin, 3),
        "cpu_seconds": round(time.process_time() - cpu, 3),
        "rss_mb": _peak_mib(),
    }
    print(json.dumps(told), flush=True)
    connection.close()


def produce(client: FilaClient, queue: str, messages: int) -> None:
    batch = [(queue, None, PAYLOAD)] * BATCH
    under_way: deque[Any] = deque()
    for sent in range(0, messages, BATCH):
        if len(under_way) == AHEAD:
            under_way.popleft().result()
        under_way.append(client.enqueue_many_soon(batch[: messages - sent]))
    client.flush()


def consume(client: FilaClient, queue: str, messages: int) -> None:
    left = messages
    under_way: deque[Any] = deque()
    with client.consume(queue, prefetch=PREFETCH) as consumer:
        while left:
            got = consumer.receive_many(min(BATCH, left))
            left -= len(got)
            if sum(len(message.payload) for message in got) != len(got) * len(PAYLOAD):
                raise ValueError("a payload is not what was sent")
            if len(under_way) == AHEAD:
                under_way.popleft().result()
            under_way.append(client.ack_many_soon(queue, [message.id for message in got]))
        client.flush()


def produce_raw(wire: Wire, queue: str, messages: int) -> None:
    item = (message_codec.queue_field(queue.encode()), message_body(None, PAYLOAD))
    frame = encode_frames(op.ENQUEUE, 1, message_codec.encode_enqueue([item] * BATCH))
    if messages % BATCH:
        raise ValueError(f"the raw load comes in batches of {BATCH}")
    to_send, stored = messages // BATCH, 0
    for _ in range(min(AHEAD, to_send)):
        wire.sock.sendall(frame)
        to_send -= 1
    while stored < messages:
        for opcode, start, end in wire.frames():
            stored += frames.count_stored(wire.data, start, end, opcode)
            if to_send:
                wire.sock.sendall(frame)
                to_send -= 1


def consume_raw(wire: Wire, queue: str, messages: int) -> None:
    field = message_codec.queue_field(queue.encode())
    wire.consume(queue, PREFETCH)
    acked, buffered = 0, False  # what came behind the answer to Consume is read first
    while acked < messages:
        for opcode, start, end in wire.frames(buffered):
            if opcode == op.DELIVERY:
                wire.sock.sendall(frames.acks_of(wire.data, start, end, field)[0])
            else:
                acked += frames.count_acked(wire.data, start, end)
        buffered = True


def _peak_mib() -> float:
    status = Path("/proc/self/status").read_text()
    (kib,) = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")]
    return round(int(kib) / 1024, 1)


if __name__ == "__main__":
    main()
