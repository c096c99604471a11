"""Connections that ended because the broker itself failed over them: counted and logged.

Reading a client's bytes must not raise anything but what the protocol foresees. Where it does, that
is a bug, and it costs the one connection: each protocol ends its own in one place and says so here.
Only a command that breaks off half-applied stops the broker, and `core.turn` sees to that itself.
"""

from __future__ import annotations

import logging
from types import TracebackType
from typing import Final

log = logging.getLogger("fila.edges")

FIBP: Final = "fibp"
GRPC: Final = "grpc"
HTTP: Final = "http"
UNKNOWN: Final = "unknown"  # the connection's protocol was not detected yet

_PLACES_MAX: Final = 64  # logged with a traceback; a client must not be able to fill the disk


class Failures:
    def __init__(self) -> None:
        self.counts: dict[str, int] = dict.fromkeys((FIBP, GRPC, HTTP, UNKNOWN), 0)
        self._reported: set[tuple[type[BaseException], object, int]] = set()

    def report(self, protocol: str, peer: str, error: BaseException) -> None:
        """One line for each; where it came from, once for each place that fails."""
        self.counts[protocol] += 1
        place = (type(error), *_location(error.__traceback__))
        fresh = place not in self._reported and len(self._reported) < _PLACES_MAX
        if fresh:
            self._reported.add(place)
        log.error(
            "the broker failed over a connection and closed it; the broker goes on",
            extra={"protocol": protocol, "peer": peer, "why": type(error).__name__},
            exc_info=error if fresh else None,
        )


def _location(trace: TracebackType | None) -> tuple[object, int]:
    if trace is None:
        return None, 0
    while trace.tb_next is not None:
        trace = trace.tb_next
    return trace.tb_frame.f_code, trace.tb_lineno
