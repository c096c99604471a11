"""How fast messages go in, and how fast a backlog goes out: by size and by batch.

First a window of enqueues alone, then a consumer takes and acknowledges all of it. The batch is the
enqueue's; deliveries and acks are as large as the broker makes them.
"""

from __future__ import annotations

from bench.system.flow import flow
from bench.system.lab import Lab

SIZES = (64, 1_024, 65_536)
BATCHES = (1, 10, 100, 500)
_UNDER_WAY_BYTES = 64 << 20


def run(lab: Lab) -> None:
    for size in SIZES:
        with lab.broker() as broker:
            for batch in BATCHES:
                queue = lab.queue(broker)
                in_flight = max(min(2_000, _UNDER_WAY_BYTES // size), batch * 2)
                with flow(
                    lab, broker, queue, bytes=size, batch=batch, in_flight=in_flight
                ) as found:
                    for _ in range(lab.form.rounds):
                        found.round()
                lab.add("throughput", {"bytes": size, "batch": batch}, found.metrics())
