"""A message as a consumer sees it.

Owns the attributes of a received message, decoded when they are first looked at. Settling is the
shells' part: `SyncMessage` and `AsyncMessage` add `ack` and `nack`. Never touches sockets.
"""

from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from fila.wire import message as body
from fila.wire.message_codec import ReceivedItem

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Metadata(NamedTuple):
    """What the broker's hooks decided about a message."""

    fairness_key: str
    weight: int
    throttle_keys: tuple[str, ...]
    attempt_count: int
    queue_id: str


class Message:
    """One delivered message. Its lease lasts for the queue's visibility timeout."""

    __slots__ = ("_headers", "_payload", "_received")

    def __init__(self, received: ReceivedItem) -> None:
        self._received = received
        self._headers: dict[str, str] | None = None
        self._payload: bytes | None = None

    @property
    def id(self) -> str:
        return self._received[0].decode()

    @property
    def queue(self) -> str:
        return self._received[1].decode()

    @property
    def headers(self) -> dict[str, str]:
        headers = self._headers
        if headers is None:
            headers = self._headers = body.decode_headers(self._received[2])
        return headers

    @property
    def payload(self) -> bytes:
        payload = self._payload
        if payload is None:
            payload = self._payload = body.payload_of(self._received[2])
        return payload

    @property
    def traceparent(self) -> str | None:
        """The producer's W3C trace context."""
        return self.headers.get("traceparent")

    @property
    def fairness_key(self) -> str:
        return self._received[3].decode()

    @property
    def weight(self) -> int:
        return self._received[4]

    @property
    def throttle_keys(self) -> tuple[str, ...]:
        return tuple([key.decode() for key in self._received[5]])

    @property
    def attempt_count(self) -> int:
        """How often this message failed before: 0 at the first delivery."""
        return self._received[6]

    @property
    def enqueued_at_ms(self) -> int:
        return self._received[7]

    @property
    def leased_at_ms(self) -> int:
        return self._received[8]

    @property
    def enqueued_at(self) -> datetime:
        return _EPOCH + timedelta(milliseconds=self._received[7])

    @property
    def leased_at(self) -> datetime:
        return _EPOCH + timedelta(milliseconds=self._received[8])

    @property
    def metadata(self) -> Metadata:
        return Metadata(
            self.fairness_key, self.weight, self.throttle_keys, self.attempt_count, self.queue
        )

    def __repr__(self) -> str:
        # No payload and no header values: messages end up in logs.
        return (
            f"<{type(self).__name__} {self.id} queue={self.queue!r} "
            f"fairness_key={self.fairness_key!r} attempt_count={self.attempt_count} "
            f"payload_bytes={body.payload_size_of(self._received[2])}>"
        )
