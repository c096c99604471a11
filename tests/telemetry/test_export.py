"""A collector that does not answer: nothing waits for it, the end of the process least of all."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from pathlib import Path

from tests.e2e.process import Broker

HANGS = """
import asyncio, threading
from fila.telemetry.export import Export

class Hangs:
    def send_metrics(self, *_):
        threading.Event().wait()
    send_spans = close = send_metrics

class Something:
    def take(self):
        return ["a family"]

async def main():
    export = Export(Hangs(), "nowhere", Something(), None, lambda: 0, 0.05)
    running = asyncio.get_running_loop().create_task(export.run())
    await asyncio.sleep(0.3)
    running.cancel()
    await export.close()
    print("closed")

asyncio.run(main())
"""


def test_an_exporter_that_hangs_does_not_hold_up_the_end_of_the_process() -> None:
    done = subprocess.run(
        [sys.executable, "-c", HANGS], capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.stdout, done.returncode) == ("closed\n", 0), done.stderr


def test_a_broker_with_a_silent_collector_ends_within_five_seconds(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        settings = {"telemetry.otlp_endpoint": endpoint, "telemetry.metrics_interval_ms": 1_000}
        with Broker(tmp_path / "data", settings=settings) as broker:
            with broker.peer() as peer:
                peer.create_queue("q")
            silent.settimeout(30)
            silent.accept()  # it tries
            began = time.monotonic()
            assert broker.stop() == 0
            assert time.monotonic() - began < 5
