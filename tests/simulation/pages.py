"""The pages a machine reads: whoever is being delivered gets one of a useful size, always.

Stands between the machine and its store, and looks at each page of messages when it is asked for.
What a lane may claim is worked out here anew, from the limit and the number of keys, lanes, and
queues that delivered something lately: at least that much it must get, whatever else is in memory.
"""

from __future__ import annotations

from fila.core import rows
from fila.core.command import Age, Redrive
from fila.core.entry import ENTRY_BYTES
from fila.core.lane import LANE_READY, Lane
from fila.core.machine import Machine
from fila.core.queue import Queue
from fila.core.reader import Reader
from fila.core.room import Crowded

from .turn import Record, Violation


class PageReader:
    """The store as the machine reads it."""

    def __init__(self, store: Reader) -> None:
        self._store = store
        self._poor: list[str] = []
        self.machine: Machine | None = None  # the one that reads, while it has a turn
        self._delivered: dict[Queue, tuple[int, int]] = {}  # how many, and when it last grew
        self.crowded = 0  # pages of lanes in turn that were asked for when the windows were full

    def get(self, family: int, key: bytes) -> bytes | None:
        return self._store.get(family, key)

    def get_many(self, family: int, keys: list[bytes]) -> list[bytes | None]:
        return self._store.get_many(family, keys)

    def snapshot(self) -> Reader:
        return self._store.snapshot()

    def scan(
        self, family: int, start: bytes, end: bytes, rows_max: int, bytes_max: int
    ) -> list[tuple[bytes, bytes]]:
        if family == rows.MESSAGES and self.machine is not None:
            lane = self._lane(start)
            if lane is not None and lane.state == LANE_READY and start == lane.horizon + b"\0":
                self._look(lane, rows_max, bytes_max)
        return self._store.scan(family, start, end, rows_max, bytes_max)

    def watch(self, machine: Machine) -> None:
        """A turn begins."""
        self.machine = machine
        self._note_delivered()

    def check(self, turn: Record, redriving: bool) -> None:
        """A turn is over. A redrive only looks at heads, and so does
        who gives up what is expired or drops the oldest; they have to take what they get."""
        self._note_delivered()
        self.machine = None
        poor, self._poor = self._poor, []
        redriven = any(
            isinstance(step.command, Redrive | Age) or isinstance(step.reply, Crowded)
            for step in turn.all_steps()
        )
        if poor and not redriven and not redriving:
            raise Violation("useful page", poor[0])

    def _look(self, lane: Lane, rows_max: int, bytes_max: int) -> None:
        assert self.machine is not None
        state = self.machine.state
        settings = state.settings
        limit = settings.window_bytes_total
        self.crowded += limit - state.windows.bytes < 2 * min(settings.page_bytes, limit // 4)
        share = (limit - limit // 16) // lane.queue.ring.keys // len(lane.key.lanes)
        self._note_delivered()
        self._delivered[lane.queue] = (lane.queue.counters.delivered, state.now)
        lately = state.now - settings.window_idle_ms * 1_500_000  # it is noticed a little later
        queues = [queue for queue, (_, at) in self._delivered.items() if at > lately]
        half = share // len(queues) // 2
        wanted = min(settings.page_messages, half // ENTRY_BYTES), min(settings.page_bytes, half)
        if rows_max < wanted[0] or bytes_max < wanted[1]:
            self._poor.append(
                f"{lane.queue.name}/{lane.key.name.decode()} reads {rows_max} rows and {bytes_max} "
                f"bytes, may claim {wanted}; the windows hold {state.windows.bytes} of {limit}"
            )

    def _note_delivered(self) -> None:
        assert self.machine is not None
        state = self.machine.state
        known, self._delivered = self._delivered, {}
        for queue in state.queues.values():
            count, at = known.get(queue, (0, -(1 << 62)))
            delivered = queue.counters.delivered
            self._delivered[queue] = (delivered, at if delivered == count else state.now)

    def _lane(self, start: bytes) -> Lane | None:
        assert self.machine is not None
        for queue in self.machine.state.queues.values():
            if rows.queue_prefix(queue.number) == start[: rows.LANE_AT]:
                for key in queue.keys.values():
                    for lane in key.lanes.values():
                        if start.startswith(lane.prefix):
                            return lane
        return None
