"""The connection of a session that has none: of a request over HTTP, or of one whose connection is
gone. Nothing is ever delivered to it."""

from __future__ import annotations

from typing import Final

from fila.core.effect import Delivery
from fila.core.rejection import Rejection


class NoConnection:
    def send(self, data: bytes) -> None: ...

    def deliver(self, delivery: Delivery) -> None: ...

    def consumer_ended(self, consumer: str, why: Rejection) -> None: ...

    def flush(self) -> None: ...

    def expelled(self, why: Rejection) -> None: ...

    def takes_more(self) -> bool:
        return True


GONE: Final = NoConnection()
