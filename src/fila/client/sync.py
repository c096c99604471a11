"""`FilaClient`: the public synchronous client.

Owns opening it and subscribing; its other methods are in `sync_methods`. A client may be shared by
threads.
"""

from typing import TYPE_CHECKING, Unpack
from weakref import finalize

from fila.client.options import PREFETCH_DEFAULT, ClientOptions, check_prefetch
from fila.client.stream import Stream
from fila.client.sync_methods.administration import Administration
from fila.client.sync_methods.browse_methods import BrowseMethods
from fila.client.sync_methods.consumer import Consumer as Consumer
from fila.client.sync_methods.consumer import SyncMessage as SyncMessage
from fila.client.sync_methods.lease_methods import LeaseMethods
from fila.client.sync_methods.producing import Producing
from fila.client.sync_methods.receipt import Receipt as Receipt
from fila.client.ticket import Ticket

if TYPE_CHECKING:
    from fila.client.aio import AsyncFilaClient


class FilaClient(Producing, LeaseMethods, BrowseMethods, Administration):
    """A connection to a broker. `await FilaClient.connect(...)` gives the asynchronous one."""

    def __init__(
        self, address: str = "localhost:5555", /, **options: Unpack[ClientOptions]
    ) -> None:
        super().__init__(address, options)
        finalize(self, self._link.close_soon)
        self._connected()

    @staticmethod
    async def connect(
        address: str = "localhost:5555", /, **options: Unpack[ClientOptions]
    ) -> "AsyncFilaClient":
        """Open an asynchronous client with the same methods."""
        from fila.client.aio import AsyncFilaClient

        return await AsyncFilaClient.connect(address, **options)

    def consume(
        self,
        queue: str,
        *,
        prefetch: int = PREFETCH_DEFAULT,
        heartbeat: bool = False,
        timeout: float | None = None,
    ) -> Consumer:
        """Subscribe to a queue; iterate over the result. At most `prefetch` messages are held
        here unsettled at a time. With `heartbeat` their leases are extended until they are
        settled, however long that takes."""
        deadline = self._deadline(timeout)
        stream = Stream(queue, check_prefetch(prefetch), Ticket(), heartbeat)
        opened = stream.opened
        self._link.subscribe(stream)
        try:
            self._wait(opened, lambda: opened.done, f'consume "{queue}"', deadline)
        except BaseException:
            self._link.cancel(stream)
            raise
        opened.one()
        return Consumer(self, stream)
