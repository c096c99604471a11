"""Browsing: reading a queue's messages without taking any.

Owns one `Call` per operation and what it gives back, shared by both shells. Never touches sockets
or state.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from fila.client.calls import Call
from fila.client.message import Message
from fila.wire import bodies as b
from fila.wire import browse_codec
from fila.wire.bodies import BrowseRange
from fila.wire.forms import ALL_STATES, ARROW, ARROW_HEADS, DELAYED, LEASED, MESSAGES, READY

STATES: Final = {"ready": READY, "delayed": DELAYED, "leased": LEASED}
PAGE_MAX: Final = 65_536  # messages to ask for at most; the broker gives what it gives
_STATE_NAMES: Final = {bit: name for name, bit in STATES.items()}


class Snapshot(NamedTuple):
    """A queue as it was at one moment, to be read in `ranges` until it expires."""

    token: str
    expires_at_ms: int
    messages: int
    ranges: tuple[BrowseRange, ...]


class Page(NamedTuple):
    """`next` is where the following page starts; empty when the range is read."""

    message_count: int
    next: bytes
    messages: "list[BrowsedMessage]"
    arrow: bytes


class BrowsedMessage(Message):
    """A message seen by browsing: it is not leased to anybody by that."""

    __slots__ = ("_state",)

    def __init__(self, seen: browse_codec.SeenItem) -> None:
        super().__init__(seen[:9])
        self._state = seen[9]

    @property
    def state(self) -> str:
        """ready, delayed or leased, when the snapshot was taken."""
        return _STATE_NAMES.get(self._state, str(self._state))

    @property
    def ready_at_ms(self) -> int:
        """Since or from when it may be delivered."""
        return self._received[8]

    @property
    def leased_at_ms(self) -> int:
        return 0


def browse_open(queue: str, fairness_key: str | None, parts: int, ttl_ms: int) -> Call[Snapshot]:
    return Call(
        f'browse queue "{queue}"',
        b.Browse(queue, fairness_key, parts, ttl_ms),
        b.BrowseResult,
        lambda r: Snapshot(r.snapshot, r.expires_at_ms, r.messages, r.ranges),
    )


def browse_page(
    token: str,
    start: bytes,
    end: bytes,
    states: Iterable[str],
    max_messages: int,
    max_bytes: int,
    arrow: bool,
    bodies: bool = True,
) -> Call[Page]:
    def parse(reply: b.BrowsePageResult) -> Page:
        if reply.form in (ARROW, ARROW_HEADS):
            return Page(reply.messages, reply.next, [], reply.body)
        messages = [BrowsedMessage(seen) for seen in browse_codec.decode_browsed(reply.body)]
        return Page(reply.messages, reply.next, messages, b"")

    form = (ARROW if bodies else ARROW_HEADS) if arrow else MESSAGES
    body = b.BrowsePage(token, start, end, state_bits(states), max_messages, max_bytes, form)
    return Call("read a page", body, b.BrowsePageResult, parse, repeatable=True)


def browse_close(token: str) -> Call[None]:
    return Call("close a snapshot", b.BrowseClose(token), b.BrowseCloseResult, lambda r: None)


def state_bits(states: Iterable[str]) -> int:
    bits = 0
    for name in states:
        if name not in STATES:
            raise ValueError(f'state must be "ready", "delayed" or "leased", not {name!r}')
        bits |= STATES[name]
    return bits or ALL_STATES
