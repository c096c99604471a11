"""What gRPC can do, and what its presence costs FIBP on the same port.

    python -m bench.grpc [--full]

The load runs in processes of its own, messages of 1 KB. What is compared runs in turns, a moment
each, and figures are medians over the rounds. The broker is one loop: where a machine is shared,
its CPU time per message tells more than the clock on the wall, so both are shown.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import grpc
from bench import command
from bench.record import Findings, Row, Target
from bench.system.broker import Broker
from bench.system.crew import Crew, Job, Window, race
from bench.system.lab import Lab, raw
from bench.system.measure import FULL, SHORT, latency_metrics, middle
from fila.edges.grpc.v1 import service_pb2 as pb

LIFECYCLE_RATE_MIN = 20_000
IDLE_COST_MAX = 0.03
TLS_COST_MAX = 0.35
_ATTACHED_S = 0.1
_WINDOW_S = 0.4


def run(full: bool) -> Findings:
    with tempfile.TemporaryDirectory(prefix="fila-bench-") as place:
        lab = Lab(FULL if full else SHORT, Path(place))
        lives = _lifecycles(lab)
        calls = _calls(lab)
        idle = _idle_client(lab)
        beside = _latency_beside(lab)
        tls = _tls(lab)
    over_grpc = int(lives[0]["msg/s"])
    idle_cost = 1 - float(idle[1]["msg/s against alone"])
    tls_cost = 1 - float(tls[1]["msg/s against plain"]) if tls else 0.0
    targets = [
        Target(
            "gRPC lifecycle in batches",
            f">= {LIFECYCLE_RATE_MIN:,} msg/s",
            f"{over_grpc:,} msg/s",
            over_grpc >= LIFECYCLE_RATE_MIN,
        ),
        Target(
            "FIBP with an idle gRPC client, throughput lost",
            f"< {IDLE_COST_MAX:.0%}",
            f"{idle_cost:.1%}",
            idle_cost < IDLE_COST_MAX,
        ),
    ]
    if tls:
        targets.append(
            Target(
                "FIBP under TLS, throughput lost",
                f"< {TLS_COST_MAX:.0%}",
                f"{tls_cost:.1%}",
                tls_cost < TLS_COST_MAX,
            )
        )
    return Findings(
        "The official gRPC client for Python in processes of its own against a real server; FIBP "
        "with raw frames. A lifecycle is enqueue, fair delivery under a lease, ack, in batches of "
        "100 × 1 KB.",
        {
            "Lifecycles, in turns": lives,
            "Enqueue calls of one message": calls,
            "FIBP lifecycles with and without an idle gRPC client": idle,
            "FIBP, one message at a time, beside gRPC calls": beside,
            **({"FIBP lifecycles under TLS": tls} if tls else {}),
        },
        targets,
        [
            "Ratios of rates are medians over neighbouring windows, ratios of CPU time are of all "
            "windows together. `load` is the processes that send and receive."
        ],
    )


def load(broker: Broker, queue: str, role: str, **told: Any) -> Job:
    """A process of the gRPC load."""
    base = raw(broker, queue, role, **told)
    return Job("bench.grpc.load", base.told)


def _lifecycles(lab: Lab) -> list[Row]:
    with lab.broker() as broker:
        queues = [lab.queue(broker) for _ in range(2)]
        with (
            lab.crew(
                broker, load(broker, queues[0], "produce"), load(broker, queues[0], "consume")
            ) as over_grpc,
            lab.crew(
                broker, raw(broker, queues[1], "produce"), raw(broker, queues[1], "consume")
            ) as over_fibp,
        ):
            found = _race(lab, {"gRPC": over_grpc, "FIBP": over_fibp})
    return [_row(name, windows) for name, windows in found.items()]


def _calls(lab: Lab) -> list[Row]:
    rows: list[Row] = []
    with lab.broker() as broker:
        for in_flight in (1, 32):
            queue = lab.queue(broker)
            with lab.crew(broker, load(broker, queue, "unary", in_flight=in_flight)) as crew:
                windows = _race(lab, {"": crew})[""]
                crew.pause()
                crew.drain()
                crew.stop()
                waits = latency_metrics(crew.samples())
            rows.append(
                {
                    "under way": in_flight,
                    "calls/s": round(statistics.median([one.stored_rate for one in windows])),
                    "broker CPU µs": _middle([one.stored_cpu_us for one in windows]),
                    "p50 ms": round(middle(waits["p50"]), 3),
                    "p99 ms": round(middle(waits["p99"]), 3),
                }
            )
    return rows


def _idle_client(lab: Lab) -> list[Row]:
    """The same crew on the same broker; only the idle client comes and goes."""
    alone: list[Window] = []
    attended: list[Window] = []
    with lab.broker() as broker:
        queue, other = lab.queue(broker), lab.queue(broker)
        jobs = raw(broker, queue, "produce"), raw(broker, queue, "consume")
        with lab.crew(broker, *jobs) as crew:
            crew.resume()
            time.sleep(lab.form.settle_s)
            # Many short windows: the neighbours' noise is slower than that and falls on both.
            for at in range(12 * lab.form.rounds):
                order = (alone, attended) if at % 2 else (attended, alone)
                for windows in order:
                    with ExitStack() as stack:
                        if windows is attended:
                            stack.enter_context(_Idle(broker, other))
                        time.sleep(_ATTACHED_S)
                        windows.append(crew.window(_WINDOW_S))
            crew.pause()
    first = _row("alone", alone) | {"CPU against alone": 1.0, "msg/s against alone": 1.0}
    second = _row("an idle gRPC client", attended) | {
        "CPU against alone": _ratio(
            [one.cpu_us for one in attended], [one.cpu_us for one in alone]
        ),
        "msg/s against alone": _ratio([one.rate for one in attended], [one.rate for one in alone]),
    }
    return [first, second]


class _Idle:
    """A connection with a consumer on a queue that nobody uses."""

    def __init__(self, broker: Broker, queue: str) -> None:
        self._channel = grpc.insecure_channel(broker.address)
        self._queue = queue

    def __enter__(self) -> None:
        consume = self._channel.unary_stream(
            "/fila.v1.FilaService/Consume",
            request_serializer=pb.ConsumeRequest.SerializeToString,
            response_deserializer=pb.ConsumeResponse.FromString,
        )
        self._call = consume(pb.ConsumeRequest(queue=self._queue))
        self._call.initial_metadata()

    def __exit__(self, *_: object) -> None:
        self._call.cancel()
        self._channel.close()


def _latency_beside(lab: Lab) -> list[Row]:
    rows: list[Row] = []
    with lab.broker() as broker:
        for name, in_flight in (("nothing", 0), ("one call at a time", 1), ("32 calls", 32)):
            queue, other = lab.queue(broker), lab.queue(broker)
            with ExitStack() as stack:
                single = stack.enter_context(lab.crew(broker, raw(broker, queue, "single")))
                busy: Crew | None = None
                if in_flight:
                    job = load(broker, other, "unary", in_flight=in_flight)
                    busy = stack.enter_context(lab.crew(broker, job))
                    busy.resume()
                windows = _race(lab, {"": single})[""]
                single.pause()
                single.drain()
                single.stop()
                waits = latency_metrics(single.samples())
                calls = 0.0
                if busy is not None:
                    calls = busy.stored
                    busy.pause()
                    busy.drain()
            rows.append(
                {
                    "beside": name,
                    "FIBP lifecycles/s": round(statistics.median([one.rate for one in windows])),
                    "p50 ms": round(middle(waits["p50"]), 3),
                    "p99 ms": round(middle(waits["p99"]), 3),
                    "gRPC calls meanwhile": int(calls),
                }
            )
    return rows


def _tls(lab: Lab) -> list[Row]:
    if shutil.which("openssl") is None:
        sys.stdout.write("TLS: left out, there is no openssl to make a certificate with\n")
        return []
    from bench.system.cases.tls import _self_signed

    place = lab.place()
    place.mkdir()
    certificate, key = _self_signed(place)
    settings = {"tls.cert_file": certificate, "tls.key_file": key}
    with lab.broker() as plain, lab.broker(settings) as secured:
        queues = lab.queue(plain), lab.queue(secured, tls_ca=certificate)
        ca = {"tls_ca": certificate}
        with (
            lab.crew(
                plain, raw(plain, queues[0], "produce"), raw(plain, queues[0], "consume")
            ) as over_tcp,
            lab.crew(
                secured,
                raw(secured, queues[1], "produce", **ca),
                raw(secured, queues[1], "consume", **ca),
            ) as over_tls,
        ):
            found = _race(lab, {"plain": over_tcp, "TLS": over_tls})
    first = _row("plain", found["plain"]) | {"msg/s against plain": 1.0, "CPU against plain": 1.0}
    second = _row("TLS", found["TLS"]) | {
        "msg/s against plain": _ratio(
            [one.rate for one in found["TLS"]], [one.rate for one in found["plain"]]
        ),
        "CPU against plain": _cpu_ratio(found["TLS"], found["plain"]),
    }
    return [first, second]


def _race(lab: Lab, crews: dict[str, Crew]) -> dict[str, list[Window]]:
    form = lab.form
    return race(crews, 2 * form.rounds, form.window_s, form.settle_s)


def _row(name: str, windows: Sequence[Window]) -> Row:
    return {
        "load": name,
        "msg/s": round(statistics.median([one.rate for one in windows])),
        "broker CPU µs/msg": _middle([one.cpu_us for one in windows]),
        "load CPU µs/msg": _middle([one.load_cpu_us for one in windows]),
        "best round msg/s": round(max(one.rate for one in windows)),
    }


def _ratio(these: Sequence[float], those: Sequence[float]) -> float:
    pairs = zip(these, those, strict=True)
    return round(statistics.median([one / other for one, other in pairs]), 4)


def _cpu_ratio(these: Sequence[Window], those: Sequence[Window]) -> float:
    """Of all windows together: the kernel counts CPU time in steps of 10 ms."""

    def per_message(windows: Sequence[Window]) -> float:
        return sum(one.cpu_s for one in windows) / sum(one.acked for one in windows)

    return round(per_message(these) / per_message(those), 4)


def _middle(values: Sequence[float]) -> float:
    return round(statistics.median(values), 1)


if __name__ == "__main__":
    sys.exit(0 if command.main("grpc", run) else 1)
