"""A lease batch: messages leased together under a name, so that who asks again gets the same.

Owns the names and what a queue remembers of a batch, in memory and in its row. How batches are
filled and end is in `leasing.py`.

A batch is *filling* while its consumer takes turns with the others for its messages, and *open*
from then on until the last of its leases has ended. Its leases are its own: they stand in its
`leases`, not among the queue's, and end with the batch's time.

`s/7` and `s/7/anything` are batches number 7 of the stream `s`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fila.core import rows
from fila.core.batch import DELETE_STATE, PUT_STATE
from fila.core.effect import BatchLeased
from fila.core.lane import Entry, Lane

if TYPE_CHECKING:
    from fila.core.consumer import Consumer
    from fila.core.lease import Lease
    from fila.core.queue import Queue
    from fila.core.state import State

NAME_BYTES_MAX: Final = 255


class LeaseBatch:
    __slots__ = (
        "armed_ns",
        "consumer",
        "count_attempt",
        "entries",
        "expires_ns",
        "lanes",
        "leased_ns",
        "leases",
        "name",
        "queue",
        "requests",
        "visibility_ms",
        "wait_until_ns",
    )

    def __init__(self, name: str, queue: Queue, count_attempt: bool, visibility_ms: int) -> None:
        self.name = name
        self.queue = queue
        self.count_attempt = count_attempt  # whether running out is a failure
        self.visibility_ms = visibility_ms
        self.leases: dict[int, Lease] = {}
        self.leased_ns = 0
        self.expires_ns = 0
        self.armed_ns = 0
        # Only while it is filling.
        self.consumer: Consumer | None = None
        self.wait_until_ns = 0
        self.requests: list[int] = []  # who waits for it
        self.entries: list[Entry] = []
        self.lanes: list[Lane] = []

    def messages(self) -> int:
        return sum([lease.remaining for lease in self.leases.values()])

    def first_leases(self, messages_max: int) -> list[Lease]:
        """Its first leases, until they hold so many messages."""
        found = []
        messages = 0
        for lease in self.leases.values():
            if messages >= messages_max:
                break
            found.append(lease)
            messages += lease.remaining
        return found


def stream_of(name: str) -> tuple[str, int] | None:
    """The stream and number a batch name tells; None if it is no stream's."""
    stream, slash, rest = name.partition("/")
    digits = rest.partition("/")[0]
    if not slash or not digits.isascii() or not digits.isdigit() or len(digits) > 19:
        return None
    return stream, int(digits)


def chosen(queue: Queue, name: str, below: int | None) -> list[LeaseBatch]:
    """The open batch of this name, or those of the stream `name` with numbers less than `below`."""
    if below is None:
        batch = queue.batches.get(name)
        return [batch] if batch is not None and batch.consumer is None else []
    found = []
    for batch in queue.batches.values():
        place = stream_of(batch.name)
        if place is not None and place[0] == name and place[1] < below and batch.consumer is None:
            found.append(batch)
    found.sort(key=lambda batch: batch.name)  # the same order before and after a restart
    return found


def name_fault(name: str) -> str | None:
    """What is wrong with a batch name, if anything."""
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        return "it is not valid UTF-8"
    if not 1 <= size <= NAME_BYTES_MAX:
        return f"it has {size} bytes; use 1 to {NAME_BYTES_MAX}"
    if any(ord(char) < 32 or 127 <= ord(char) < 160 for char in name):
        return "it holds a control character"
    return None


def put_row(state: State, batch: LeaseBatch) -> None:
    """Make membership and time durable."""
    key = rows.open_batch_key(batch.queue.number, batch.name)
    value = rows.open_batch_row(
        rows.OpenBatchRow(
            batch.leased_ns,
            batch.expires_ns,
            batch.visibility_ms,
            batch.count_attempt,
            list(batch.leases),
        )
    )
    state.ops(batch.queue.group).append((PUT_STATE, key, value))


def end_lease(state: State, batch: LeaseBatch, lease: Lease) -> None:
    """One of its leases has ended; with the last one the batch goes."""
    del batch.leases[lease.number]
    if batch.leases or batch.consumer is not None:
        # Its row must not name the lease any more: after a restart numbers are given out again.
        put_row(state, batch)
        return
    state.deadlines.disarm(batch)
    state.due_batches.pop(batch, None)
    forget(state, batch)


def forget(state: State, batch: LeaseBatch) -> None:
    """Nothing is leased under this name any more."""
    queue = batch.queue
    del queue.batches[batch.name]
    if batch.leased_ns:
        key = rows.open_batch_key(queue.number, batch.name)
        state.ops(queue.group).append((DELETE_STATE, key, b""))


def forget_queue(state: State, queue: Queue) -> None:
    """The queue goes: so do its batches, and who waits for one is told."""
    for batch in queue.batches.values():
        state.deadlines.disarm(batch)
        state.due_batches.pop(batch, None)
        state.filling.pop(batch, None)
        for request in batch.requests:
            gone = BatchLeased(request, queue.name, 0, 0, False, 0, [], [], [], True)
            state.batches_leased.append(gone)
    queue.batches.clear()
