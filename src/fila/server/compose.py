"""The composition root: which part gets which."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import ssl
from collections.abc import Callable
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from fila.backup.backups import Backups, BackupSettings
from fila.backup.places import PlaceError
from fila.broker.broker import Broker
from fila.broker.browser import BrowseLimits
from fila.broker.clock import Clock, elapsed_ns
from fila.broker.ids import Ids
from fila.broker.session import Sessions
from fila.core import rows
from fila.core.effect import EVENT_CONFIG_CHANGED, Event
from fila.core.load import load
from fila.core.machine import Machine
from fila.core.reader import WHAT_TO_DO
from fila.core.row_batch import RowBatch
from fila.core.settings import Settings as CoreSettings
from fila.core.trail import trail_of
from fila.distribution import install
from fila.edges import arrow, tls
from fila.edges.grpc.http2 import Http2Limits
from fila.edges.handshake import PortTls, Refusals
from fila.edges.limits import ConnectionLimits
from fila.edges.listener import Listener, parse_address
from fila.hooks.contract import HookSettings
from fila.hooks.policy import LuaHooks
from fila.security.attempts import Attempts
from fila.security.guard import Guard
from fila.security.keyring import Keyring
from fila.server import watch
from fila.server.certificate import CertificateWatch
from fila.server.config import ConfigError
from fila.server.data_directory import DirectoryWatch
from fila.server.files import connections_allowed
from fila.server.flusher import Flusher
from fila.server.key_warnings import report_keys
from fila.server.limits import limits
from fila.server.settings import Settings
from fila.server.sqs_door import SqsDoor
from fila.server.watch import Watch
from fila.storage.committer import Committer, OsCommitter
from fila.storage.contract import Store, StoreDamagedError, StoreError
from fila.storage.rocks import RocksSettings, RocksStore

if TYPE_CHECKING:
    from fila.journal.writer import Journal

log = logging.getLogger("fila.server")

SNAPSHOT_KEYS_MAX = 10_000
CLOCK_APART_S = 60  # between the broker's time and the machine's clock, before it is told
CLOCK_LOOK_S = 600


class Node:
    """One broker with its store and its port."""

    def __init__(
        self,
        settings: Settings,
        loop: asyncio.AbstractEventLoop,
        on_fault: Callable[[BaseException], None],
        store: Store | None = None,
    ) -> None:
        """Without a store it opens the one in the data directory."""
        self._settings = settings
        storage = settings.storage
        self._directory: DirectoryWatch | None = None
        if store is None:
            store = open_store(settings)
            self._directory = DirectoryWatch(storage.data_dir, on_fault)
        self._store = store
        self._tls: list[PortTls] = []
        self._refusals = Refusals()
        self._clock = clock = Clock()
        self._certificate = CertificateWatch(self._wall_s)
        began_ns = elapsed_ns()
        machine = load(self._store, core_settings(settings), clock.now_ns())
        clock.never_before(machine.view.now_ns)
        queues = machine.view.queue_names()
        log.debug(
            "store loaded", extra={"queues": len(queues), "ms": (elapsed_ns() - began_ns) // 10**6}
        )
        config = machine.view.config
        lua = settings.lua
        hooks = LuaHooks(
            lambda key: value.encode() if (value := config.get(key.decode())) else None,
            clock=elapsed_ns,
            seed=lambda: secrets.randbits(63),
            settings=HookSettings(
                lua.default_timeout_ms,
                lua.default_memory_limit_bytes,
                lua.circuit_breaker_threshold,
                lua.circuit_breaker_cooldown_ms,
            ),
        )
        self._journal = open_journal(settings, clock) if settings.journal.enabled else None
        self._flusher = Flusher(self._store, loop, on_fault)
        committer: Committer
        committer = self._flusher if storage.durability == "fsync" else OsCommitter(self._store)
        self._watch = Watch(settings, clock, committer) if watch.wanted(settings) else None
        if self._watch is not None:
            committer = self._watch.commits
        self.broker = Broker(
            machine,
            committer,
            hooks,
            clock,
            Ids(Random(secrets.randbits(256)).getrandbits, machine.view.now_ns),
            loop,
            partial(self._stopped_by, machine, on_fault),
            self._journal,
        )
        for queue in queues:
            self.broker.install_hooks(queue)
        stored = self._store.scan(rows.AUTH, b"", b"\xff", 1 << 62, 1 << 62)
        try:
            keyring = Keyring(stored)
        except Exception as error:
            raise StoreDamagedError(f"the stored API keys cannot be read: {error!r}") from error
        guard = Guard(keyring, settings.auth.bootstrap_apikey, settings.auth_enabled)
        report_keys(guard, settings.auth.bootstrap_apikey, clock.wall_ns() // 1_000_000)
        sessions = Sessions(
            self.broker,
            guard,
            secrets.token_hex,
            lambda: clock.wall_ns() // 1_000_000,
            BrowseLimits(settings.browse.max_snapshots, settings.browse.ttl_ms),
            Attempts(settings.auth.max_wrong_keys),
        )
        self._browser = sessions.browser
        self._backups = sessions.backups = self._make_backups(loop)
        if settings.browse.preload_arrow and arrow.preload() is not None:
            raise ConfigError(
                f"browse.preload_arrow: pyarrow or numpy is missing; {install('journal')}"
            )
        self._listener = Listener(
            sessions,
            connection_limits(settings),
            http2_limits(settings),
            connections_allowed(settings.server.max_connections),
        )
        self._sqs: SqsDoor | None = None
        if settings.sqs.listen_addr:
            self._sqs = SqsDoor(settings.sqs, sessions, self._listener.port)
        sessions.limits = lambda: limits(
            settings, self.broker, self._listener, self._journal, self._sqs
        )
        if self._watch is not None:
            journal = self._journal.status if self._journal is not None else None
            certificate = self._certificate if settings.tls.cert_file else None
            refusals = self._refusals if settings.tls.cert_file else None
            self._watch.attach(
                self.broker,
                sessions,
                hooks,
                self._listener,
                self.warnings,
                journal,
                certificate,
                refusals,
            )
        self.http_address: tuple[str, int] | None = None
        self.sqs_address: tuple[str, int] | None = None

    def _make_backups(self, loop: asyncio.AbstractEventLoop) -> Backups:
        store = self._store if isinstance(self._store, RocksStore) else None
        wanted = BackupSettings(**vars(self._settings.backup))
        try:
            return Backups(store, wanted, loop, lambda: self._clock.wall_ns() // 1_000_000)
        except PlaceError as error:
            raise ConfigError(f"backup.target: {error}") from error

    def _stopped_by(
        self, machine: Machine, on_fault: Callable[[BaseException], None], error: BaseException
    ) -> None:
        """Nothing of the turn is committed any more. If one queue's rows are damaged, all that is
        written is a mark: the next start looks at that queue closely, and serves the others."""
        if isinstance(error, StoreDamagedError) and (found := machine.mark_of(error)) is not None:
            queue, mark = found
            with contextlib.suppress(StoreError):
                self._store.write([RowBatch(0, 0, [mark])])
                self._store.sync()
                error = StoreDamagedError(
                    error.cause,
                    where=f'stopped over damaged rows of queue "{queue}": ',
                    advice=f"The next start sets it apart and serves the others. {WHAT_TO_DO}",
                )
        on_fault(error)

    def warnings(self) -> list[str]:
        """What an operator should know although the broker serves; no names, for anybody reads it
        who asks whether the broker is ready."""
        found = self._store.warnings() if isinstance(self._store, RocksStore) else []
        apart = len(self.broker.machine.view.quarantined)
        if apart:
            found.append(
                f"quarantined queues: {apart}, because their rows cannot be read; `fila queue "
                "list` names them"
            )
        if self._certificate.warning():
            found.append(self._certificate.warning())
        return found

    async def start(self) -> list[tuple[str, int]]:
        """Accept connections. Returns the bound addresses, in the settings' order."""
        self._snapshot()
        self._compare_clocks()
        if isinstance(self._store, RocksStore):
            for warning in self._store.warnings():
                log.warning(warning)
        if self._directory is not None:
            self._directory.start()
        secured = self._secure(tls.ALPN_GRPC, tls.ALPN_FIBP)
        if secured is not None:
            self._look_at_certificate()
        if self._watch is not None:
            self.http_address = await self._watch.start(self._secure(tls.ALPN_HTTP))
        if self._sqs is not None:
            self.sqs_address = await self._sqs.start(self._secure(tls.ALPN_HTTP))
        bound = [await self._listen(text, secured) for text in self._settings.listen_addrs]
        if self._watch is not None:
            self._watch.ready()
        return bound

    async def _listen(self, address: str, secured: PortTls | None) -> tuple[str, int]:
        host, port = parse_address(address)
        try:
            return await self._listener.listen(host, port, secured)
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else str(error)
            raise OSError(f"cannot listen on {address}: {why}") from error

    def reload_certificates(self) -> None:
        """Read the certificate files again; a fault is logged and the old ones stay in use."""
        if not self._tls:
            return
        try:
            # All are made before the first is put in place.
            fresh = [self._context(port.protocols) for port in self._tls]
        except tls.TlsError as error:
            log.error(f"certificates not reloaded: {error}")
        else:
            for port, context in zip(self._tls, fresh, strict=True):
                port.context = context
            log.info("certificates reloaded")
            self._look_at_certificate()

    def _look_at_certificate(self) -> None:
        path = self._settings.tls.cert_file
        self._certificate.loaded(path, tls.expiry_s(path))

    def _secure(self, *protocols: str) -> PortTls | None:
        """What one port needs for TLS, if there are certificates."""
        if not self._settings.tls.cert_file:
            return None
        secured = PortTls(self._context(protocols), protocols, self._refusals)
        self._tls.append(secured)
        return secured

    def _context(self, protocols: tuple[str, ...]) -> ssl.SSLContext:
        own = self._settings.tls
        files = tls.TlsFiles(own.cert_file, own.key_file, own.ca_file, own.crl_file)
        return tls.server_context(files, self._wall_s(), protocols)

    def _wall_s(self) -> float:
        return self._clock.wall_ns() / 1e9

    def _snapshot(self) -> None:
        """Let the journal know what every key holds, now and again."""
        if self._journal is not None:
            loop = asyncio.get_running_loop()
            # From its end on: readers tell two snapshots apart by the pause between them.
            interval_s = self._settings.journal.snapshot_interval_ms / 1000
            again = partial(loop.call_later, interval_s, self._snapshot)
            self.broker.record_snapshot(SNAPSHOT_KEYS_MAX, again)

    def _compare_clocks(self) -> None:
        """Say so, again and again, while the broker's time is far from the machine's."""
        ahead_s = self._clock.ahead_ns() / 1e9
        if ahead_s > CLOCK_APART_S:
            log.error(
                f"the broker's time is {ahead_s:,.0f} s ahead of this machine's clock, which was "
                "ahead once: time never runs backwards. Leases and delays count from the "
                "broker's time. If the clock is right now, stop the broker and copy its data with "
                "`fila-server --set-clock-back NEW_DIR`"
            )
        elif ahead_s < -CLOCK_APART_S:
            log.warning(
                f"this machine's clock was set forward by {-ahead_s:,.0f} s; the broker's time "
                "follows at the next start"
            )
        asyncio.get_running_loop().call_later(CLOCK_LOOK_S, self._compare_clocks)

    async def stop(self) -> None:
        """Stop accepting, finish what was accepted, flush, close the store."""
        self._certificate.stop()
        if self._directory is not None:
            self._directory.stop()
        if self._watch is not None:
            self._watch.stopping()
        if self._sqs is not None:
            self._sqs.close()
        await self._listener.close(self._settings.server.shutdown_grace_ms / 1000)
        self._backups.stop()
        self.broker.stop()
        if self._watch is not None:
            await self._watch.stop()
        self._browser.close_all()
        await self._flusher.drain()
        if self._journal is not None:
            self._journal.close()
        self._store.close()

    def abandon(self) -> None:
        """Stop at once; what is committed is safe."""
        self.broker.stop()
        self._backups.stop()
        self._browser.close_all()
        # A store that failed may fail to close as well; the first failure is the one to tell.
        with contextlib.suppress(Exception):
            self._store.close()


