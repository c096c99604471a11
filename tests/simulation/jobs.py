"""What a turn does by itself, followed in the books: leases end, redrives and purges take a step.

Promised: commands come first. Then at most so many messages of leases end, the rest with the next
turn; and every job takes one step of at most its size, until it has done what was asked for, and
is answered with the sum of its steps when the last of them is committed.
"""

from __future__ import annotations

from collections import deque

from fila.core import rejection
from fila.core.applies import Reply
from fila.core.command import Expire, ExpireBatch, Purge, Redrive
from fila.core.rejection import Rejection
from fila.core.turn import Applied

from . import batches, commands, pauses
from .books import Books
from .model import Queue
from .turn import AskPurge, AskRedrive, Hooked, Record, Violation, same

LaneName = tuple[bytes, tuple[bytes, ...]]


class RedriveJob:
    def __init__(self, asked: AskRedrive, dlq: Queue, parent: Queue, left: int) -> None:
        self.asked = asked
        self.dlq = dlq
        self.parent = parent
        self.left = left
        self.moved = 0


class PurgeJob:
    """`filled`: lanes that held something when it was asked for; none may be passed over."""

    def __init__(self, asked: AskPurge, queue: Queue, filled: set[LaneName]) -> None:
        self.asked = asked
        self.queue = queue
        self.filled = filled
        self.left = asked.named
        self.seen: set[LaneName] = set()
        self.purged = 0


