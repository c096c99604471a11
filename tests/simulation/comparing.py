"""The machine's memory against the model. Here, and in disk.py, the simulation looks inside."""

from __future__ import annotations

from fila.core import rows
from fila.core.entry import BODY, ENTRY_BYTES, KEY
from fila.core.explain import explain
from fila.core.fairness import FairnessKey
from fila.core.lane import LANE_DELAYED, LANE_EMPTY, LANE_PARKED, LANE_PAUSED, LANE_READY, Lane
from fila.core.ledger import ROWS_MAX
from fila.core.machine import Machine
from fila.core.queue import Queue
from fila.core.rejection import Rejection
from fila.core.settings import Settings
from fila.core.snapshot import snapshot
from fila.core.state import State
from fila.core.stats import QueueStats, stats, summaries

from . import caps, model, overrides, rooms, updates
from .auditor import Auditor
from .disk import batch_numbers, lease_numbers, level_of
from .tokens import TOLERANCE
from .turn import Violation


def check_counts(auditor: Auditor, machine: Machine, idle_at_start: int) -> None:
    """What is cheap enough for every turn."""
    state = machine.state
    _same("queues", state.queues.keys(), auditor.served().keys())
    for name, expected in auditor.served().items():
        queue = state.queues[name]
        leases = len(queue.leases) + len(queue.extended)
        seen = (queue.pending, len(queue.leased), queue.keys_pending, leases)
        _same(
            f"{name}: pending, leased, keys_pending, leases",
            seen,
            (expected.pending, len(expected.leased), expected.keys_pending, len(expected.leases)),
        )
    if len(state.idle) > max(state.settings.idle_lanes, 1, idle_at_start):
        raise Violation("bounded memory", f"{len(state.idle)} idle lanes")
    if state.windows.unflushed or state.windows.fresh:
        raise Violation("bounded memory", "bodies are kept after they were stored")


def check_windows(machine: Machine) -> None:
    """Never more in memory than the limit, after whatever turn."""
    windows = machine.state.windows
    if not 0 <= windows.bytes <= windows.limit:
        raise Violation("bounded memory", f"the windows hold {windows.bytes} of {windows.limit}")


def check_memory(auditor: Auditor, machine: Machine, stored_max: int, idle_at_start: int) -> None:
    """Everything the machine remembers. `stored_max`: messages that one turn stored at most."""
    check_counts(auditor, machine, idle_at_start)
    state = machine.state
    window_bytes = 0
    for name, expected in auditor.served().items():
        queue = state.queues[name]
        _check_queue(queue, expected, auditor.now)
        updates.check_present(auditor, machine.view.settings_of(name), expected)
        found = machine.view.overrides(name)
        assert not isinstance(found, Rejection)
        overrides.check_live(auditor, expected, dict(found))
        for key in queue.keys.values():
            for lane in key.lanes.values():
                window_bytes += _check_window(lane, expected, state.settings, stored_max)
        _check_stats(machine, expected)
    _same("window_bytes", state.windows.bytes, window_bytes)
    _check_tokens(auditor, state)
    caps.check_memory(auditor.tokens, auditor.queues, state)
    _check_bounds(state)
    _check_windowed(state)
    check_windows(machine)
    names = {one.name for one in summaries(machine.state)}
    _same("summaries", names, auditor.served().keys())
    _check_snapshot(auditor, state)
    _check_explanations(auditor, state)


def _check_explanations(auditor: Auditor, state: State) -> None:
    """Some message of every key: the parts add up to its age, and a pause is told."""
    for name, expected in auditor.served().items():
        for key in expected.keys.values():
            waiting = [one for lane in key.lanes.values() for one in lane.line + lane.timed]
            for message in (*waiting[:1], *waiting[-1:]):
                found = explain(state, name, key.name, message.id, 1)
                if not isinstance(found, dict):
                    raise Violation("explanation", f"{message.id.hex()[-6:]}: {found}")
                parts = found["parts_ns"]
                age_ns = state.now - message.enqueued_ns
                if sum(parts.values()) != age_ns or min(parts.values()) < 0:
                    raise Violation("explanation", f"{parts} is not {age_ns}")
                paused = expected.paused or key.paused
                _same("explained pause", found["waiting_for"] == "paused", paused)


