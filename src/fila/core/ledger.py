"""The ledger: how lane counts become durable without a row per lane in every batch.

Each batch of a group writes one ledger record with the new numbers of every lane it touched. A
lane's numbers are those of the newest record that mentions it. When the records together hold more
mentions than the limit, the oldest record goes; lanes it was the newest for are folded into rows of
their own first. Busy lanes are mentioned again long before that, so they are almost never folded.

Why: a row per touched lane doubled the number of writes when every message has a key of its own;
44 bytes in a record that is written anyway cost about a tenth of that.

The ledger record also carries the group's applied position (its key), its time and stall clocks.
"""

from __future__ import annotations

from typing import Final

from fila.core import rows
from fila.core.lane import Lane
from fila.core.queue import Group
from fila.core.row_batch import DELETE_STATE, PUT_STATE, Op, RowBatch

MENTIONS_PER_KEY: Final = 4
MENTIONS_MIN: Final = 4_096
FORGOTTEN_MIN: Final = 1_024
ROWS_MAX: Final = 1_024  # records of one group that a restart may have to read
STEP_MENTIONS: Final = 2_048  # that are looked at with one turn, beside as many as it adds


def close_batch(group: Group, now: int, mentions_max: int) -> RowBatch:
    """The turn's operations with the ledger record that makes their counts durable."""
    group.position = position = group.position + 1
    group.dirty = False
    ops, group.ops = group.ops, []
    if group.over:
        return RowBatch(group.number, position, ops)
    touched, group.touched = group.touched, []
    clocks = [(queue.number, queue.stall_at(now)) for queue in group.queues]
    parts = [rows.ledger_head(now, clocks)]
    pack = rows.pack_ledger_lane
    for lane in touched:
        lane.touched = False
        lane.ledger_position = position
        parts.append(
            pack(
                lane.queue.number,
                lane.number,
                lane.key.told_weight,
                lane.pending,
                lane.tail,
                lane.stored_head(),
                lane.throttled_at(now),
            )
        )
        if lane.queue.weighed_since:
            ops.append(_put_weight(lane))
    ops.append((PUT_STATE, rows.ledger_key(group.number, position), b"".join(parts)))
    group.records.append((position, len(touched), touched))
    group.mentions += len(touched)
    if group.uncleared == 0 and group.forgotten > FORGOTTEN_MIN + group.mentions // 4:
        group.forgotten = 0
        group.uncleared = len(group.records)
    if group.uncleared:
        _clear(group)
    # A few mentions per lane are enough: a busy lane is mentioned again long before that.
    keys = sum([len(queue.keys) for queue in group.queues])
    mentions_max = min(mentions_max, MENTIONS_PER_KEY * keys + MENTIONS_MIN)
    records = group.records
    left = STEP_MENTIONS + 2 * len(touched)  # after keys were removed there may be more: next turns
    while len(records) > 1 and (group.mentions > mentions_max or len(records) > ROWS_MAX):
        if left <= 0:
            break
        left -= _fold(group, ops, now)
    return RowBatch(group.number, position, ops)


def restore(group: Group, position: int, mentioned: list[Lane]) -> None:
    """Take up a record found in the store, oldest first."""
    group.position = position
    for lane in mentioned:
        lane.ledger_position = position
    group.records.append((position, len(mentioned), mentioned))
    group.mentions += len(mentioned)


def put_lane(lane: Lane, now: int) -> Op:
    """The lane's own row."""
    row = rows.LaneRow(
        lane.key.told_weight,
        lane.pending,
        lane.tail,
        lane.stored_head(),
        lane.throttled_at(now),
        lane.key.name,
        lane.throttle_keys,
    )
    return (PUT_STATE, rows.lane_key(lane.queue.number, lane.number), rows.lane_row(row))


def _put_weight(lane: Lane) -> Op:
    """The bytes that wait in a lane, in a queue that counts them."""
    key = rows.WEIGHT_PREFIX + lane.prefix
    if not lane.weighed:
        return (DELETE_STATE, key, b"")
    return (PUT_STATE, key, lane.weighed.to_bytes(8, "big"))


def _fold(group: Group, ops: list[Op], now: int) -> int:
    """The oldest record goes. Returns how much of a step that is, in mentions."""
    position, mentions, mentioned = group.records.popleft()
    group.mentions -= mentions
    for lane in mentioned:
        if lane.ledger_position == position and not lane.forgotten:
            ops.append(put_lane(lane, now))
    ops.append((DELETE_STATE, rows.ledger_key(group.number, position), b""))
    return mentions + 1


def _clear(group: Group) -> None:
    """Drop mentions of forgotten lanes, in some records per turn, the newest records first. It is
    called after so many lanes were forgotten that going through all records pays."""
    records = group.records
    at = min(group.uncleared, len(records))
    left = STEP_MENTIONS
    while at > 0 and left > 0:
        at -= 1
        mentioned = records[at][2]
        left -= len(mentioned) + 1
        mentioned[:] = [lane for lane in mentioned if not lane.forgotten]
    group.uncleared = at
