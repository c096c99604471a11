"""How long a message takes from leaving the producer to reaching a waiting consumer, by load.

The load is open: messages leave when they should, whatever the broker does, and by raw frames the
clock starts when a message should have left, so that a stall counts for all messages it held up.
"""

from __future__ import annotations

from bench.system.crew import race
from bench.system.lab import Lab, raw, sdk
from bench.system.measure import latency_metrics, rate

RAW_RATES = (500, 5_000, 20_000, 50_000)
SDK_RATES = (200, 500)


def run(lab: Lab) -> None:
    form = lab.form
    with lab.broker() as broker:
        for via, job, rates in (("raw", raw, RAW_RATES), ("SDK", sdk, SDK_RATES)):
            for per_second in rates:
                queue = lab.queue(broker)
                producer = job(broker, queue, "pace", rate=per_second)
                consumer = job(broker, queue, "consume", stamped=True)
                with lab.crew(broker, producer, consumer) as crew:
                    windows = race({"": crew}, form.rounds, form.window_s, form.settle_s)[""]
                    crew.pause()
                    crew.drain()
                    crew.stop()
                lab.add(
                    "latency",
                    {"via": via, "load": per_second},
                    {"reached": rate(one.rate for one in windows)}
                    | latency_metrics(crew.samples()),
                )
