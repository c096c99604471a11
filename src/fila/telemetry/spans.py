"""Spans: one per traced batch (enqueue, deliver, ack, nack), as plain tuples until they are sent.

A batch is traced when its caller traces (a `traceparent` with the sampled flag in the gRPC
metadata), or by chance with the configured ratio. What is traced belongs to its caller's trace: by
the gRPC metadata, else by the header `traceparent` of its first message that has one; other traces
in the batch are links. The number of spans per second is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from fila.telemetry.traceparent import TraceContext, of_body, parse

SPANS_PER_SECOND_MAX: Final = 500
WAITING_MAX: Final = 4_000  # finished spans that are not sent yet; beyond they are dropped, counted
LINKS_MAX: Final = 32
_BODIES_MAX: Final = 128  # messages of a batch whose headers are looked at
_NS: Final = 1_000_000_000


class Span(NamedTuple):
    name: str
    trace_id: int
    span_id: int
    parent: TraceContext | None
    links: tuple[TraceContext, ...]
    began_ns: int
    ended_ns: int
    attributes: dict[str, str | int]
    error: str  # empty: it went well
    incoming: bool  # somebody asked for it


class OpenSpan:
    """A batch under way."""

    __slots__ = ("_began_ns", "_links", "_name", "_parent", "_tracer", "attributes", "error")

    def __init__(
        self,
        tracer: Tracer,
        name: str,
        queue: str,
        count: int,
        contexts: Sequence[TraceContext],
    ) -> None:
        self._tracer = tracer
        self._name = name
        self._began_ns = tracer.now_ns()
        self._parent = contexts[0] if contexts else None
        self._links = tuple(contexts[1 : LINKS_MAX + 1])
        self.attributes: dict[str, str | int] = {
            "messaging.system": "fila",
            "messaging.destination.name": queue,
            "messaging.operation.name": name,
            "messaging.batch.message_count": count,
        }
        self.error = ""

    def end(self) -> None:
        tracer = self._tracer
        parent = self._parent
        trace_id = parent.trace_id if parent is not None else tracer.random_bits(128) or 1
        tracer.finished(
            Span(
                f"{self._name} {self.attributes['messaging.destination.name']}",
                trace_id,
                tracer.random_bits(64) or 1,
                parent,
                self._links,
                self._began_ns,
                tracer.now_ns(),
                self.attributes,
                self.error,
                self._name != "deliver",
            )
        )


class Tracer:
    def __init__(
        self,
        ratio: float,
        random_bits: Callable[[int], int],
        chance: Callable[[], float],
        now_ns: Callable[[], int],
    ) -> None:
        self._ratio = ratio
        self._chance = chance
        self.random_bits = random_bits
        self.now_ns = now_ns
        self.waiting: list[Span] = []
        self.dropped = 0
        self._second = 0
        self._begun = 0

    def begin(
        self, name: str, queue: str, count: int, traceparent: bytes, bodies: Sequence[bytes] = ()
    ) -> OpenSpan | None:
        """A span for a batch, if it is to be traced."""
        caller = parse(traceparent) if traceparent else None
        if not (caller is not None and caller.sampled) and self._chance() >= self._ratio:
            return None
        if not self._allowed():
            return None
        contexts = [caller] if caller is not None else []
        known = {one.trace_id for one in contexts}
        for body in bodies[:_BODIES_MAX]:
            context = of_body(body)
            if context is not None and context.trace_id not in known:
                known.add(context.trace_id)
                contexts.append(context)
        return OpenSpan(self, name, queue, count, contexts)

    def finished(self, span: Span) -> None:
        if len(self.waiting) < WAITING_MAX:
            self.waiting.append(span)
        else:
            self.dropped += 1

    def take(self) -> list[Span]:
        """What is to be sent."""
        waiting, self.waiting = self.waiting, []
        return waiting

    def _allowed(self) -> bool:
        second = self.now_ns() // _NS
        if second != self._second:
            self._second = second
            self._begun = 0
        self._begun += 1
        return self._begun <= SPANS_PER_SECOND_MAX
