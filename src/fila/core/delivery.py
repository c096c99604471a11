"""The delivery pass: fair order across keys, tokens taken, leases made, consumers in turn.

Each delivered message gets the exact split of its wait. Time since it became ready is cut up by
clocks that only move at state changes, so the split is O(1) and adds up to the nanosecond:

    busy          nobody had credit although consumers were connected (`busy.py`): the part that
                  fell to messages in flight of its own key, and of other keys
    no consumer   the queue's stall clock ran otherwise: none was connected, or all were held
    throttled     it did not, and the lane stood parked on a bucket
    capped        or at a cap: as many of its key as may be were in flight
    others' turn  neither, and the message headed its key's oldest lane: other keys were served
    paused        the queue's pauses, taken out of "no consumer", and the key's, out of what is left
    own backlog   the rest: older messages of its own key stood before it

A message that was stored with a delay has no clock readings of the moment it became ready; until
it heads its lane its time counts as own backlog.
"""

from __future__ import annotations

from typing import Final

from fila.core import expiries, quarantining, rows, ttl
from fila.core.bucket import first_short, whole_tokens
from fila.core.busy import FRACTION
from fila.core.byte_cost import begin_visit, charge
from fila.core.caps import account, leased_more, room, wake_capped
from fila.core.effect import Delivery
from fila.core.eligible import eligible_in, with_others
from fila.core.entry import BODY, ENTRY_BYTES, ID_AT, KEY, STALL_NS, STAMP, Entry
from fila.core.extending import keep
from fila.core.lane import LANE_DELAYED, LANE_EMPTY, LANE_READY, Lane
from fila.core.lease import Consumer, Lease
from fila.core.pending import complete, page
from fila.core.queue import Queue
from fila.core.readiness import leave_line, make_unready, park, pass_over, wake_waiters
from fila.core.row_batch import PUT_LEASE
from fila.core.state import MS, State
from fila.core.trail import NOT_KNOWN, SPAN_DELIVERED
from fila.core.waits import Waits

ALL_EXPIRED: Final = -1
PAGE_WORK: Final = 8  # to read a page costs as much as so many messages


def deliver(state: State) -> bool:
    """Hand out what may go. Returns whether a pass was cut short, so that more may go at once."""
    state.pass_left = state.settings.pass_messages
    state.pass_bytes_left = state.settings.pass_bytes
    wakings = state.settings.bucket_lanes
    while True:
        # All lanes that the tokens of this moment may reach take part in the pass: the ring shares
        # the tokens out by weight. What they leave (another bucket was short, or credit ran out)
        # goes to the next in line.
        for bucket in list(state.waiting):
            if wakings <= 0:
                break
            del state.waiting[bucket]
            wakings -= 1 + wake_waiters(state, bucket)
        for cap in list(state.freed):
            if wakings <= 0:
                break
            del state.freed[cap]
            wakings -= 1 + wake_capped(state, cap)
        while state.touched:
            queue = state.touched.popleft()
            queue.touched = False
            if not deliver_queue(state, queue):
                state.touch_queue(queue)
                return True
            state.pass_left -= 1
        if not state.waiting and not state.freed:
            return False
        if wakings <= 0:
            return True