def _check_queue(queue: Queue, expected: model.Queue, now: int) -> None:
    name = queue.name
    _same(f"{name}: leased", queue.leased.keys(), expected.leased.keys())
    for id, (lease, _, _, size) in queue.leased.items():
        message = expected.leased[id]
        assert message.lease is not None
        _same(
            f"{name}: lease and size",
            (lease.number, size),
            (message.lease.number, len(message.body)),
        )
    told = queue.weighed, {key.name: key.weighed for key in queue.keys.values() if key.weighed}
    _same(f"{name}: bytes that wait", told, rooms.weights(expected))
    _same(f"{name}: version", queue.version, max(expected.versions))
    _same(f"{name}: max_attempts", queue.max_attempts, expected.max_attempts)
    _same(
        f"{name}: leases",
        lease_numbers(queue),
        {n: (lease.expires_ns, len(lease.messages)) for n, lease in expected.leases.items()},
    )
    ends = [lease.expires_ns for lease in queue.leases.values()]
    _same(f"{name}: leases in the order they run out", ends, sorted(ends))
    _same(
        f"{name}: batches",
        {one.name: batch_numbers(one) for one in queue.lease_batches.values()},
        {
            one.name: (
                one.consumer is not None,
                one.expires_ns,
                one.counts,
                {number: len(lease.messages) for number, lease in one.leases.items()},
            )
            for one in expected.batches.values()
        },
    )
    _same(f"{name}: connections", queue.connections, expected.connections)
    _same(
        f"{name}: credit",
        {one.id: (one.credit_messages, one.credit_bytes) for one in queue.consumers.values()},
        {
            one.id: (one.prefetch - one.held, one.bytes_max - one.bytes_held)
            for one in expected.consumers.values()
        },
    )
    _same(f"{name}: round", [one.id for one in queue.ready], [one.id for one in expected.credit])
    benched = [one.id for one in queue.benched]
    _same(f"{name}: benched", benched, [one.id for one in expected.benched])
    _same(f"{name}: paused", queue.pause is not None, expected.paused)
    paused = {key.name for key in expected.keys.values() if key.paused}
    _same(f"{name}: paused keys", set(queue.key_pauses), paused)
    _check_ring(queue)
    _same(
        f"{name}: keys with pending messages",
        {key.name: key.pending for key in queue.keys.values() if key.pending},
        {key.name: key.pending for key in expected.keys.values() if key.pending},
    )
    for key in expected.keys.values():
        for lane in key.lanes.values():
            if not lane.pending and not lane.leased:
                continue
            live_key = queue.keys.get(key.name)
            live = live_key.lanes.get(lane.throttle_keys) if live_key is not None else None
            if live_key is None or live is None:
                raise Violation("counts", f"{name}/{key.name!r} {lane.throttle_keys} is forgotten")
            what = f"{name}/{key.name!r} {lane.throttle_keys}"
            _same(f"{what}: weight", live_key.weight, key.weight)
            _same(f"{what}: counts", (live.pending, live.leased), (lane.pending, lane.leased))
            ready = (LANE_READY, LANE_PARKED) if lane.has_ready(now) else (LANE_DELAYED,)
            if key.paused and lane.has_ready(now):
                ready = (LANE_PAUSED,)
            if lane.pending and live.state not in ready and not lane.is_hazy(now):
                raise Violation("lane state", f"{what} is {live.state}, not in {ready}")


