"""Puts the SQS endpoint together, if the settings want it. Without it nothing of it is loaded."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

from fila.broker.limits import Limit
from fila.broker.session import Sessions
from fila.edges.handshake import PortTls
from fila.edges.listener import parse_address
from fila.edges.port import Port
from fila.server.settings import SqsSettings

if TYPE_CHECKING:
    from fila.edges.http.listener import HttpListener
    from fila.edges.sqs.endpoint import Endpoint

log = logging.getLogger("fila.server")

# A body of 1 MiB, as the query form writes what needs three signs for one.
BODY_BYTES_MAX = 4 * 1024 * 1024


class SqsDoor:
    def __init__(self, settings: SqsSettings, sessions: Sessions, port: Port) -> None:
        from fila.edges.http.connection import HttpLimits
        from fila.edges.http.listener import HttpListener
        from fila.edges.sqs.endpoint import Endpoint

        self._settings = settings
        self._endpoint: Endpoint = Endpoint(sessions, settings.max_polls)
        limits = HttpLimits(
            body_bytes_max=BODY_BYTES_MAX,
            connections_max=settings.max_connections,
            idle_s=settings.idle_timeout_ms / 1000,
            half_closed=False,
        )
        self._http: HttpListener = HttpListener(
            self._endpoint.serve, limits, port.failures, port.outbound, port.inbound, always=()
        )

    async def start(self, tls: PortTls | None) -> tuple[str, int]:
        """Begin to serve. Returns the bound address."""
        address = self._settings.listen_addr
        host, port = parse_address(address)
        try:
            bound = await self._http.listen(host, port, tls)
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else str(error)
            raise OSError(f"sqs: cannot listen on {address}: {why}") from error
        scheme = "https" if tls is not None else "http"
        shown = f"[{bound[0]}]" if ":" in bound[0] else bound[0]
        log.info(f"SQS on {scheme}://{shown}:{bound[1]}/")
        return bound

    def close(self) -> None:
        self._http.close()

    def limits(self) -> list[Limit]:
        own, receiving = self._settings, self._endpoint.receiving
        return [
            Limit(
                "sqs.max_connections",
                self._http.connections(),
                own.max_connections,
                self._http.turned_away,
            ),
            Limit("sqs.max_polls", receiving.polls, receiving.polls_max, receiving.refused),
        ]
