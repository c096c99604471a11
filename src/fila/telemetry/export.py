"""When to export: metrics every interval, spans every second, on a thread that mostly waits.

The loop hands over plain data; encoding and sending happen on the export thread, a few milliseconds
of it per interval because labels are bounded. A collector that is away costs nothing but its data:
one export is under way at a time, spans that pile up are dropped and counted. Nor does it hold up
the end of the process: the thread is a daemon, and a collector that is away is not waited for.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Protocol

from fila.telemetry.readings import Family, Readings
from fila.telemetry.spans import Span, Tracer

log = logging.getLogger("fila.telemetry")

SPANS_EVERY_S = 1.0
LAST_WAIT_S = 1.0  # for a last export when the server stops


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
        self._thread = _ExportThread()
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
        if not self._failing:
            try:
                await asyncio.wait_for(self._once(True), LAST_WAIT_S)
            except TimeoutError:
                log.warning(f"the last telemetry was not sent: {self._endpoint} did not answer")
        self._thread.end()
        # Closing cancels the call under way, or hangs with it.
        closing = threading.Thread(target=self._exporter.close, name="otlp-close", daemon=True)
        closing.start()

    async def _once(self, metrics: bool) -> None:
        spans = self._tracer.take() if self._tracer is not None else []
        families = self._readings.take() if metrics else []
        if not spans and not families:
            return
        now_ns = self._now_ns()
        try:
            job = self._thread.submit(lambda: self._send(families, spans, now_ns))
            sent = await asyncio.wrap_future(job)
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


class _ExportThread:
    """One thread that takes jobs in order. An executor's threads are waited for when the process
    ends, however long their call takes; this one is not."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None]
        self._jobs = queue.SimpleQueue()
        threading.Thread(target=self._run, name="otlp", daemon=True).start()

    def submit(self, job: Callable[[], Any]) -> Future[Any]:
        future: Future[Any] = Future()
        self._jobs.put((future, job))
        return future

    def end(self) -> None:
        """After the job under way."""
        self._jobs.put(None)

    def _run(self) -> None:
        while (found := self._jobs.get()) is not None:
            future, job = found
            if not future.set_running_or_notify_cancel():
                continue
            try:
                result = job()
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)
