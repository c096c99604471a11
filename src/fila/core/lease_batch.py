"""The names of lease batches and their rows: which one is meant, and how it is made durable.

What a batch is stands in `lease.py`; how batches are filled and end, in `leasing.py`.

`s/7` and `s/7/anything` are batches number 7 of the stream `s`.
"""

from __future__ import annotations

from typing import Final

from fila.core import batch_rows
from fila.core.effect import BatchLeased
from fila.core.lease import Lease, LeaseBatch
from fila.core.queue import Queue
from fila.core.rejection import Rejection
from fila.core.row_batch import DELETE_STATE, PUT_STATE
from fila.core.state import State

NAME_BYTES_MAX: Final = 255


def chosen(queue: Queue, name: str, below: int | None, before: int) -> list[LeaseBatch]:
    """The open batch of this name, or those of the stream `name` with numbers less than `below`;
    of these, unless `before` is 0, such as were opened before."""
    if below is None:
        batch = queue.lease_batches.get(name)
        found = [batch] if batch is not None and batch.consumer is None else []
    else:
        found = []
        for batch in queue.lease_batches.values():
            numbered = batch.numbered
            if numbered is None or batch.consumer is not None:
                continue
            if numbered[0] == name and numbered[1] < below:
                found.append(batch)
    if before:
        found = [batch for batch in found if batch.opened < before]
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
    key = batch_rows.open_batch_key(batch.queue.number, batch.name)
    value = batch_rows.open_batch_row(
        batch_rows.OpenBatchRow(
            batch.leased_ns,
            batch.expires_ns,
            batch.visibility_ms,
            batch.count_attempt,
            list(batch.leases),
        )
    )
    state.ops(batch.queue.group).append((PUT_STATE, key, value))


def put_parted(state: State) -> None:
    """Rows of batches some of whose leases ended with this turn are written once."""
    for batch in state.parted_batches:
        if batch.leases and state.queues.get(batch.queue.name) is batch.queue:
            put_row(state, batch)
    state.parted_batches.clear()


def open_batch(state: State, batch: LeaseBatch) -> None:
    """It is complete."""
    state.batches_opened += 1
    batch.opened = state.batches_opened


def delete_row(state: State, batch: LeaseBatch) -> None:
    """It holds no leases: nothing of it is stored until it does again."""
    if batch.leased_ns:
        batch.leased_ns = 0
        key = batch_rows.open_batch_key(batch.queue.number, batch.name)
        state.ops(batch.queue.group).append((DELETE_STATE, key, b""))


def end_lease(state: State, batch: LeaseBatch, lease: Lease) -> None:
    """One of its leases has ended; with the last one the batch goes."""
    del batch.leases[lease.number]
    if batch.leases:
        # Its row must not name the lease any more: after a restart numbers are given out again.
        state.parted_batches[batch] = None
        return
    if batch.consumer is not None:
        delete_row(state, batch)  # it is still being filled, and would be found empty
        return
    state.deadlines.disarm(batch)
    state.due_lease_batches.pop(batch, None)
    forget(state, batch)


def forget(state: State, batch: LeaseBatch) -> None:
    """Nothing is leased under this name any more."""
    del batch.queue.lease_batches[batch.name]
    batch.queue.watch(state.now)
    delete_row(state, batch)


def forget_batches(state: State, queue: Queue, why: Rejection) -> None:
    """The queue goes: so do its batches, and who waits for one is told why."""
    for batch in queue.lease_batches.values():
        state.deadlines.disarm(batch)
        state.due_lease_batches.pop(batch, None)
        state.filling.pop(batch, None)
        state.patient.pop(batch, None)
        for request in batch.requests:
            gone = BatchLeased(request, queue.name, 0, 0, False, 0, [], [], [], why)
            state.batches_leased.append(gone)
    queue.lease_batches.clear()
