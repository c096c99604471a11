"""When to export: metrics every interval, spans every second, on a thread that mostly waits.

The loop hands over plain data; encoding and sending happen on the export thread, a few milliseconds
of it per interval because labels are bounded. A collector that cannot be reached loses only its
data: one export is under way at a time, spans that pile up are dropped and counted.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from fila.telemetry.readings import Family, Readings
from fila.telemetry.spans import Span, Tracer

log = logging.getLogger("fila.telemetry")

SPANS_EVERY_S = 1.0
LAST_WAIT_S = 2.0  # for a last export when the server stops


class Exporter(Protocol):
    def send_metrics(self, families: list[Family], began_ns: int, now_ns: int) -> bool: ...

    def send_spans(self, spans: list[Span]) -> bool: ...

    def close(self) -> None: ...


class Export:
    def __init__(
        self,
        exporter: Exporter,
        endpoint: str,
        readings: Readings,
        tracer: Tracer | None,
        now_ns: Callable[[], int],
        interval_s: float,
    ) -> None:
        self._exporter = exporter
        self._endpoint = endpoint
        self._readings = readings
        self._tracer = tracer
        self._now_ns = now_ns
        self._interval_s = interval_s
        self._began_ns = now_ns()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="otlp")
        self._failing = False

    async def run(self) -> None:
        """Export until cancelled."""
        loop = asyncio.get_running_loop()
        due_s = loop.time() + self._interval_s
        while True:
            wait_s = max(due_s - loop.time(), 0.0)
            await asyncio.sleep(min(wait_s, SPANS_EVERY_S) if self._tracer else wait_s)
            metrics = loop.time() >= due_s
            if metrics:
                due_s = loop.time() + self._interval_s
            await self._once(metrics)

    async def close(self) -> None:
        """Send what is there, if the collector takes it quickly."""
        try:
            await asyncio.wait_for(self._once(True), LAST_WAIT_S)
        except TimeoutError:
            pass
        self._exporter.close()
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _once(self, metrics: bool) -> None:
        spans = self._tracer.take() if self._tracer is not None else []
        families = self._readings.take() if metrics else []
        if not spans and not families:
            return
        loop = asyncio.get_running_loop()
        try:
            sent = await loop.run_in_executor(
                self._thread, self._send, families, spans, self._now_ns()
            )
        except Exception as error:
            log.debug("export failed", exc_info=error)
            sent = False
        if sent is self._failing:
            self._failing = not sent
            if sent:
                log.info(f"telemetry reaches {self._endpoint} again")
            else:
                log.warning(
                    f"telemetry cannot be sent to {self._endpoint}; it is dropped meanwhile"
                )

    def _send(self, families: list[Family], spans: list[Span], now_ns: int) -> bool:
        sent = True
        if families:
            sent = self._exporter.send_metrics(families, self._began_ns, now_ns)
        if spans:
            sent = self._exporter.send_spans(spans) and sent
        return sent
