"""Connection events of a client, for the listener (`on_event`).

Owns the event and its delivery; a listener that fails costs a line in the log and nothing else.
"""

from collections import deque
from collections.abc import Callable
from typing import Literal, NamedTuple

EventKind = Literal["connected", "disconnected", "closed"]


class ConnectionEvent(NamedTuple):
    kind: EventKind
    address: str  # of the broker
    reason: str = ""  # why it was lost, or why the client ended


Listener = Callable[[ConnectionEvent], object]


def notify(listener: Listener | None, events: deque[ConnectionEvent]) -> None:
    """Called without the link's lock: the listener may use the client."""
    while events:
        event = events.popleft()
        if listener is None:
            continue
        try:
            listener(event)
        except Exception:
            import logging  # costs more to import than the rest of the SDK

            logging.getLogger("fila").exception("on_event failed for %s", event)
