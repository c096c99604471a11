"""Runs the same test against both shells.

A driver turns a call on either client into a plain blocking call, so that one test text covers the
synchronous and the asynchronous API.
"""

import asyncio
import inspect
import threading
from typing import Any

from fila import FilaClient


class SyncDriver:
    name = "sync"

    def open(self, address: str, **options: Any) -> Any:
        return FilaClient(address, **options)

    def call(self, target: Any, method: str, *args: Any, **named: Any) -> Any:
        return getattr(target, method)(*args, **named)

    def start(self, target: Any, method: str, *args: Any, **named: Any) -> "threading.Thread":
        """Begin a call without waiting for it; its outcome lands in `thread.outcome`."""
        thread: Any = threading.Thread(target=self._record, daemon=True)
        thread.outcome = None
        thread._job = (thread, target, method, args, named)
        thread.start()
        return thread

    def next(self, consumer: Any) -> Any:
        return next(consumer)

    def collect(self, generator: Any) -> list[Any]:
        return list(generator)

    def stop(self) -> None:
        pass

    def _record(self) -> None:
        thread, target, method, args, named = threading.current_thread()._job  # type: ignore[attr-defined]
        try:
            thread.outcome = self.call(target, method, *args, **named)
        except Exception as error:
            thread.outcome = error


class AsyncDriver(SyncDriver):
    name = "async"

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def open(self, address: str, **options: Any) -> Any:
        return self._run(FilaClient.connect(address, **options))

    def call(self, target: Any, method: str, *args: Any, **named: Any) -> Any:
        async def invoke() -> Any:
            result = getattr(target, method)(*args, **named)
            return await result if inspect.iscoroutine(result) else result

        return self._run(invoke())

    def next(self, consumer: Any) -> Any:
        return self._run(consumer.__anext__())

    def collect(self, generator: Any) -> list[Any]:
        async def everything() -> list[Any]:
            return [one async for one in generator]

        result: list[Any] = self._run(everything())
        return result

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()

    def _run(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(20)
