"""How near each limit is: what the settings allow in all, what is used of it now, how often it was
reached. For metrics and `fila stats`; one place, so that they agree.

Only limits on what everybody shares are here. Those on one connection, queue or request are in the
reference (docs/limits.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fila.broker.broker import Broker
from fila.broker.limits import Limit
from fila.edges.listener import Listener
from fila.server.settings import Settings

if TYPE_CHECKING:
    from fila.journal.writer import Journal
    from fila.server.sqs_door import SqsDoor


def limits(
    settings: Settings,
    broker: Broker,
    listener: Listener,
    journal: Journal | None,
    sqs: SqsDoor | None = None,
) -> list[Limit]:
    """All of them, in the order of the settings."""
    port = listener.port
    strangers = port.strangers
    found = [
        Limit(
            "server.max_connections",
            listener.connections(),
            listener.connections_max,
            listener.turned_away,
        ),
        Limit("server.max_consumers", broker.consumers(), settings.server.max_consumers),
        Limit(
            "connection.max_inbound_bytes",
            port.inbound.buffered_bytes,
            port.inbound.bytes_max,
            port.inbound.refused,
        ),
        Limit(
            "connection.max_unread_bytes",
            port.outbound.bytes,
            port.outbound.bytes_max,
            port.outbound.given_up,
        ),
        Limit(
            "connection.max_unauthenticated",
            len(strangers),
            strangers.count_max,
            strangers.given_up,
        ),
        Limit("connection.max_unauthenticated_bytes", strangers.bytes, strangers.bytes_max),
    ]
    if journal is not None:
        waiting = journal.status()
        own = settings.journal
        found.append(Limit("journal.max_waiting_events", waiting.waiting, own.max_waiting_events))
        found.append(
            Limit(
                "journal.max_waiting_bytes",
                waiting.waiting_bytes,
                own.max_waiting_bytes,
                waiting.dropped,
            )
        )
    return found + sqs.limits() if sqs is not None else found
