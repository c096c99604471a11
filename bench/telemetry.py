"""What seeing costs: throughput with metrics, traces and a dashboard on, and the price of watchers.

    python -m bench.telemetry [--full]

Two brokers run the same lifecycle in turns, a moment each: one measures nothing, the other has the
HTTP port on, is scraped every second, shows a dashboard live and exports over OTLP. Then a broker
with 10,000 fairness keys is watched by 20 dashboards and a scraper, and its processor time is read.
"""

from __future__ import annotations

import selectors
import socket
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
from bench import command
from bench.record import Findings, Row, Target
from bench.system import process
from bench.system.broker import Broker
from bench.system.crew import race
from bench.system.frames import TENANT_HOOK
from bench.system.lab import Lab, raw
from bench.system.measure import SHORT

KEPT = 0.95
WATCHED_CPU = 0.05
KEYS = 10_000
DASHBOARDS = 20
SORTS = ("pending", "share", "ratio", "wait")


def run(full: bool) -> Findings:
    with tempfile.TemporaryDirectory() as place:
        lab = Lab(SHORT, Path(place))
        lifecycle, kept = _lifecycle(lab, rounds=30 if full else 10)
        watched, cpu = _watched(lab, seconds=30 if full else 10)
    return Findings(
        "The lifecycle (batches of 100 × 1 KB, 10 tenants by a hook) with telemetry off and on, in "
        "turns; and a broker with 10,000 fairness keys that 20 dashboards and a scraper watch.",
        {"lifecycle": lifecycle, "watchers": watched},
        [
            Target("throughput kept", f"at least {KEPT:.0%}", f"{kept:.1%}", kept >= KEPT),
            Target(
                f"{DASHBOARDS} dashboards and a scraper, {KEYS:,} keys",
                f"below {WATCHED_CPU:.0%} of a core",
                f"{cpu:.1%}",
                cpu < WATCHED_CPU,
            ),
        ],
        [
            "On: /metrics every second, one dashboard (overview, queue, keys), OTLP every second "
            "to a collector that takes and forgets it, 1 % of batches traced.",
            "Throughput kept is the median over the rounds of on by off.",
        ],
    )


def _lifecycle(lab: Lab, rounds: int) -> tuple[list[Row], float]:
    shape = {"keys": 10}
    collector, endpoint = _collector()
    on_settings = {
        "gui.listen_addr": "127.0.0.1:0",
        "telemetry.otlp_endpoint": endpoint,
        "telemetry.metrics_interval_ms": "1000",
    }
    with lab.broker() as off, lab.broker(on_settings) as on:
        crews = {}
        queues = {}
        for name, broker in (("off", off), ("on", on)):
            queue = queues[name] = lab.queue(broker, TENANT_HOOK)
            crews[name] = lab.crew(
                broker,
                raw(broker, queue, "produce", **shape),
                raw(broker, queue, "consume", **shape),
            )
        with _Watchers(lab, on, queues["on"], 1), crews["off"], crews["on"]:
            windows = race(crews, rounds, 1.0, 0.3)
    collector.stop(0)
    rows: list[Row] = []
    for name, found in windows.items():
        rows.append(
            {
                "telemetry": name,
                "msg/s": round(statistics.median(one.rate for one in found)),
                "server CPU µs/msg": round(statistics.median(one.cpu_us for one in found), 2),
            }
        )
    ratios = [on.rate / off.rate for off, on in zip(windows["off"], windows["on"], strict=True)]
    return rows, statistics.median(ratios)


def _collector() -> tuple[grpc.Server, str]:
    """Takes every export and forgets it."""
    taken = grpc.unary_unary_rpc_method_handler(lambda request, context: b"")
    server = grpc.server(ThreadPoolExecutor(2))
    for service in ("metrics.v1.MetricsService", "trace.v1.TraceService"):
        name = f"opentelemetry.proto.collector.{service}"
        handler = grpc.method_handlers_generic_handler(name, {"Export": taken})
        server.add_generic_rpc_handlers((handler,))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return server, f"http://127.0.0.1:{port}"


def _watched(lab: Lab, seconds: int) -> tuple[list[Row], float]:
    rows: list[Row] = []
    cpu = 0.0
    with lab.broker({"gui.listen_addr": "127.0.0.1:0"}) as broker:
        queue = lab.queue(broker, TENANT_HOOK)
        lab.fill(broker, queue, 3 * KEYS, keys=KEYS)
        time.sleep(8)  # let compaction and the first windows pass
        for dashboards in (0, DASHBOARDS):
            with _Watchers(lab, broker, queue, dashboards) as watchers:
                time.sleep(2)
                before_s, before_bytes, began = broker.cpu_s, watchers.bytes(), time.monotonic()
                time.sleep(seconds)
                took_s = time.monotonic() - began
                cpu = (broker.cpu_s - before_s) / took_s
                received = watchers.bytes() - before_bytes
            rows.append(
                {
                    "dashboards": dashboards,
                    "scrapers": 1 if dashboards else 0,
                    "keys": KEYS,
                    "core": f"{cpu:.2%}",
                    "kB/s sent": round(received / took_s / 1000),
                }
            )
    return rows, cpu


class _Watchers:
    """Dashboards and a scraper in a process of their own."""

    def __init__(self, lab: Lab, broker: Broker, queue: str, dashboards: int) -> None:
        self._place = lab.place()
        self._place.mkdir()
        self._count = self._place / "bytes"
        self._count.write_text("0")
        arguments = [sys.executable, "-m", "bench.telemetry", "watch", broker.http_address]
        arguments += [queue, str(dashboards), str(self._count)]
        self._child = process.start(arguments, self._place / "log")

    def __enter__(self) -> _Watchers:
        time.sleep(1)
        assert self._child.poll() is None, process.tail(self._place / "log")
        return self

    def __exit__(self, *_: object) -> None:
        assert self._child.poll() is None, process.tail(self._place / "log")
        process.end(self._child)

    def bytes(self) -> int:
        return int(self._count.read_text() or 0)


def _watch(address: str, queue: str, dashboards: int, count: Path) -> None:
    """Read what the streams send, scrape every second, write down how much came."""
    host, _, port = address.rpartition(":")
    selector = selectors.DefaultSelector()
    for number in range(dashboards):
        sort = SORTS[number % len(SORTS)]
        views = "view=overview&view=queue&view=keys"
        target = f"/api/v1/stream?{views}&name={queue}&queue={queue}&sort={sort}"
        _ask(selector, (host, int(port)), target)
    received = 0
    scrape_s = time.monotonic()
    while True:
        if dashboards and time.monotonic() >= scrape_s:
            scrape_s += 1.0
            _ask(selector, (host, int(port)), "/metrics", "Connection: close\r\n")
        for ready, _ in selector.select(0.2):
            assert isinstance(ready.fileobj, socket.socket)
            data = ready.fileobj.recv(1 << 20)
            received += len(data)
            if not data:
                selector.unregister(ready.fileobj)
                ready.fileobj.close()
        beside = count.with_suffix(".new")
        beside.write_text(str(received))
        beside.replace(count)


def _ask(
    selector: selectors.BaseSelector, address: tuple[str, int], target: str, more: str = ""
) -> None:
    opened = socket.create_connection(address, 10)
    opened.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n{more}\r\n".encode())
    selector.register(opened, selectors.EVENT_READ)


if __name__ == "__main__":
    if sys.argv[1:2] == ["watch"]:
        _watch(sys.argv[2], sys.argv[3], int(sys.argv[4]), Path(sys.argv[5]))
    sys.exit(0 if command.main("telemetry", run) else 1)
