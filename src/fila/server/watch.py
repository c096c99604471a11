"""Puts telemetry and the HTTP port together, if the settings want either.

Without them nothing here exists and the broker measures nothing.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
import random
import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING

from fila import __version__
from fila.broker.broker import Broker
from fila.broker.clock import Clock, elapsed_ns
from fila.broker.session import Sessions
from fila.distribution import install
from fila.edges.handshake import PortTls, Refusals
from fila.edges.listener import Listener, parse_address
from fila.hooks.contract import Hooks
from fila.server.certificate import CertificateWatch
from fila.server.config import ConfigError
from fila.server.settings import Settings
from fila.storage.committer import Committer
from fila.telemetry import prometheus
from fila.telemetry.commits import MeasuredCommits
from fila.telemetry.export import Export
from fila.telemetry.observer import Observer
from fila.telemetry.pulse import Pulse
from fila.telemetry.readings import HookNumbers, JournalNumbers, Readings, Sources
from fila.telemetry.spans import Tracer

if TYPE_CHECKING:
    from fila.edges.http.listener import HttpListener
    from fila.edges.http.site import Site

log = logging.getLogger("fila.server")


def wanted(settings: Settings) -> bool:
    return bool(settings.gui.listen_addr or settings.telemetry.otlp_endpoint)


class Watch:
    def __init__(self, settings: Settings, clock: Clock, committer: Committer) -> None:
        self._settings = settings
        self._clock = clock
        self.commits = MeasuredCommits(committer, elapsed_ns)
        self._tasks: list[asyncio.Task[None]] = []
        self._export: Export | None = None
        self._http: HttpListener | None = None
        self._site: Site | None = None
        self._scraped: tuple[int, tuple[bytes, ...]] = (-1, ())
        self._scraping: asyncio.Task[None] | None = None

    def attach(
        self,
        broker: Broker,
        sessions: Sessions,
        hooks: Hooks,
        listener: Listener,
        warnings: Callable[[], list[str]],
        journal: Callable[[], JournalNumbers] | None,
        certificate: CertificateWatch | None = None,
        refusals: Refusals | None = None,
    ) -> None:
        """See everything the broker does from now on."""
        own = self._settings.telemetry
        now_ns = self._clock.now_ns
        tracer = None
        if own.otlp_endpoint and own.trace_ratio >= 0:
            tracer = Tracer(own.trace_ratio, secrets.randbits, random.random, now_ns)
        self._pulse = Pulse(broker.machine.view, now_ns, own.top_keys)
        observer = Observer(lambda: now_ns() // 1_000_000, tracer)
        broker.watcher = observer
        sessions.tracer = tracer

        def hook_numbers(queue: str) -> list[tuple[str, HookNumbers]]:
            both = hooks.stats(queue)
            named = (("on_enqueue", both.on_enqueue), ("on_failure", both.on_failure))
            return [(name, numbers) for name, numbers in named if numbers is not None]

        self._readings = Readings(
            self._pulse,
            Sources(
                hook_numbers,
                self.commits,
                lambda: listener.port.inbound.buffered_bytes,
                listener.connections,
                listener.port.failures.counts,
                journal,
                certificate.remaining_s if certificate is not None else None,
                refusals.counts if refusals is not None else None,
                lambda: sessions.limits(),
                lambda: sessions.attempts.refused,
            ),
        )
        if own.otlp_endpoint:
            self._export = self._make_export(tracer)
        if self._settings.gui.listen_addr:
            self._make_site(sessions, observer, hook_numbers, listener, warnings)

    async def start(self, tls: PortTls | None) -> tuple[str, int] | None:
        """Begin to beat, to export and to serve. Returns the HTTP address, if there is one."""
        loop = asyncio.get_running_loop()
        bound = await self._listen(tls) if self._http is not None else None
        self._tasks.append(loop.create_task(self._pulse.run()))
        if self._export is not None:
            self._tasks.append(loop.create_task(self._export.run()))
        for task in self._tasks:
            task.add_done_callback(_log_end)
        return bound

    def ready(self) -> None:
        """The broker accepts connections and serves its queues: say so."""
        if self._site is not None:
            self._site.not_ready = ""

    def stopping(self) -> None:
        """Health checks report it before the broker stops accepting."""
        if self._site is not None:
            self._site.not_ready = "stopping"

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._http is not None:
            self._http.close()
        if self._export is not None:
            await self._pulse.beat()
            await self._export.close()

    async def _listen(self, tls: PortTls | None) -> tuple[str, int]:
        assert self._http is not None and self._site is not None
        gui = self._settings.gui
        host, port = parse_address(gui.listen_addr)
        try:
            bound = await self._http.listen(host, port, tls)
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else str(error)
            if not gui.fallback:
                raise OSError(f"gui: cannot listen on {gui.listen_addr}: {why}") from error
            bound = await self._http.listen(host, 0, tls)
            log.warning(f"{gui.listen_addr}: {why}; the dashboard is on port {bound[1]} instead")
        self._site.loopback = ipaddress.ip_address(bound[0].partition("%")[0]).is_loopback
        scheme = "https" if tls is not None else "http"
        shown = f"[{bound[0]}]" if ":" in bound[0] else bound[0]
        log.info(f"dashboard and metrics on {scheme}://{shown}:{bound[1]}/")
        return bound

    def _make_export(self, tracer: Tracer | None) -> Export:
        own = self._settings.telemetry
        try:
            from fila.telemetry.otlp import OtlpExporter
        except ImportError as error:
            raise ConfigError(
                f"telemetry.otlp_endpoint: {error.name} is missing; install the extra: "
                f"{install('server')}"
            ) from error
        instance = secrets.token_hex(8)
        exporter = OtlpExporter(own.otlp_endpoint, own.service_name, __version__, instance)
        return Export(
            exporter,
            own.otlp_endpoint,
            self._readings,
            tracer,
            self._clock.now_ns,
            own.metrics_interval_ms / 1000,
        )

    def _make_site(
        self,
        sessions: Sessions,
        observer: Observer,
        hooks: Callable[[str], list[tuple[str, HookNumbers]]],
        listener: Listener,
        warnings: Callable[[], list[str]],
    ) -> None:
        from fila.edges.http.actions import Actions
        from fila.edges.http.api import Api
        from fila.edges.http.connection import HttpLimits
        from fila.edges.http.files import Files
        from fila.edges.http.last_minutes import LastMinutes
        from fila.edges.http.listener import HttpListener
        from fila.edges.http.logins import Logins
        from fila.edges.http.messages import Messages
        from fila.edges.http.site import Site
        from fila.edges.http.trying import Trying
        from fila.edges.http.views import Views

        gui = self._settings.gui
        guard = sessions.guard
        views = Views(self._pulse, sessions, observer, hooks)
        logins = Logins(
            guard,
            lambda: secrets.token_urlsafe(32),
            sessions.now_ms,
            gui.session_ttl_ms,
            sessions.attempts,
        )
        last_minutes = LastMinutes(
            self._settings.journal_path if self._settings.journal.enabled else None
        )
        actions = Actions(sessions)
        messages = Messages(sessions, actions.do)
        api = Api(
            guard, logins, views, actions, messages, gui.max_streams, last_minutes, Trying(sessions)
        )
        self._site = Site(guard, logins, api, Files(), self._scrape)
        self._site.warnings = warnings
        limits = HttpLimits(connections_max=gui.max_connections, streams_max=gui.max_streams)
        self._http = HttpListener(
            self._site.serve,
            limits,
            listener.port.failures,
            listener.port.outbound,
            listener.port.inbound,
        )

    async def _scrape(self) -> tuple[tuple[bytes, ...], str]:
        """Once per beat for all scrapers, some of it at a time."""
        if self._scraped[0] != self._pulse.tick:
            if self._scraping is None:
                self._scraping = asyncio.create_task(self._take())
            await asyncio.shield(self._scraping)  # others may wait for it too
        return self._scraped[1], prometheus.CONTENT_TYPE

    async def _take(self) -> None:
        tick = self._pulse.tick
        try:
            taking = self._readings.taking()
            while True:
                try:
                    next(taking)
                except StopIteration as end:
                    families = end.value
                    break
                await asyncio.sleep(0)
            parts = []
            for part in prometheus.exposed(families):
                parts.append(part)
                await asyncio.sleep(0)
            self._scraped = (tick, tuple(parts))
        finally:
            self._scraping = None


def _log_end(task: asyncio.Task[None]) -> None:
    """Telemetry never stops the broker; that it ended is logged."""
    if not task.cancelled() and task.exception() is not None:
        log.error("telemetry stopped", exc_info=task.exception())