def deliver_queue(state: State, queue: Queue) -> bool:
    """One pass over one queue. False when the limit of all queues' passes cut it short."""
    settings = state.settings
    ready = queue.ready
    share = in_round = 0
    while ready and queue.ring.head is not None:
        if state.pass_left <= 0 or state.pass_bytes_left <= 0:
            return False
        if in_round <= 0:
            # With little to hand out every consumer gets its share of it.
            in_round = len(ready)
            share = -(-queue.pending // in_round)
        in_round -= 1
        consumer = next(iter(ready))
        bytes_before = consumer.credit_bytes
        want = min(consumer.credit_messages, settings.delivery_messages, state.pass_left, share)
        taken = fill(state, queue, consumer, want)
        if taken == ALL_EXPIRED:
            return True  # a step of the next turn makes room
        if taken == 0:
            continue  # all lanes wait for tokens, or so many that the pass is over
        state.pass_left -= taken
        state.pass_bytes_left -= bytes_before - consumer.credit_bytes
        if consumer.credit_messages <= 0 or consumer.credit_bytes <= 0:
            queue.drop_ready(consumer, state.now)
        else:
            ready.move_to_end(consumer)
    return True


def fill(state: State, queue: Queue, consumer: Consumer, want: int) -> int:
    """Give one consumer up to `want` messages under one lease. Returns how many it got, or
    ALL_EXPIRED if nothing may go because what is next of every key is expired."""
    now = state.now
    stall_ns = queue.stall_at(now)
    active_ns = now - stall_ns
    quantum = state.settings.quantum
    bytes_left = min(consumer.credit_bytes, state.settings.delivery_bytes)
    bytes_start = bytes_left
    ring = queue.ring
    busy_ns = queue.busy.busy_ns  # somebody has credit: it stands still
    integral = queue.busy.integral
    loaded_ns = queue.loaded_ns
    by_bytes = ring.by_bytes
    entries: list[Entry] = []
    lanes: list[Lane] = []
    waits: list[Waits] = []
    number = queue.next_lease
    lease = Lease(number, queue, consumer, now + queue.visibility_ms * MS, [])
    leased = queue.leased
    service = queue.service
    if now >= service.rolls_ns:
        service.roll(now, queue.counters.delivered + queue.pending)
    mark = service.mark
    windows = state.windows
    pauses = queue.pauses
    capped = queue.max_in_flight_per_key
    bytes_before = bytes_keep = 0  # of bytes_left: when a visit begins, and when it is over
    visits = 0
    ages = queue.aging is not None
    weighs = queue.weighed_since
    counted = ages or weighs
    passed_over = 0
    trail = state.events if state.journal else None
    new_tuple = tuple.__new__  # a third of the cost of calling Waits
    while want > 0 and bytes_left > 0:
        key = ring.head
        if key is None:
            break
        lane = key.lane
        assert lane is not None
        deficit = key.deficit
        if by_bytes:
            if deficit <= 0:
                if not begin_visit(state, lane):
                    passed_over = 0
                    if state.pass_left <= 0:
                        break
                    continue
                deficit = key.deficit
            run = want
            bytes_before = bytes_left
            bytes_keep = bytes_left - deficit if deficit < bytes_left else 0
        else:
            if deficit <= 0:
                key.granted = deficit = key.weight * quantum
            run = deficit if deficit < want else want
        buckets = lane.buckets
        if buckets:
            run = whole_tokens(buckets, run, now)
            if run == 0:
                key.deficit = deficit
                short = first_short(buckets)
                assert short is not None
                park(state, lane, short)
                passed_over = 0
                state.pass_left -= 1
                if state.pass_left <= 0:
                    if deficit == key.granted:
                        key.deficit = key.carried  # a visit begins with its first message
                    break
                continue
        if lane.caps or capped:
            key.deficit = deficit
            run = room(state, lane, run)
            if run == 0:
                passed_over = 0
                state.pass_left -= 1
                if state.pass_left <= 0:
                    if deficit == key.granted:
                        key.deficit = key.carried  # a visit begins with its first message
                    break
                continue
        if key.others:
            run = 1  # which lane's head is the oldest may change with every message
        window = lane.window
        if not window:
            want -= PAGE_WORK
            state.pass_left -= PAGE_WORK
            page(state, lane)  # the first look since a restart, or since it was cut
            window = lane.window
            if not window:
                make_unready(state, lane, LANE_EMPTY)
                quarantining.lacks(state, lane)
                passed_over = 0
                continue
        if ages and ttl.is_expired((entry := complete(state, window[0]))[BODY], now):
            expiries.waits(state, lane, entry)  # also one whose row was lost
            pass_over(state, key)
            ring.head = key.after  # a step of the next turn takes it away
            passed_over += 1
            state.pass_left -= 1 + len(key.others)
            if passed_over > ring.keys or state.pass_left <= 0:
                break
            continue
        passed_over = 0
        throttled_ns = lane.throttled_ns
        if key.held_then != integral:
            key.count_held(integral)
        held_ns = key.held_clock >> FRACTION
        turn = active_ns - lane.head_active_ns
        freed = 0
        taken = 0
        lane_state = LANE_READY
        while True:
            entry = window.popleft()
            (
                message_key, stamp, _, _, _, since, stall_then, throttled_then, body, busy_then,
                held_then,
            ) = entry  # fmt: skip
            size = len(body)
            freed += size
            if size == 0:
                entry = complete(state, entry)
                size = len(entry[BODY])
                freed -= ENTRY_BYTES
            if stall_then >= 0:
                no_consumer = stall_ns - stall_then
                throttled = throttled_ns - throttled_then
                own = now - since - no_consumer - throttled - turn
                busy, held = busy_ns, held_ns
                if since > loaded_ns:
                    busy -= busy_then
                    held -= held_then
                if busy:
                    if held > busy:
                        held = busy  # fractions of a nanosecond
                    wait = (0, throttled, no_consumer - busy, own, turn, 0, held, busy - held, 0)
                else:
                    wait = (0, throttled, no_consumer, own, turn, 0, 0, 0, 0)
            else:
                no_consumer = stall_ns - lane.head_stall_ns
                throttled = throttled_ns - lane.head_throttled_ns
                own = now - stamp - no_consumer - throttled - turn
                busy = busy_ns - lane.head_busy_ns
                held = min(held_ns - lane.head_held_ns, busy)
                wait = (
                    stamp - since, throttled, no_consumer - busy,
                    own, turn, 0, held, busy - held, 0,
                )  # fmt: skip
            if counted:
                if ages:
                    expiries.waits_no_more(state, queue, entry)
                if weighs:
                    lane.lighten(entry)
            waits.append(new_tuple(Waits, wait))
            entries.append(entry)
            lanes.append(lane)
            leased[message_key[ID_AT:]] = (lease, lane, message_key, size)
            taken += 1
            bytes_left -= size
            if not window:
                if lane.horizon:
                    # All of the window is gone; what a page brings is counted from here on.
                    windows.bytes -= lane.window_bytes
                    lane.window_bytes = 0
                    freed = -ENTRY_BYTES * taken
                    want -= PAGE_WORK
                    state.pass_left -= PAGE_WORK
                    page(state, lane)
                    window = lane.window
                if not window:
                    lane_state = LANE_EMPTY
                    break
            # The next one heads the lane from now on.
            turn = 0
            head = window[0]
            if head[STALL_NS] < 0:
                lane.head_stall_ns = stall_ns
                lane.head_throttled_ns = throttled_ns
                lane.head_busy_ns = busy_ns
                lane.head_held_ns = held_ns
                if head[STAMP] > now:
                    lane_state = LANE_DELAYED
                    break
            if taken >= run or bytes_left <= bytes_keep:
                break
            if ages and (not head[BODY] or ttl.is_expired(head[BODY], now)):
                break
        if message_key > lane.delivered:
            lane.delivered = message_key
        freed += ENTRY_BYTES * taken
        lane.window_bytes -= freed
        windows.bytes -= freed
        lane.head_active_ns = active_ns
        lane.pending -= taken
        lane.leased += taken
        key.leased += taken
        key.pending -= taken
        if by_bytes:
            deficit -= charge(ring, key, bytes_before - bytes_left)
        else:
            ring.clock += taken / ring.weight
            deficit -= taken
        key.deficit = deficit
        visits += 1
        if key.mark != mark:
            service.note(key, key.served + key.pending + taken, now)
        key.served += taken
        want -= taken
        if not lane.touched:
            state.touch(lane)
        if buckets:
            for bucket in buckets:
                bucket.tokens -= taken
                bucket.passed += taken
                state.use_bucket(bucket)
            if deficit <= 0:
                leave_line(lane)  # its visit is over: next time it waits at the end
        if lane.caps:
            leased_more(lane, taken)
            if deficit <= 0:
                leave_line(lane)
        if lane.cap_clock is not None:
            account(lane, waits, taken)
        if pauses is not None:
            pauses.account(key.name, entries, waits, taken, now, stall_ns)
        if trail is not None:
            if len(entries) == taken:
                trail.begin(SPAN_DELIVERED, now, consumer.id)
            ring.handed_out += taken
            # What the lane still has waits for its time, unless it stays ready.
            ready = lane.pending if lane_state == LANE_READY else 0
            if ready and lane.later is not None:
                ready = eligible_in(lane, now)
            if key.others:
                ready = with_others(ready, key, now)
            if ready < 0:
                ready = NOT_KNOWN
            # The key itself still stands in the ring.
            trail.visits += (
                taken, key.pending, ready, ring.weight, ring.keys, ring.handed_out,
            )  # fmt: skip
            trail.delivered_rows += taken
        if lane_state == LANE_READY:
            if key.others:
                key.reorder(active_ns)
            if deficit <= 0:
                ring.head = key.after
        else:
            if lane.pending and lane_state == LANE_EMPTY:
                quarantining.lacks(state, lane)
            if key.pending == 0:
                queue.keys_pending -= 1
            if deficit <= 0 and key.others:
                ring.head = key.after  # the visit ended with this lane's last message
            make_unready(state, lane, lane_state)
    if not entries:
        return ALL_EXPIRED if passed_over > ring.keys else 0
    if now >= queue.notes_ns:
        windows.note(queue, now)
    ring.visits += visits
    taken = len(entries)
    lease.keys = [entry[KEY] for entry in entries]
    lease.remaining = taken
    if trail is not None:
        trail.delivered(lease.keys, entries, lanes, waits)
    queue.next_lease = number + 1
    keep(state, queue, lease)
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
    state.deliveries.append(Delivery(consumer, number, now, entries, lanes, waits))
    return taken
