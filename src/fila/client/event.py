"""Connection events of a client, for the listener (`on_event`) and the log (`logger`).

Owns the events, their delivery and their lines in the log; a listener or logger that fails costs
a line in the log and nothing else.
"""

from collections import deque
from collections.abc import Callable
from typing import Final, Literal, NamedTuple, Protocol

EventKind = Literal["connected", "disconnected", "reconnecting", "redirected", "closed"]

# The levels of the standard library's logging, which costs more to import than the rest of the SDK.
_INFO: Final = 20
_WARNING: Final = 30
_ERROR: Final = 40


class ConnectionEvent(NamedTuple):
    kind: EventKind
    address: str  # of the broker
    reason: str = ""  # why it was lost, is tried again or led elsewhere, or why the client ended
    pause: float = 0.0  # seconds until the next attempt, when reconnecting


class Log(Protocol):
    """What the client asks of a logger; `logging.Logger` and its adapters have it."""

    def log(self, level: int, msg: str, *args: object) -> object: ...


Listener = Callable[[ConnectionEvent], object]


def notify(listener: Listener | None, log: Log | None, events: deque[ConnectionEvent]) -> None:
    """Called without the link's lock: the listener may use the client."""
    while events:
        event = events.popleft()
        try:
            if log is not None:
                _write(log, event)
            if listener is not None:
                listener(event)
        except Exception:
            import logging

            logging.getLogger("fila").exception("on_event or the logger failed for %s", event)


def _write(log: Log, event: ConnectionEvent) -> None:
    """A line about the connection; never about payloads, headers or keys."""
    address, reason = event.address, event.reason
    if event.kind == "connected":
        log.log(_INFO, "connected to %s", address)
    elif event.kind == "disconnected":
        log.log(_WARNING, "connection to %s lost: %s", address, reason)
    elif event.kind == "reconnecting":
        log.log(_INFO, "connecting to %s again in %.2f s: %s", address, event.pause, reason)
    elif event.kind == "redirected":
        log.log(_INFO, "moving to the leader at %s: %s", address, reason)
    elif reason:
        log.log(_ERROR, "the client of %s has ended: %s", address, reason)
    else:
        log.log(_INFO, "closed the connection to %s", address)