def _check_ring(queue: Queue) -> None:
    ring = queue.ring
    active = [key for key in queue.keys.values() if key.active]
    _same(f"{queue.name}: ring keys", ring.keys, len(active))
    _same(f"{queue.name}: ring weight", ring.weight, sum(key.weight for key in active))
    for key in queue.keys.values():
        ready = [lane for lane in key.lanes.values() if lane.state == LANE_READY]
        _same(f"{queue.name}: {key.name!r} in the ring", key.active, bool(ready))
        _same(
            f"{queue.name}: {key.name!r} lanes",
            1 + len(list(key.standing())) if key.lane else 0,
            len(ready),
        )
        if not key.pending and key.deficit:
            raise Violation("fair order", f"{key.name!r} keeps a deficit of {key.deficit}")
    seen: list[FairnessKey] = []
    key_at = ring.head
    while key_at is not None and len(seen) <= len(active):
        seen.append(key_at)
        key_at = key_at.after if key_at.after is not ring.head else None
    _same(f"{queue.name}: round of the ring", len(seen), len(active))


def _check_window(lane: Lane, expected: model.Queue, settings: Settings, stored_max: int) -> int:
    """The window is the head of the lane, in order. Returns its bytes."""
    what = f"window of {lane.queue.name}/{lane.key.name!r} {lane.throttle_keys}"
    keys = [entry[KEY] for entry in lane.window]
    if keys != sorted(keys):
        raise Violation("lane order", f"{what} is not sorted")
    bodies = [len(entry[BODY]) for entry in lane.window if entry[BODY]]
    size = sum(ENTRY_BYTES + one for one in bodies)
    _same(f"{what}: bytes", lane.window_bytes, size)
    if size and not lane.windowed:
        raise Violation(
            "bounded memory", f"{what} has {size} bytes and can never be asked for them"
        )
    if lane.horizon:
        if (keys and keys[-1] > lane.horizon) or len(keys) > lane.pending:
            raise Violation("lane order", f"{what}: {len(keys)} of {lane.pending} and a horizon")
    else:
        _same(f"{what}: all of it", len(keys), lane.pending)
    if lane.pending == 0:
        _same(f"{what}: state", lane.state, LANE_EMPTY)
        return size
    of_model = expected.keys[lane.key.name].lanes[lane.throttle_keys]
    pages = max(settings.window_messages, settings.page_messages) + settings.page_messages
    handed_back = sum(message.handed_back for message in of_model.line + of_model.timed)
    if len(keys) > pages + stored_max + handed_back:
        raise Violation("bounded memory", f"{what} holds {len(keys)} messages")
    if of_model.mixed:
        return size
    line = {message.id for message in of_model.line[: len(keys)]}
    timed = {message.id for message in of_model.timed[: len(keys)]}
    # Equal times may stand in either order, so one more of the timed ones may be meant.
    for key in keys:
        id = key[rows.ID_AT :]
        if id not in line and id not in timed and not _tied(of_model, id, len(keys)):
            raise Violation("lane order", f"{what} holds {id.hex()[-6:]} too early")
    return size


def _tied(lane: model.Lane, id: bytes, count: int) -> bool:
    last = lane.timed[count - 1].ready_ns if len(lane.timed) >= count else -1
    return any(one.id == id and one.ready_ns == last for one in lane.timed[count:])


def _check_windowed(state: State) -> None:
    """Each queue's list of lanes with something in memory is whole, and leads to live lanes."""
    for queue in state.queues.values():
        seen: list[Lane] = []
        lane = queue.windowed.newest
        while lane is not None and len(seen) <= queue.windowed.count:
            seen.append(lane)
            lane = lane.older
        _same(f"{queue.name}: lanes in memory", len(seen), queue.windowed.count)
        for lane in seen:
            if lane.forgotten or lane.queue is not queue:
                raise Violation("bounded memory", f"{queue.name} keeps a lane that is gone")


