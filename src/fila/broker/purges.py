"""Purges under way: each empties some lanes per turn, so that no turn is long.

Owns how far every purge has come. Lanes are named when it starts; what arrives in a lane before the
purge reaches it goes, too, and what arrives later stays.
"""

from __future__ import annotations

from collections.abc import Callable

from fila.core.command import Command, Purge
from fila.core.machine import Machine, Reply
from fila.core.rejection import Rejection


class _Job:
    def __init__(
        self,
        queue: str,
        whole: bool,
        who: str,
        lanes: list[tuple[bytes, tuple[bytes, ...]]],
        next_lane: int,
        done: Callable[[int], None],
    ) -> None:
        self.queue = queue
        self.whole = whole
        self.who = who
        self.lanes = lanes
        self.next_lane = next_lane
        self.at = 0
        self.purged = 0
        self.done = done


class Purges:
    def __init__(self, machine: Machine, apply: Callable[[Command], Reply]) -> None:
        self._machine = machine
        self._apply = apply
        self._jobs: list[_Job] = []

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def start(
        self, queue: str, fairness_key: bytes | None, who: str, done: Callable[[int], None]
    ) -> Rejection | None:
        found = self._machine.purgeable(queue, fairness_key)
        if isinstance(found, Rejection):
            return found
        whole = fairness_key is None
        self._jobs.append(_Job(queue, whole, who, found.lanes, found.next_lane, done))
        return None

    def step(self) -> list[Callable[[], None]]:
        """Go on with every purge; what is to be called, once committed, for those at their end."""
        lanes_max = self._machine.state.settings.purge_lanes
        ended: list[Callable[[], None]] = []
        for job in list(self._jobs):
            lanes = job.lanes[job.at : job.at + lanes_max]
            job.at += lanes_max
            reply = self._apply(Purge(job.queue, lanes, job.whole, job.who, job.next_lane))
            if isinstance(reply, int):
                job.purged += reply
            if job.at >= len(job.lanes) or isinstance(reply, Rejection):
                self._jobs.remove(job)
                ended.append(lambda job=job: job.done(job.purged))  # type: ignore[misc]
        return ended
