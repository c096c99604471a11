"""Jobs: redrives and purges under way. Each takes one bounded step per turn, so no turn is long.

Owns how far every job has come. A redrive moves what was there when it was asked for, at most as
many as were asked for. The lanes of a purge are named when it starts; what arrives in a lane before
the purge reaches it goes, too, and what arrives later stays. A job lives in memory only: a broker
that dies forgets it, and what it had done by then is done.

A job holds the queue itself, not its name: it ends when the queue is deleted, whatever is made
under the same name afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from fila.core import policy as deciding
from fila.core.applies import Applies
from fila.core.command import Purge, Redrive
from fila.core.entry import BODY, message_ids
from fila.core.machine import Machine
from fila.core.policy import Policy
from fila.core.purging import Purgeable
from fila.core.queue import DLQ_SUFFIX, Queue
from fila.core.reader import StoreDamagedError
from fila.core.rejection import Rejection

Done = Callable[[int], None]


class RedriveJob:
    __slots__ = ("done", "left", "moved", "parent", "queue")

    def __init__(self, queue: Queue, parent: Queue, left: int, done: Done) -> None:
        self.queue = queue
        self.parent = parent
        self.left = left
        self.moved = 0
        self.done = done


class PurgeJob:
    __slots__ = ("at", "done", "found", "purged", "queue", "who", "whole")

    def __init__(self, queue: Queue, whole: bool, who: str, found: Purgeable, done: Done) -> None:
        self.queue = queue
        self.whole = whole
        self.who = who
        self.found = found
        self.at = 0  # lanes that were emptied
        self.purged = 0
        self.done = done


class Jobs:
    """All jobs of one machine. What a step does is a command of its turn."""

    def __init__(self, machine: Machine, policy: Policy, turn: Applies) -> None:
        self._machine = machine
        self._policy = policy
        self._turn = turn
        self._redrives: list[RedriveJob] = []
        self._purges: list[PurgeJob] = []
        self.under_way = False

    def redriving(self, queue: str) -> bool:
        """Whether dead letters of this queue are being moved."""
        return any(job.queue.name == queue for job in self._redrives)

    def redrive(self, queue: str, count: int, done: Done) -> Rejection | None:
        """Move up to `count` dead letters, 0 for all; `done` gets the number."""
        available = self._machine.redrivable(queue)
        if isinstance(available, Rejection):
            return available
        left = min(count, available) if count else available
        queues = self._machine.state.queues
        parent = queues[queue.removesuffix(DLQ_SUFFIX)]
        self._redrives.append(RedriveJob(queues[queue], parent, left, done))
        self.under_way = True
        return None

    def purge(
        self, queue: str, fairness_key: bytes | None, who: str, done: Done
    ) -> Rejection | None:
        """Drop what is pending in a queue, or in one of its keys; `done` gets the number."""
        found = self._machine.purgeable(queue, fairness_key)
        if isinstance(found, Rejection):
            return found
        subject = self._machine.state.queues[queue]
        self._purges.append(PurgeJob(subject, fairness_key is None, who, found, done))
        self.under_way = True
        return None

    def step(self) -> list[Callable[[], None]]:
        """Go on with every job; what is to be called, once committed, for those at their end."""
        ended: list[Callable[[], None]] = []
        for redrive in list(self._redrives):
            if self._step_redrive(redrive):
                self._redrives.remove(redrive)
                ended.append(partial(redrive.done, redrive.moved))
        for purge in list(self._purges):
            if self._step_purge(purge):
                self._purges.remove(purge)
                ended.append(partial(purge.done, purge.purged))
        self.under_way = bool(self._redrives) or bool(self._purges)
        return ended

    def _step_redrive(self, job: RedriveJob) -> bool:
        """Move some messages; whether that was all."""
        if not (self._is_there(job.queue) and self._is_there(job.parent)):
            return True
        machine = self._machine
        step = machine.state.settings.redrive_messages
        try:
            entries = machine.oldest(job.queue.name, min(step, job.left))
        except StoreDamagedError as error:
            if machine.set_apart(error) is None:
                raise
            return True
        moved = 0
        if entries:
            parent = job.parent.name
            bodies = [entry[BODY] for entry in entries]
            assignments = deciding.assign(self._policy, parent, bodies, machine.state.now)
            ids = message_ids(entries)
            reply = self._turn.apply(Redrive(job.queue.name, ids, assignments))
            moved = 0 if isinstance(reply, Rejection) else reply
        job.moved += moved
        job.left -= moved
        return job.left <= 0 or moved == 0

    def _step_purge(self, job: PurgeJob) -> bool:
        """Empty some lanes; whether those were the last."""
        if not self._is_there(job.queue):
            return True
        lanes_max = self._machine.state.settings.purge_lanes
        lanes = job.found.lanes[job.at : job.at + lanes_max]
        job.at += lanes_max
        command = Purge(job.queue.name, lanes, job.whole, job.who, job.found.next_lane)
        reply = self._turn.apply(command)
        if isinstance(reply, Rejection):
            return True
        job.purged += reply
        return job.at >= len(job.found.lanes)

    def _is_there(self, queue: Queue) -> bool:
        return self._machine.state.queues.get(queue.name) is queue
