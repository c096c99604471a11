"""What fairness keys cost in memory, and what stays when they are gone.

    python -m bench.forgotten [--full]

A broker gets a small message of each of many fairness keys, hands all of them out and sees them
acknowledged; then as many other keys come and go. Its resident memory is read at each step.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from bench import command
from bench.record import Findings, Row, Target
from bench.system.frames import Wire
from bench.system.lab import Lab, raw
from bench.system.measure import SHORT
from fila.wire import enqueue_with_codec, message_codec
from fila.wire import opcodes as op
from fila.wire.frames import encode_frames
from fila.wire.message import message_body

PER_KEY_BYTES = 2_500  # with its message of 64 bytes
KEPT_MIB = 120  # beyond what an idle broker has
MIB = 2**20
_BATCH = 500


def run(full: bool) -> Findings:
    keys = 200_000 if full else 50_000
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="fila-bench-") as place:
        lab = Lab(SHORT, Path(place))
        with lab.broker() as broker:
            queue = lab.queue(broker)
            consumer = raw(broker, queue, "consume", batch=_BATCH, waits=True)
            with lab.crew(broker, consumer) as crew:
                crew.rest()
                idle = broker.rss_bytes
                for generation in range(3):
                    _send(broker.address, queue, generation, keys)
                    held = broker.rss_bytes
                    goal = crew.acked + keys
                    crew.resume()
                    crew.until(lambda: crew.acked >= goal, 300, "take everything")  # noqa: B023
                    crew.pause()
                    crew.rest()
                    time.sleep(6)  # telemetry and the allocator have had their time
                    left = broker.rss_bytes
                    rows.append(
                        {
                            "keys": (generation + 1) * keys,
                            "memory with their messages, MiB": round(held / MIB, 1),
                            "memory when they are gone, MiB": round(left / MIB, 1),
                        }
                    )
    per_key = (float(rows[0]["memory with their messages, MiB"]) * MIB - idle) / keys
    kept = float(rows[-1]["memory when they are gone, MiB"]) - idle / MIB
    return Findings(
        f"{keys:,} fairness keys with one message of 64 bytes each, three times, other keys each "
        f"time. An idle broker had {idle / MIB:.1f} MiB.",
        {"Memory": rows},
        [
            Target(
                "memory per key with a message",
                f"<= {PER_KEY_BYTES} bytes",
                f"{per_key:.0f}",
                per_key <= PER_KEY_BYTES,
            ),
            Target(
                "memory kept when all are gone",
                f"<= {KEPT_MIB} MiB",
                f"{kept:.1f} MiB",
                kept <= KEPT_MIB,
            ),
        ],
        [
            "16,384 empty keys are remembered on purpose (`idle_lanes`). What is freed beyond that "
            "is used again by what comes next: Python's allocator gives an arena of a megabyte "
            "back to the system only when nothing in it is alive, and nearly each has something."
        ],
    )


def _send(address: str, queue: str, generation: int, keys: int) -> None:
    wire = Wire(address)
    field = message_codec.queue_field(queue.encode())
    body = message_body(None, b"x" * 64)
    for first in range(0, keys, _BATCH):
        items = []
        for at in range(first, first + _BATCH):
            lane = message_codec.lane_field(b"tenant-%d-%07d" % (generation, at), 1, ())
            items.append((field, body + enqueue_with_codec.options_field(0, "", lane)))
        wire.sock.sendall(encode_frames(op.ENQUEUE_WITH, 1, message_codec.encode_enqueue(items)))
        next(wire.frames())
    wire.close()


if __name__ == "__main__":
    sys.exit(0 if command.main("forgotten", run) else 1)
