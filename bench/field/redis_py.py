"""The load program of redis-py, with hiredis.

python -m bench.field.redis_py produce|consume ADDRESS QUEUE MESSAGES
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from bench.rivals.clients import redis

BATCH = 100
PAYLOAD = b"x" * 1024


def main() -> None:
    role, address, queue, count = sys.argv[1:]
    client = redis.connect(address, queue)
    begin, cpu = time.monotonic(), time.process_time()
    (produce if role == "produce" else consume)(client, int(count))
    told = {
        "lang": "redis-py",
        "role": role,
        "messages": int(count),
        "seconds": round(time.monotonic() - begin, 3),
        "cpu_seconds": round(time.process_time() - cpu, 3),
        "rss_mb": _peak_mib(),
    }
    print(json.dumps(told), flush=True)
    client.close()


def produce(client: redis.Redis, messages: int) -> None:
    batch = [("t", PAYLOAD)] * BATCH
    for sent in range(0, messages, BATCH):
        client.publish(batch[: messages - sent])


def consume(client: redis.Redis, messages: int) -> None:
    left = messages
    while left:
        got = client.receive(min(BATCH, left), 1.0)
        left -= len(got)
        if any(len(payload) != len(PAYLOAD) for _, payload in got):
            raise ValueError("a payload is not what was sent")
        client.settle(wait=not left)


def _peak_mib() -> float:
    status = Path("/proc/self/status").read_text()
    (kib,) = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")]
    return round(int(kib) / 1024, 1)


if __name__ == "__main__":
    main()
