"""Jobs: redrives and purges under way. Each takes bounded steps, so many per turn together, one
after the other, so that no turn is long however many there are.

Owns how far every job has come. A redrive moves what was there when it was asked for, at most as
many as were asked for. The lanes of a purge are named when it starts; what arrives in a lane before
the purge reaches it goes, too, and what arrives later stays. A job lives in memory only: a broker
that dies forgets it, and what it had done by then is done.

A job holds the queue itself, not its name: it ends when the queue is deleted, whatever is made
under the same name afterwards. When the queue leaves memory for another reason, it ends with that:
how much of it is done for good is not known then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final

from fila.core import policy as deciding
from fila.core import redrive as redriving
from fila.core.applies import Applies
from fila.core.command import Purge, Redrive
from fila.core.entry import BODY, message_ids
from fila.core.machine import Machine
from fila.core.obituary import original
from fila.core.policy import Policy
from fila.core.purging import Purgeable
from fila.core.queue import DLQ_SUFFIX, Queue
from fila.core.reader import StoreDamagedError
from fila.core.rejection import QUEUE_NOT_FOUND, Rejection

Done = Callable[[int | Rejection], None]
REDRIVE_WORK: Final = 4  # to move a dead letter back costs as much as so many other messages


class RedriveJob:
    __slots__ = ("done", "gone", "left", "moved", "over", "parent", "queue")

    def __init__(self, queue: Queue, parent: Queue, left: int, done: Done) -> None:
        self.queue = queue
        self.parent = parent
        self.left = left
        self.moved = 0
        self.over = False
        self.gone: Rejection | None = None  # its queue's rows cannot be read
        self.done = done


class PurgeJob:
    __slots__ = ("done", "found", "gone", "over", "purged", "queue", "who", "whole")

    def __init__(self, queue: Queue, whole: bool, who: str, found: Purgeable, done: Done) -> None:
        self.queue = queue
        self.whole = whole
        self.who = who
        self.found = found
        self.purged = 0
        self.over = False
        self.gone: Rejection | None = None
        self.done = done


class Jobs:
    """All jobs of one machine. What a step does is a command of its turn."""

    def __init__(self, machine: Machine, policy: Policy, turn: Applies) -> None:
        self._machine = machine
        self._policy = policy
        self._turn = turn
        self._jobs: deque[RedriveJob | PurgeJob] = deque()
        self._redriving: dict[Queue, int] = {}  # how many redrives of each queue
        self.under_way = False

    def redriving(self, queue: str) -> bool:
        """Whether dead letters of this queue are being moved."""
        return any(one.name == queue for one in self._redriving)

    def redrive(self, queue: str, count: int, done: Done) -> Rejection | None:
        """Move up to `count` dead letters, 0 for all; `done` gets the number."""
        available = self._machine.redrivable(queue)
        if isinstance(available, Rejection):
            return available
        left = min(count, available) if count else available
        queues = self._machine.state.queues
        parent = queues[queue.removesuffix(DLQ_SUFFIX)]
        dlq = queues[queue]
        self._jobs.append(RedriveJob(dlq, parent, left, done))
        self._redriving[dlq] = self._redriving.get(dlq, 0) + 1
        redriving.begin(dlq)
        self.under_way = True
        return None

    def purge(
        self, queue: str, fairness_key: bytes | None, who: str, done: Done
    ) -> Rejection | None:
        """Drop what is pending in a queue, or in one of its keys; `done` gets the number."""
        found = self._machine.purgeable(queue, fairness_key)
        if isinstance(found, Rejection):
            return found
        state = self._machine.state
        found.gather(state.settings.job_lanes)
        subject = state.queues[queue]
        self._jobs.append(PurgeJob(subject, fairness_key is None, who, found, done))
        self.under_way = True
        return None

    def step(self) -> list[Callable[[], None]]:
        """Let jobs take a step each, one after the other, as many as a turn has room for. What is
        to be called, once committed, for those at their end."""
        ended: list[Callable[[], None]] = []
        left = self._machine.state.settings.job_work
        for _ in range(len(self._jobs)):
            if left <= 0:
                break
            job = self._jobs.popleft()
            job.over = True
            if isinstance(job, RedriveJob):
                left -= self._step_redrive(job)
            else:
                left -= self._step_purge(job)
            if not job.over:
                self._jobs.append(job)
            elif isinstance(job, RedriveJob):
                ended.append(partial(job.done, _answer(job, job.moved)))
                self._forget(job.queue)
            else:
                ended.append(partial(job.done, _answer(job, job.purged)))
        self.under_way = bool(self._jobs)
        return ended

    def _forget(self, queue: Queue) -> None:
        """A redrive of this queue is over."""
        left = self._redriving[queue] - 1
        if left:
            self._redriving[queue] = left
        else:
            del self._redriving[queue]
            redriving.end(queue)

    def _step_redrive(self, job: RedriveJob) -> int:
        """Move some messages; how much work that was. It is over unless there is more."""
        if not (self._is_there(job.queue) and self._is_there(job.parent)):
            return 1
        machine = self._machine
        settings = machine.state.settings
        heads = job.queue.heads
        assert heads is not None, "a redrive keeps them"
        if not heads.complete:
            seen = heads.gather(settings.job_lanes)
            if not heads.complete:
                job.over = False
                return seen
        try:
            entries = machine.oldest(job.queue.name, min(settings.redrive_messages, job.left))
        except StoreDamagedError as error:
            job.gone = machine.set_apart(error)
            if job.gone is None:
                raise
            return 1
        moved = 0
        if entries:
            parent = job.parent.name
            bodies = [original(entry[BODY]) for entry in entries]
            assignments = deciding.assign(self._policy, parent, bodies, machine.state.now)
            ids = message_ids(entries)
            reply = self._turn.apply(Redrive(job.queue.name, ids, assignments))
            moved = 0 if isinstance(reply, Rejection) else reply
        job.moved += moved
        job.left -= moved
        job.over = job.left <= 0 or moved == 0
        return REDRIVE_WORK * moved + 1

    def _step_purge(self, job: PurgeJob) -> int:
        """Empty some lanes; how much work that was. It is over unless there are more."""
        if not self._is_there(job.queue):
            return 1
        settings = self._machine.state.settings
        found = job.found
        if not found.complete:
            job.over = False
            return found.gather(settings.job_lanes)
        lanes = found.take(settings.purge_lanes)
        command = Purge(job.queue.name, lanes, job.whole, job.who, found.next_lane)
        reply = self._turn.apply(command)
        if not isinstance(reply, Rejection):
            job.purged += reply
            job.over = found.left == 0
        return len(lanes) + 1

    def _is_there(self, queue: Queue) -> bool:
        return self._machine.state.queues.get(queue.name) is queue


def _answer(job: RedriveJob | PurgeJob, count: int) -> int | Rejection:
    """How many there were, or why that cannot be said."""
    gone = job.gone or job.queue.gone
    return count if gone is None or gone.code == QUEUE_NOT_FOUND else gone
