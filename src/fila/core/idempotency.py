"""Idempotency keys: a queue remembers the newest ones, so that a repeated enqueue stores nothing.

Owns the window of keys a queue knows: bounded by count and by age, kept in the store alone, so that
a million keys cost no memory and a restart reads none of them. A queue that never sees a key pays
nothing.

Keys have numbers in the order they came. A key counts while its number is among the newest and its
age within the limit, whatever rows are still there; rows before `head` are gone.
"""

from __future__ import annotations

from fila.core import key_rows, rows
from fila.core.command import EnqueueKeyed
from fila.core.queue import KnownKeys, Queue
from fila.core.row_batch import DELETE, PUT
from fila.core.state import MS, State

PUT_KEY = PUT | rows.IDEMPOTENCY
DELETE_KEY = DELETE | rows.IDEMPOTENCY

# What is known of a key: its number, when it came, and the id of its message.
Known = tuple[int, int, bytes]


def sort_out(state: State, queue: Queue, command: EnqueueKeyed) -> list[tuple[bytes, bool]]:
    """For each message the id it has, and whether it is a duplicate that must not be stored.

    Remembers the keys of those that are not.
    """
    window = queue.known_keys
    if window is None:
        window = queue.known_keys = _read_window(state, queue)
    now = state.now
    prefix = rows.queue_prefix(queue.number)
    ops = state.ops(queue.group)
    results = []
    added = 0
    row_keys = [key_rows.KNOWN_KEY_PREFIX + prefix + key if key else b"" for key in command.keys]
    stored = _stored(state, row_keys)
    for id, key, row_key, value in zip(command.ids, command.keys, row_keys, stored, strict=True):
        if not key:
            results.append((id, False))
            continue
        known = state.fresh_keys.get(row_key)
        if known is None and value is not None:
            known = key_rows.read_known_key(value)
        if known is not None and _counts(state, window, known):
            results.append((known[2], True))
            continue
        number = window.next
        window.next = number + 1
        if number == window.head:
            window.oldest_ns = now
        state.fresh_keys[row_key] = (number, now, id)
        ops.append((PUT_KEY, row_key, key_rows.known_key_row(number, now, id)))
        ops.append((PUT_KEY, key_rows.key_order_key(queue.number, number), key))
        results.append((id, False))
        added += 1
    if added:
        _trim(state, queue, window, 2 * added + 8)
        ops.append(
            (
                PUT_KEY,
                key_rows.KEY_WINDOW_PREFIX + prefix,
                key_rows.key_window_row(window.head, window.next),
            )
        )
    return results


def _counts(state: State, window: KnownKeys, known: Known) -> bool:
    settings = state.settings
    if window.next - known[0] > settings.idempotency_keys_max:
        return False
    return state.now - known[1] < settings.idempotency_ms * MS


def _stored(state: State, row_keys: list[bytes]) -> list[bytes | None]:
    """What the store says of all of them at once: one read each would cost twice as much."""
    if len(row_keys) == 1:
        return [state.reader.get(rows.IDEMPOTENCY, row_keys[0])]
    return state.reader.get_many(rows.IDEMPOTENCY, row_keys)


def _known(state: State, row_key: bytes) -> Known | None:
    fresh = state.fresh_keys.get(row_key)
    if fresh is not None:
        return fresh
    value = state.reader.get(rows.IDEMPOTENCY, row_key)
    return key_rows.read_known_key(value) if value is not None else None


def _read_window(state: State, queue: Queue) -> KnownKeys:
    key = key_rows.KEY_WINDOW_PREFIX + rows.queue_prefix(queue.number)
    value = state.reader.get(rows.IDEMPOTENCY, key)
    return KnownKeys(*key_rows.read_key_window(value)) if value is not None else KnownKeys(0, 0)


def _trim(state: State, queue: Queue, window: KnownKeys, rows_max: int) -> None:
    """Let the oldest keys go, a few more than came. Rows of this very turn go later."""
    settings = state.settings
    window_ns = settings.idempotency_ms * MS
    if window.next - window.head <= settings.idempotency_keys_max and (
        window.oldest_ns and state.now - window.oldest_ns < window_ns
    ):
        return
    start = key_rows.key_order_key(queue.number, window.head)
    end = key_rows.key_order_key(queue.number, window.next)
    prefix = rows.queue_prefix(queue.number)
    ops = state.ops(queue.group)
    for order_key, key in state.reader.scan(rows.IDEMPOTENCY, start, end, rows_max, 1 << 20):
        number = key_rows.key_order_number(order_key)
        row_key = key_rows.KNOWN_KEY_PREFIX + prefix + key
        known = _known(state, row_key)
        assert known is not None, f"idempotency key number {number} has no row"
        if known[0] == number:
            if window.next - number <= settings.idempotency_keys_max and (
                state.now - known[1] < window_ns
            ):
                window.oldest_ns = known[1]
                return
            ops.append((DELETE_KEY, row_key, b""))
        # Else the key came again after its time, under a newer number.
        ops.append((DELETE_KEY, order_key, b""))
        window.head = number + 1
    window.oldest_ns = 0