def _check_stats(machine: Machine, expected: model.Queue) -> None:
    cost = machine.state.queues[expected.name].ring.by_bytes
    _same(f"{expected.name}: whether messages cost their bytes", cost, expected.by_bytes)
    found = stats(machine.state, expected.name, 1_000)
    assert isinstance(found, QueueStats)
    _same(
        f"{expected.name}: stats",
        (found.depth, found.in_flight, found.active_keys, found.consumers),
        (
            expected.pending,
            len(expected.leased),
            sum(1 for key in expected.keys.values() if key.pending),
            len(expected.consumers),
        ),
    )
    counters = {name: getattr(found.counters, name) for name in model.COUNTED}
    _same(f"{expected.name}: counters", counters, expected.counted)


def _check_snapshot(auditor: Auditor, state: State) -> None:
    found = {
        (event.queue, event.fairness_key): (event.weight, event.key_pending, event.key_leased)
        for event in snapshot(state, 1_000)
    }
    expected = {}
    for queue in auditor.served().values():
        for key in queue.keys.values():
            leased = sum(lane.leased for lane in key.lanes.values())
            if key.pending or leased:
                expected[queue.name, key.name] = (key.weight, key.pending, leased)
    _same("snapshot", found, expected)


def _check_tokens(auditor: Auditor, state: State) -> None:
    tokens = auditor.tokens
    shared = {name for name in tokens.buckets if not name.startswith(b"\0")}
    _same("buckets", state.buckets.keys(), shared)
    plain = {key: value for key, value in state.config.items() if not key.startswith("throttle")}
    _same("config", plain, auditor.config)
    live = dict(state.buckets)
    for queue in auditor.served().values():
        for key in queue.keys.values():
            own = state.queues[queue.name].key_buckets.get(key.name)
            _same(f"{key.own_limit!r}: there", own is not None, key.own_limit in tokens.buckets)
            if own is not None:
                live[key.own_limit] = own
    for name, bucket in live.items():
        expected = tokens.buckets[name]
        _same(f"{name!r}: limit", (bucket.rate, bucket.burst), (expected.rate, expected.burst))
        level, should = level_of(bucket, state.now), expected.level_at(auditor.now)
        if abs(level - should) > TOLERANCE:
            raise Violation("throttle rate", f"{name!r}: {level} tokens, not {should}")
    for live_queue in state.queues.values():
        for live_key in live_queue.keys.values():
            for lane in live_key.lanes.values():
                should_be = {state.buckets.get(one) for one in lane.throttle_keys}
                should_be.add(live_queue.key_buckets.get(live_key.name))
                if set(lane.buckets) != should_be - {None}:
                    raise Violation("throttle rate", f"{lane.throttle_keys} has other buckets")


def _check_bounds(state: State) -> None:
    deadlines = state.deadlines
    armed = sum(1 for bucket in state.buckets.values() if bucket.armed_ns)
    for queue in state.queues.values():
        armed += queue.armed_ns != 0
        armed += sum(1 for lease in queue.extended.values() if lease.armed_ns)
        armed += sum(1 for one in queue.overrides.values() if one.armed_ns)
        armed += sum(1 for bucket in queue.key_buckets.values() if bucket.armed_ns)
        armed += sum(1 for batch in queue.lease_batches.values() if batch.armed_ns)
        for key in queue.keys.values():
            armed += sum(1 for lane in key.lanes.values() if lane.armed_ns)
    if len(deadlines) > 2 * armed + 1_024 + 1:
        raise Violation("bounded memory", f"{len(deadlines)} deadlines for {armed} armed")
    for bucket in state.buckets.values():
        known = state.lanes_of_throttle.get(bucket.name, {})
        for lane in bucket.waiters:
            if lane not in known or lane.line_of is not bucket:
                raise Violation("bounded memory", f"{bucket.name!r} remembers a lane that is gone")
    for group in state.groups.values():
        records = len(group.records)
        mentions = group.mentions if records > 1 else 0  # the newest record stays whatever it has
        if mentions > state.settings.ledger_mentions or records > ROWS_MAX:
            raise Violation("bounded memory", f"the ledger of group {group.number} is too long")


def _same(what: str, seen: object, expected: object) -> None:
    if seen != expected:
        raise Violation("counts", f"{what}: {seen!r}, should be {expected!r}")
