"""A consumer's heart-beat: what it was handed keeps its lease until it is settled.

Owns which messages are held, read or unread, and when the broker is asked for more time: three
times within the queue's visibility timeout, which the first question tells. Time is an argument;
sending is the exchange's part.
"""

from collections.abc import Callable
from typing import Any, Final

from fila.client.errors import FilaError
from fila.client.request import Request
from fila.client.ticket import Ticket
from fila.wire import bodies
from fila.wire import errors as codes

IDS_MAX: Final = 1_000  # in one request
_BEATS: Final = 3  # within the visibility timeout
_AGAIN_S: Final = 1.0  # until the timeout is known
# The broker will not say anything else next time.
_FOR_GOOD: Final = frozenset((codes.INVALID_FRAME, codes.FORBIDDEN, codes.QUEUE_NOT_FOUND))


class Heartbeat:
    """One consumer's. `failed` is told why there can be none."""

    def __init__(self, queue: str, failed: Callable[[FilaError], None]) -> None:
        self.held: dict[bytes, None] = {}
        self.due_at = 0.0
        self._queue = queue
        self._failed = failed
        self._ended = False
        self._interval_s: float | None = None  # not known yet

    def beat(self, now: float) -> list[Request]:
        """What to send now; nothing before its time, or when it is refused for good."""
        if now < self.due_at or self._ended:
            return []
        self.due_at = now + (self._interval_s or _AGAIN_S)
        ids = [id.decode() for id in self.held]
        if not ids and self._interval_s is not None:
            return []
        starts = range(0, len(ids) or 1, IDS_MAX)
        return [self._request(tuple(ids[at : at + IDS_MAX])) for at in starts]

    def answered(self, reply: bodies.ExtendResult) -> None:
        for id in reply.missing:
            self.held.pop(id.encode(), None)
        interval_s = reply.visibility_ms / 1000 / _BEATS
        if self._interval_s is None:
            self.due_at += interval_s - _AGAIN_S
        self._interval_s = interval_s

    def refused(self, error: FilaError) -> None:
        if error.code in _FOR_GOOD:
            self.due_at = 0.0
            self._ended = True
            self._failed(error)

    def connection_lost(self) -> None:
        """What was handed out belongs to nobody's connection any more."""
        self.held.clear()
        self.due_at = 0.0
        self._interval_s = None

    def _request(self, ids: tuple[str, ...]) -> Request:
        ticket = _Beat(self)
        ticket.expect(1)
        ticket.seal()
        return Request(bodies.Extend(self._queue, ids), bodies.ExtendResult, False, ticket)


class _Beat(Ticket):
    """Nobody waits for it; the heart-beat takes the answer itself."""

    __slots__ = ("_heartbeat",)

    def __init__(self, heartbeat: Heartbeat) -> None:
        super().__init__()
        self._heartbeat = heartbeat

    def settle(self, index: int, result: Any) -> None:
        super().settle(index, result)
        if isinstance(result, FilaError):
            self._heartbeat.refused(result)
        else:
            self._heartbeat.answered(result)
