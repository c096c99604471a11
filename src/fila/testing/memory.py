"""A broker for unit tests: this process, a thread of its own, messages in memory.

Owns that thread and its event loop. Everything above the store is what `fila-server` runs; the
store keeps rows in a dictionary, so that a broker starts in milliseconds and leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any, Final

from fila.testing.failure import SERVER_EXTRA, BrokerError
from fila.testing.process import environ_of

if TYPE_CHECKING:
    from fila.client.sync import FilaClient
    from fila.server.compose import Node
    from fila.server.settings import Settings

_START_S: Final = 30.0
_STOP_S: Final = 10.0
_SYNC_S: Final = 1.0
_FIXED: Final = {"server.listen_addr": "127.0.0.1:0", "server.shutdown_grace_ms": 500}


@contextmanager
def memory_broker(settings: Mapping[str, object] | None = None) -> Iterator[MemoryBroker]:
    """A broker inside this process that lives as long as the `with` block and forgets everything.

    `settings` are those of the configuration file as `{"section.key": value}`.
    """
    running = MemoryBroker(settings)
    try:
        yield running
    finally:
        running.stop()


class MemoryBroker:
    """What `memory_broker()` gives."""

    def __init__(self, settings: Mapping[str, object] | None = None) -> None:
        self.address = ""  # for `FilaClient`: 127.0.0.1 and a free port
        self._settings = _read({**_FIXED, **(settings or {})})
        self._loop = asyncio.new_event_loop()
        self._ending = asyncio.Event()
        self._started = threading.Event()
        self._fault: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="fila broker", daemon=True)
        self._thread.start()
        self._started.wait(_START_S)
        if not self.address:
            self._thread.join(_STOP_S)
            raise BrokerError(f"the broker did not start: {self._fault!r}") from self._fault

    def client(self, **options: Any) -> FilaClient:
        """A synchronous client; `await FilaClient.connect(running.address)` for the other."""
        from fila.client.sync import FilaClient

        return FilaClient(self.address, **options)

    def stop(self) -> None:
        """End it; raises what stopped it before, if something did."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._ending.set)
            self._thread.join(_STOP_S)
        if self._fault is not None:
            raise BrokerError(f"the broker stopped by itself: {self._fault!r}") from self._fault

    # The thread.

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        except BaseException as error:
            self._fault = self._fault or error
        finally:
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()
            self._started.set()

    async def _serve(self) -> None:
        from fila.server.compose import Node
        from fila.storage.memory import MemoryStore

        store = MemoryStore()
        node = Node(self._settings, self._loop, self._stopped, store)
        try:
            host, port = (await node.start())[0]
            self.address = f"{host}:{port}"
            self._started.set()
            await self._until_the_end(store)
        except BaseException:
            node.abandon()
            raise
        await _end(node, self._fault)

    async def _until_the_end(self, store: Any) -> None:
        while not self._ending.is_set():
            store.sync()  # it remembers what a loss of power would cost: not wanted here
            try:
                await asyncio.wait_for(self._ending.wait(), _SYNC_S)
            except TimeoutError:
                pass

    def _stopped(self, fault: BaseException) -> None:
        self._fault = self._fault or fault
        self._ending.set()


async def _end(node: Node, fault: BaseException | None) -> None:
    if fault is not None:
        node.abandon()
    else:
        await node.stop()


def _read(given: Mapping[str, object]) -> Settings:
    try:
        import fila.server.compose  # noqa: F401  what the thread will need
        from fila.server.config import ConfigError, load
    except ImportError as error:
        raise BrokerError(f"{SERVER_EXTRA} ({error})") from error
    with NamedTemporaryFile(suffix=".toml") as nothing:  # or ./fila.toml would be read
        try:
            loaded = load(nothing.name, environ_of(given), {})
        except ConfigError as error:
            raise BrokerError(str(error)) from error
    if loaded.warnings:
        raise BrokerError("; ".join(loaded.warnings))
    if loaded.settings.journal.enabled and not loaded.settings.journal.path:
        raise BrokerError("a broker in memory has no directory for the journal: set journal.path")
    return loaded.settings
