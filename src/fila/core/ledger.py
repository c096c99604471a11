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

from collections import deque
from typing import TYPE_CHECKING, Final

from fila.core import rows
from fila.core.batch import DELETE_STATE, PUT_STATE, Batch, Op

if TYPE_CHECKING:
    from fila.core.lane import Lane
    from fila.core.queue import Queue


MENTIONS_PER_KEY: Final = 4
MENTIONS_MIN: Final = 4_096
ROWS_MAX: Final = 1_024  # records of one group that a restart may have to read


class Group:
    """A log group: a queue with its dead-letter queue. Group 0: catalogue, config, levels."""

    __slots__ = ("_mentions", "_rows", "dirty", "number", "ops", "position", "queues", "touched")

    def __init__(self, number: int) -> None:
        self.number = number
        self.position = 0
        self.queues: list[Queue] = []
        self.dirty = False  # has something to write in this turn
        self.ops: list[Op] = []
        self.touched: list[Lane] = []
        self._rows: deque[tuple[int, list[Lane]]] = deque()
        self._mentions = 0

    def close_batch(self, now: int, mentions_max: int) -> Batch:
        """The turn's operations with the ledger record that makes their counts durable."""
        self.position = position = self.position + 1
        self.dirty = False
        ops, self.ops = self.ops, []
        touched, self.touched = self.touched, []
        clocks = [(queue.number, queue.stall_at(now)) for queue in self.queues]
        parts = [rows.ledger_head(now, clocks)]
        pack = rows.pack_ledger_lane
        for lane in touched:
            lane.touched = False
            lane.ledger_position = position
            parts.append(
                pack(
                    lane.queue.number,
                    lane.number,
                    lane.key.weight,
                    lane.pending,
                    lane.tail,
                    lane.stored_head(),
                    lane.throttled_at(now),
                )
            )
        ops.append((PUT_STATE, rows.ledger_key(self.number, position), b"".join(parts)))
        self._rows.append((position, touched))
        self._mentions += len(touched)
        # A few mentions per lane are enough: a busy lane is mentioned again long before that.
        keys = sum([len(queue.keys) for queue in self.queues])
        mentions_max = min(mentions_max, MENTIONS_PER_KEY * keys + MENTIONS_MIN)
        while len(self._rows) > 1 and (self._mentions > mentions_max or len(self._rows) > ROWS_MAX):
            self._fold(ops, now)
        return Batch(self.number, position, ops)

    def restore(self, position: int, mentioned: list[Lane]) -> None:
        """Take up a record found in the store, oldest first."""
        self.position = position
        for lane in mentioned:
            lane.ledger_position = position
        self._rows.append((position, mentioned))
        self._mentions += len(mentioned)

    def _fold(self, ops: list[Op], now: int) -> None:
        position, mentioned = self._rows.popleft()
        self._mentions -= len(mentioned)
        for lane in mentioned:
            if lane.ledger_position == position and not lane.forgotten:
                ops.append(put_lane(lane, now))
        ops.append((DELETE_STATE, rows.ledger_key(self.number, position), b""))


def put_lane(lane: Lane, now: int) -> Op:
    """The lane's own row."""
    row = rows.LaneRow(
        lane.key.weight,
        lane.pending,
        lane.tail,
        lane.stored_head(),
        lane.throttled_at(now),
        lane.key.name,
        lane.throttle_keys,
    )
    return (PUT_STATE, rows.lane_key(lane.queue.number, lane.number), rows.lane_row(row))
