"""A plain FIFO in the core's place of `fill`: the same messages from the same lanes in the order in
which they arrived, under the same leases, with the same waits and counts. Only the choice of what
goes next differs, so the difference to the core's own `fill` is the price of fair order.

It is as cheap as a FIFO can be: the order of arrival is one deque of lanes, extended by lists that
were made beforehand. Weights, buckets and delays do not come up.
"""

from __future__ import annotations

from collections import deque

from bench.lifecycle import Lifecycle
from fila.core import delivery, rows
from fila.core.batch import PUT_LEASE
from fila.core.bucket import whole_tokens
from fila.core.command import Enqueue
from fila.core.consumer import Consumer
from fila.core.effect import Delivery, Waits
from fila.core.lane import BODY, DELAYED, EMPTY, ENTRY_BYTES, KEY, READY, STALL, STAMP, Entry, Lane
from fila.core.lease import Lease
from fila.core.queue import Queue
from fila.core.rows import ID_AT
from fila.core.settings import Settings
from fila.core.state import MS, State
from fila.storage.contract import Store

_arrived: dict[Queue, deque[Lane]] = {}  # by queue: the lane of each pending message, oldest first


class FifoLifecycle(Lifecycle):
    def __init__(
        self, store: Store, keys: int, backlog: int, settings: Settings | None = None
    ) -> None:
        self._order: deque[Lane] = deque()
        self._prepared: dict[int, list[Lane]] = {}
        super().__init__(store, keys, backlog, settings)
        _arrived[self.machine.state.queues["q"]] = self._order

    def enqueue(self, count: int) -> Enqueue:
        command = super().enqueue(count)
        self._prepared[id(command)] = [self.lane_of[one[0]] for one in command.assignments]
        return command

    def arrived(self, command: Enqueue) -> None:
        self._order.extend(self._prepared.pop(id(command)))

    def turns(self, count: int) -> int:
        fair = delivery.fill
        delivery.fill = fill
        try:
            return super().turns(count)
        finally:
            delivery.fill = fair


def fill(state: State, queue: Queue, consumer: Consumer, want: int) -> int:
    """`fila.core.delivery.fill` in order of arrival."""
    now = state.now
    stall_ns = queue.stall_at(now)
    active_ns = now - stall_ns
    bytes_left = min(consumer.credit_bytes, state.settings.delivery_bytes)
    bytes_start = bytes_left
    arrived = _arrived[queue]
    entries: list[Entry] = []
    lanes: list[Lane] = []
    waits: list[Waits] = []
    number = queue.next_lease
    lease = Lease(number, consumer, now + queue.visibility_ms * MS, [])
    leased = queue.leased
    new_tuple = tuple.__new__
    while want > 0 and bytes_left > 0 and arrived:
        lane = arrived.popleft()
        key = lane.key
        run = 1  # the next message stands in another lane, for all a FIFO knows
        buckets = lane.buckets
        if buckets:
            run = whole_tokens(buckets, run, now)
            assert run, "the bench sets no limits"
        window = lane.window
        if not window:
            state.fill_window(lane)
            assert window, "a lane without messages is not in the line"
        throttled_ns = lane.throttled_ns
        turn = active_ns - lane.head_active_ns
        freed = 0
        taken = 0
        lane_state = READY
        while True:
            entry = window.popleft()
            message_key, stamp, _, _, _, since, stall_then, throttled_then, body = entry
            size = len(body)
            freed += size
            if size == 0:
                entry = state.with_body(entry)
                size = len(entry[BODY])
            if stall_then >= 0:
                no_consumer = stall_ns - stall_then
                throttled = throttled_ns - throttled_then
                own = now - since - no_consumer - throttled - turn
                wait = (0, throttled, no_consumer, own, turn)
            else:
                no_consumer = stall_ns - lane.head_stall_ns
                throttled = throttled_ns - lane.head_throttled_ns
                own = now - stamp - no_consumer - throttled - turn
                wait = (stamp - since, throttled, no_consumer, own, turn)
            waits.append(new_tuple(Waits, wait))
            entries.append(entry)
            lanes.append(lane)
            leased[message_key[ID_AT:]] = (lease, lane, message_key, size)
            taken += 1
            bytes_left -= size
            if not window:
                if lane.horizon:
                    state.fill_window(lane)
                if not window:
                    lane_state = EMPTY
                    break
            turn = 0
            head = window[0]
            if head[STALL] < 0:
                lane.head_stall_ns = stall_ns
                lane.head_throttled_ns = throttled_ns
                if head[STAMP] > now:
                    lane_state = DELAYED
                    break
            if taken >= run or bytes_left <= 0:
                break
        if message_key > lane.delivered:
            lane.delivered = message_key
        freed += ENTRY_BYTES * taken
        lane.window_bytes -= freed
        state.window_bytes -= freed
        lane.head_active_ns = active_ns
        lane.pending -= taken
        lane.leased += taken
        key.pending -= taken
        want -= taken
        if not lane.touched:
            state.touch(lane)
        if buckets:
            for bucket in buckets:
                bucket.tokens -= taken
                state.use_bucket(bucket)
        assert not state.journal, "the bench keeps no journal"
        if lane_state != READY:
            if key.pending == 0:
                queue.keys_pending -= 1
            state.make_unready(lane, lane_state)
    if not entries:
        return 0
    taken = len(entries)
    lease.keys = [entry[KEY] for entry in entries]
    lease.remaining = taken
    queue.next_lease = number + 1
    queue.leases[number] = lease
    consumer.leases[number] = lease
    queue.pending -= taken
    queue.counters.delivered += taken
    consumer.credit_messages -= taken
    consumer.credit_bytes -= bytes_start - bytes_left
    state.ops(queue.group).append(
        (
            PUT_LEASE,
            rows.lease_key(queue.number, number),
            rows.lease_row(lease.expires_ns, now, consumer.id, lease.keys),
        )
    )
    if queue.armed_ns == 0 and queue not in state.due:
        state.deadlines.arm(queue, lease.expires_ns)
    state.deliveries.append(Delivery(consumer, number, now, entries, lanes, waits))
    return taken