def open_store(settings: Settings) -> Store:
    storage = settings.storage
    return RocksStore(
        storage.data_dir,
        RocksSettings(
            block_cache_bytes=storage.block_cache_bytes,
            write_buffer_bytes=storage.write_buffer_bytes,
        ),
    )


def open_journal(settings: Settings, clock: Clock) -> Journal:
    """The journal's thread, started. pyarrow is imported only here, when it is wanted."""
    try:
        from fila.journal.writer import Journal, JournalSettings
    except ImportError as error:
        raise ConfigError(
            f"journal.enabled: {error.name} is missing; install the extra: {install('journal')}"
        ) from error
    own = settings.journal
    journal = Journal(
        JournalSettings(
            settings.journal_path,
            own.broker_name,
            flush_s=own.flush_interval_ms / 1000,
            seal_s=own.seal_interval_ms / 1000,
            waiting_events_max=own.max_waiting_events,
            waiting_bytes_max=own.max_waiting_bytes,
            retention_days=own.retention_days,
            messages=own.messages,
            messages_retention_days=own.messages_retention_days,
        ),
        clock.now_ns() // 1_000_000,
        clock.now_ns,
    )
    journal.start()
    # A replay has to know; nothing else of the settings decides about order.
    quantum = f"scheduler.quantum={settings.scheduler.quantum}"
    journal.record(trail_of([Event(clock.now_ns(), EVENT_CONFIG_CHANGED, "", reason=quantum)]))
    return journal


