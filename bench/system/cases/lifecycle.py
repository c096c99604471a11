"""The whole life of a message, producers and consumers at the same time: enqueue, fair delivery,
ack. In batches and one at a time, by raw frames and through the SDK.

`keys` 0 is a queue without a hook: every message has the key `default`. Otherwise a hook of one
line reads the tenant from a header, or the messages name their fairness keys ("raw, keys named").
"""

from __future__ import annotations

from bench.system.broker import Broker
from bench.system.crew import Crew, race
from bench.system.frames import TENANT_HOOK
from bench.system.lab import Lab, raw, sdk
from bench.system.measure import Parameters, cost, latency_metrics, rate

RAW = (
    # bytes, batch, keys, named
    (1_024, 1, 10, False),
    (1_024, 10, 10, False),
    (1_024, 100, 10, False),
    (1_024, 500, 10, False),
    (1_024, 100, 10, True),
    (1_024, 100, 0, False),
    (64, 100, 0, False),
    (65_536, 10, 0, False),
)
SDK = (
    # how, batch, producers
    ("produce", 100, 1),
    ("produce", 100, 3),
    ("produce", 10, 1),
    ("pipeline", 100, 1),
    ("stream", 1, 1),
)
_SDK_CALLS = {
    "produce": "SDK",
    "pipeline": "SDK enqueue_many_soon",
    "stream": "SDK enqueue_soon",
}


def run(lab: Lab) -> None:
    with lab.broker() as broker:
        for size, batch, keys, named in RAW:
            queue = lab.queue(broker, TENANT_HOOK if keys and not named else None)
            unsettled_max = max(min(10_000, (64 << 20) // size), batch * 4)
            shape = {
                "bytes": size,
                "batch": batch,
                "keys": keys,
                "named": named,
                "unsettled_max": unsettled_max,
            }
            crew = lab.crew(
                broker,
                raw(broker, queue, "produce", **shape),
                raw(broker, queue, "consume", **shape),
            )
            about: Parameters = {
                "via": "raw, keys named" if named else "raw",
                "bytes": size,
                "batch": batch,
                "keys": keys,
                "producers": 1,
            }
            _together(lab, crew, about)
        for how, batch, producers in SDK:
            queue = lab.queue(broker, TENANT_HOOK)
            jobs = [sdk(broker, queue, how, batch=batch, keys=10) for _ in range(producers)]
            crew = lab.crew(broker, *jobs, sdk(broker, queue, "consume", keys=10))
            about = {
                "via": _SDK_CALLS[how],
                "bytes": 1_024,
                "batch": batch,
                "keys": 10,
                "producers": producers,
            }
            _together(lab, crew, about)
        _one_at_a_time(lab, broker)


def _together(lab: Lab, crew: Crew, about: Parameters) -> None:
    with crew:
        form = lab.form
        windows = race({"": crew}, form.rounds, form.window_s, form.settle_s)[""]
        crew.stop()
    lab.add(
        "lifecycle",
        about,
        {
            "rate": rate(one.rate for one in windows),
            "cpu": cost(one.cpu_us for one in windows),
            "load cpu": cost(one.load_cpu_us for one in windows),
        },
    )


def _one_at_a_time(lab: Lab, broker: Broker) -> None:
    for via, job in (("raw", raw), ("SDK", sdk)):
        queue = lab.queue(broker, TENANT_HOOK)
        with lab.crew(broker, job(broker, queue, "single", keys=10)) as crew:
            form = lab.form
            windows = race({"": crew}, form.rounds, form.window_s, form.settle_s)[""]
            crew.stop()
        metrics = {
            "rate": rate(one.rate for one in windows),
            "cpu": cost(one.cpu_us for one in windows),
            "load cpu": cost(one.load_cpu_us for one in windows),
        }
        latencies = latency_metrics(crew.samples())
        lab.add("one at a time", {"via": via}, metrics | {"p50": latencies["p50"]})
