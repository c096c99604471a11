"""How much memory the server takes: idle, under full load, and over a time of steady load.

Steady: 20,000 messages a second in and out, for 20 seconds (full form: 10 minutes). Growth is the
straight line through the second half of what was seen, so that filling caches does not count.
"""

from __future__ import annotations

import statistics
import time

from bench.system.lab import Lab, raw
from bench.system.measure import lower

STEADY_RATE = 20_000
SHORT_S, FULL_S = 20, 600
MIB = 2**20


def run(lab: Lab) -> None:
    with lab.broker() as broker:
        time.sleep(1)
        lab.add("memory", {"state": "idle"}, {"memory": lower("MiB", [broker.rss_bytes / MIB], 1)})
        queue = lab.queue(broker)
        producer = raw(broker, queue, "produce")
        with lab.crew(broker, producer, raw(broker, queue, "consume")) as crew:
            crew.resume()
            crew.window(lab.form.window_s * 4)
            found = broker.rss_bytes / MIB
            crew.pause()
            crew.drain()
            crew.stop()
        lab.add("memory", {"state": "full load"}, {"memory": lower("MiB", [found], 1)})
    _steady(lab)


def _steady(lab: Lab) -> None:
    seconds = FULL_S if lab.form.full else SHORT_S
    with lab.broker() as broker:
        queue = lab.queue(broker)
        pace = raw(broker, queue, "pace", rate=STEADY_RATE)
        with lab.crew(broker, pace, raw(broker, queue, "consume")) as crew:
            crew.resume()
            begin = time.monotonic()
            times: list[float] = []
            memory: list[float] = []
            while (elapsed_s := time.monotonic() - begin) < seconds:
                crew.window(max(seconds / 200, 0.5))
                times.append(elapsed_s / 60)
                memory.append(broker.rss_bytes / MIB)
            crew.pause()
            crew.drain()
            crew.stop()
    half = len(times) // 2
    slope = statistics.linear_regression(times[half:], memory[half:]).slope
    lab.add(
        "steady load",
        {"rate": STEADY_RATE, "seconds": seconds},
        {
            "growth": lower("MiB/min", [slope], 2),
            "memory": lower("MiB", memory, 1),
        },
    )