def core_settings(settings: Settings) -> CoreSettings:
    return CoreSettings(
        turn_work=settings.scheduler.turn_messages,
        quantum=settings.scheduler.quantum,
        quantum_bytes=settings.scheduler.quantum_bytes,
        weight_max=settings.scheduler.max_weight,
        window_bytes_total=settings.storage.window_bytes,
        prefetch_default=settings.connection.prefetch,
        prefetch_bytes=settings.connection.prefetch_bytes,
        batch_bytes_max=settings.connection.max_batch_bytes,
        idempotency_keys_max=settings.idempotency.max_keys,
        idempotency_ms=settings.idempotency.window_ms,
    )


def http2_limits(settings: Settings) -> Http2Limits:
    grpc = settings.grpc
    return Http2Limits(
        streams_max=grpc.max_streams_per_connection, header_bytes_max=grpc.max_header_size
    )


def connection_limits(settings: Settings) -> ConnectionLimits:
    connection = settings.connection
    return ConnectionLimits(
        frame_bytes_max=settings.fibp.max_frame_size,
        message_bytes_max=connection.max_message_size,
        inbound_bytes_max=connection.max_inbound_bytes,
        messages_max=connection.max_messages_per_request,
        unsent_bytes_max=connection.max_unsent_bytes,
        outbound_bytes_max=connection.max_outbound_bytes,
        unread_bytes_max=connection.max_unread_bytes,
        strangers_max=connection.max_unauthenticated,
        strangers_bytes_max=connection.max_unauthenticated_bytes,
        consumers_max=connection.max_consumers,
        consumers_total_max=settings.server.max_consumers,
        handshake_s=connection.handshake_timeout_ms / 1000,
        close_s=connection.close_timeout_ms / 1000,
        keepalive_interval_s=connection.keepalive_interval_secs,
        keepalive_timeout_s=connection.keepalive_timeout_secs,
    )
