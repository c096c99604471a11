"""W3C trace context: the `traceparent` that goes out with messages.

Owns where it comes from: the block a caller is in (`trace_context`), or the client's own provider.
What came with a message is `message.traceparent`. Knows no tracing system.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

HEADER: Final = "traceparent"
Provider = Callable[[], str | None]

_current: Final[ContextVar[str | None]] = ContextVar("fila_traceparent", default=None)


@contextmanager
def trace_context(traceparent: str | None) -> Iterator[None]:
    """Messages that are enqueued inside carry this `traceparent`, unless they have one already.

    It holds for this thread or task and for the tasks it starts; None ends an outer one's hold.
    """
    token = _current.set(traceparent)
    try:
        yield
    finally:
        _current.reset(token)


def present(provider: Provider | None) -> str | None:
    """The block's, else what the client's provider says."""
    return _current.get() or (provider() if provider is not None else None)


def traced(headers: Mapping[str, str] | None, traceparent: str | None) -> Mapping[str, str] | None:
    if traceparent is None:
        return headers
    return {HEADER: traceparent, **(headers or {})}
