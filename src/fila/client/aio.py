"""`AsyncFilaClient`: the public asynchronous client.

Owns opening it and subscribing; its other methods are in `async_methods`. A client belongs to the
event loop it was opened on.
"""

from typing import Unpack

from fila.client.async_methods.administration import AsyncAdministration
from fila.client.async_methods.browse_methods import AsyncBrowseMethods
from fila.client.async_methods.consumer import AsyncConsumer as AsyncConsumer
from fila.client.async_methods.consumer import AsyncMessage as AsyncMessage
from fila.client.async_methods.lease_methods import AsyncLeaseMethods
from fila.client.async_methods.producing import AsyncProducing
from fila.client.async_methods.receipt import AsyncReceipt as AsyncReceipt
from fila.client.options import PREFETCH_DEFAULT, ClientOptions, check_prefetch
from fila.client.stream import Stream
from fila.client.ticket import Ticket


class AsyncFilaClient(AsyncProducing, AsyncLeaseMethods, AsyncBrowseMethods, AsyncAdministration):
    """A connection to a broker; made by `await FilaClient.connect(...)`."""

    @staticmethod
    async def connect(
        address: str = "localhost:5555", /, **options: Unpack[ClientOptions]
    ) -> "AsyncFilaClient":
        client = AsyncFilaClient(address, options)
        await client._connected()
        return client

    def consume(
        self, queue: str, *, prefetch: int = PREFETCH_DEFAULT, heartbeat: bool = False
    ) -> AsyncConsumer:
        """Subscribe to a queue; iterate over the result with `async for`. At most `prefetch`
        messages are held here unsettled at a time. With `heartbeat` their leases are extended
        until they are settled, however long that takes. A refusal is raised by the first step."""
        stream = Stream(queue, check_prefetch(prefetch), Ticket(), heartbeat)
        self._link.subscribe(stream)
        if stream.opened.done:
            stream.opened.one()  # refused on the spot: the client is closed
        return AsyncConsumer(self, stream)