class Jobs:
    """The auditor's part for what a turn does by itself."""

    def __init__(self) -> None:
        self.redrives: list[RedriveJob] = []
        self.purges: list[PurgeJob] = []
        # This turn ended as many messages as it may: leases, batches may be left for the next.
        self.leases_left = False
        self.batches_left = False

    def under_way(self) -> bool:
        return bool(self.redrives or self.purges)

    def some_left(self) -> bool:
        """Whether a limit may have kept leases from ending in this turn."""
        return self.leases_left or self.batches_left

    def restart(self) -> None:
        """Jobs live in memory only."""
        self.redrives = []
        self.purges = []

    # --- asked

    def ask_redrive(self, books: Books, asked: AskRedrive, reply: Reply) -> None:
        dlq = pauses.find(books, asked.queue, reply)
        if dlq is None:
            return
        if not dlq.name.endswith(".dlq"):
            commands.rejected("Redrive", reply, rejection.NOT_A_DLQ)
        elif dlq.name.removesuffix(".dlq") not in books.queues:
            commands.rejected("Redrive", reply, rejection.PARENT_QUEUE_NOT_FOUND)
        else:
            same("reply to a redrive", reply, None)
            left = min(asked.count, dlq.pending) if asked.count else dlq.pending
            parent = books.queues[dlq.name.removesuffix(".dlq")]
            self.redrives.append(RedriveJob(asked, dlq, parent, left))

    def ask_purge(self, books: Books, asked: AskPurge, reply: Reply) -> None:
        queue = pauses.find(books, asked.queue, reply)
        if queue is None:
            return
        same("reply to a purge", reply, None)
        filled = {
            (key.name, lane.throttle_keys)
            for key in queue.keys.values()
            for lane in key.lanes.values()
            if lane.pending and asked.fairness_key in (None, key.name)
        }
        self.purges.append(PurgeJob(asked, queue, filled))

    # --- done by the turn itself

    def follow(self, books: Books, record: Record) -> None:
        """Everything of it, in the promised order."""
        own = deque(record.own)
        hooked = deque(record.hooked)
        self._expire(books, own, hooked)
        answers = self._redrive(books, own) + self._purge(books, own)
        if own:
            raise Violation("order of a turn", f"{own[0].command} is not what comes next")
        same("calls of failure hooks", list(hooked), [])
        if record.answers is not None:
            same("answers to redrives and purges", record.answers, answers)

    def _expire(self, books: Books, own: deque[Applied], hooked: deque[Hooked]) -> None:
        self.leases_left = self._expire_some(books, Expire, own, hooked)
        self.batches_left = self._expire_some(books, ExpireBatch, own, hooked)

    def _expire_some(
        self,
        books: Books,
        kind: type[Expire | ExpireBatch],
        own: deque[Applied],
        hooked: deque[Hooked],
    ) -> bool:
        """Whether there may be more of the kind."""
        bound = books.settings.expire_messages
        ended = 0
        while own and isinstance(own[0].command, kind):
            if ended >= bound:
                raise Violation("bounds", f"more than {bound} messages of leases end at once")
            command, reply = own.popleft()
            assert isinstance(command, Expire | ExpireBatch)
            queue = books.queues[command.queue]
            errors = ["visibility timeout expired"] * len(command.ids)
            call = hooked.popleft() if queue.name in books.hooked and hooked else None
            held = [queue.leased.get(id) for id in command.ids]
            commands.check_hook(books, queue, held, errors, command.verdicts, call)
            if isinstance(command, Expire):
                commands.expire(books, command, reply)
            else:
                batches.follow(books, queue, command, reply)
            assert isinstance(reply, int)
            ended += max(reply, 1)
        books.met["expiry cut short"] += ended >= bound
        return ended >= bound

    def _redrive(self, books: Books, own: deque[Applied]) -> list[tuple[int, int]]:
        answers = []
        for job in list(self.redrives):
            dlq = job.dlq
            there = _is_there(books, dlq) and _is_there(books, job.parent)
            books.met["redrive of a queue made again"] += not there and dlq.name in books.queues
            moved = 0
            if there and dlq.pending and job.left:
                command, reply = own.popleft() if own else (None, None)
                if not isinstance(command, Redrive) and dlq.apart:
                    own.extendleft([Applied(command, reply)] if command is not None else [])
                    self.redrives.remove(job)
                    answers.append((job.asked.number, job.moved))
                    continue
                if not isinstance(command, Redrive):
                    raise Violation("redrive", f"job {job.asked.number} takes no step")
                same("queue of a redrive's step", command.queue, dlq.name)
                bound = min(books.settings.redrive_messages, job.left)
                if not 1 <= len(command.ids) <= bound:
                    raise Violation("redrive", f"a step of {len(command.ids)}, not 1 to {bound}")
                if dlq.name.removesuffix(".dlq") not in books.hooked:
                    default = [(b"default", 1, ())] * len(command.ids)
                    same("assignments without a hook", command.assignments, default)
                commands.redrive(books, command, reply)
                moved = 0 if isinstance(reply, Rejection) else len(command.ids)
            books.met["further step of a redrive"] += bool(job.moved)
            job.moved += moved
            job.left -= moved
            if job.left <= 0 or not moved:
                self.redrives.remove(job)
                answers.append((job.asked.number, job.moved))
        return answers

    def _purge(self, books: Books, own: deque[Applied]) -> list[tuple[int, int]]:
        answers = []
        for job in list(self.purges):
            if not _is_there(books, job.queue):
                books.met["purge of a queue made again"] += job.asked.queue in books.queues
                self.purges.remove(job)
                answers.append((job.asked.number, job.purged))
                continue
            command, reply = own.popleft() if own else (None, None)
            if not isinstance(command, Purge):
                raise Violation("purge", f"job {job.asked.number} takes no step")
            whole = job.asked.fairness_key is None
            same("a purge's step", (command.queue, command.whole), (job.asked.queue, whole))
            if len(command.lanes) > books.settings.purge_lanes:
                raise Violation("bounds", f"a step of a purge takes {len(command.lanes)} lanes")
            if not job.seen.isdisjoint(command.lanes):
                raise Violation("purge", "a lane is named by two steps")
            pauses.purge(books, command, reply, None)
            books.met["further step of a purge"] += bool(job.seen)
            job.seen.update(command.lanes)
            job.left -= len(command.lanes)
            job.purged += reply if isinstance(reply, int) else 0
            if isinstance(reply, Rejection) or job.left <= 0:
                self.purges.remove(job)
                answers.append((job.asked.number, job.purged))
                if not isinstance(reply, Rejection) and job.filled - job.seen:
                    raise Violation("purge", f"{len(job.filled - job.seen)} lanes are passed over")
        return answers


def _is_there(books: Books, queue: Queue) -> bool:
    """Whether it is the very queue, not another one of its name."""
    return books.queues.get(queue.name) is queue
