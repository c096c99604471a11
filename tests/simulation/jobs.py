"""What a turn does by itself, followed in the books: leases end, redrives and purges take a step.

Promised: commands come first. Then at most so many messages of leases end, the rest with the next
turn; and jobs take a step each of at most their size, in turn, as many as a turn has room for,
until each has done what was asked for, and is answered with the sum of its steps when the last of
them is committed.
"""

from __future__ import annotations

from collections import deque

from fila.core import rejection
from fila.core.applies import Reply
from fila.core.command import Age, Expire, ExpireBatch, Purge, Redrive, Release
from fila.core.rejection import Rejection
from fila.core.turn import Applied

from . import ages, batches, commands, extensions, pauses, reclassify
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
        self.loads = dlq.loads
        self.apart = False  # its rows could not be read

    def gone(self, books: Books) -> bool:
        """Whether its queue left memory since; what moved has moved, how much is not said."""
        return left_memory(books, self.dlq, self.loads)


class PurgeJob:
    """`filled`: lanes that held something when it was asked for; none may be passed over."""

    def __init__(self, asked: AskPurge, queue: Queue, filled: set[LaneName]) -> None:
        self.asked = asked
        self.queue = queue
        self.filled = filled
        self.left = asked.named
        self.seen: set[LaneName] = set()
        self.purged = 0
        self.loads = queue.loads
        self.apart = False

    def gone(self, books: Books) -> bool:
        return left_memory(books, self.queue, self.loads)


def left_memory(books: Books, queue: Queue, loads: int) -> bool:
    left = queue.loads != loads
    books.met["job of a queue that was unloaded"] += left
    return left


class Jobs:
    """The auditor's part for what a turn does by itself."""

    def __init__(self) -> None:
        self.jobs: deque[RedriveJob | PurgeJob] = deque()
        # This turn ended as many messages as it may: leases, batches may be left for the next.
        self.leases_left = False
        self.batches_left = False
        self.returning_left = False
        self.ages_left = False  # expired messages, which the next turn gives up

    def under_way(self) -> bool:
        return bool(self.jobs)

    def some_left(self) -> bool:
        """Whether a limit may have kept leases from ending in this turn."""
        return self.ages_left or self.leases_left or self.batches_left or self.returning_left

    def restart(self) -> None:
        """Jobs live in memory only."""
        self.jobs.clear()

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
            self.jobs.append(RedriveJob(asked, dlq, parent, left))

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
        self.jobs.append(PurgeJob(asked, queue, filled))

    # --- done by the turn itself

    def follow(self, books: Books, record: Record) -> None:
        """Everything of it, in the promised order."""
        own = deque(record.own)
        hooked = deque(record.hooked)
        self._hand_back(books, own)
        self._expire(books, own, hooked)
        self._age(books, own)
        self.returning_left = commands.returning(books) is not None
        answers = self._step(books, own)
        reclassify.follow(books, own)
        if own:
            raise Violation("order of a turn", f"{own[0].command} is not what comes next")
        same("calls of failure hooks", list(hooked), [])
        if record.answers is not None:
            same("answers to redrives and purges", record.answers, answers)

    def _hand_back(self, books: Books, own: deque[Applied]) -> None:
        """What consumers let go of, until so many messages are back."""
        bound = books.settings.hand_back_messages
        while (found := commands.returning(books)) is not None and bound > 0:
            if not own:
                raise Violation("handed back", f"{found[1].number} of {found[0].name} is not")
            bound -= commands.hand_back(books, *found, own.popleft())
        books.met["hand-back cut short"] += found is not None

    def _age(self, books: Books, own: deque[Applied]) -> None:
        """Messages whose time to live ran out go, until so many have."""
        bound = books.settings.age_messages
        named = 0
        while own and isinstance(own[0].command, Age):
            command, reply = own.popleft()
            assert isinstance(command, Age)
            ages.follow(books, command, reply)
            named += len(command.rows)
        if named > bound:
            raise Violation("bounds", f"{named} messages expire in one turn, not {bound}")
        self.ages_left = named + len(books.queues) > bound
        ages.check_left(books, self.ages_left)

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
        while own and isinstance(own[0].command, (kind, Release)):
            if ended >= bound:
                raise Violation("bounds", f"more than {bound} messages of leases end at once")
            if isinstance(own[0].command, Release):
                ended += self._return_late(books, own.popleft())
                continue
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

    def _return_late(self, books: Books, applied: Applied) -> int:
        """A lease that ran out while it was waiting to be handed back: no failure."""
        queue = books.queues[getattr(applied.command, "queue", "")]
        named = getattr(applied.command, "ids", [])
        message = queue.leased.get(named[0]) if named else None
        lease = message.lease if message is not None else None
        if lease is None or lease.expires_ns != extensions.first_of(queue).expires_ns:
            raise Violation("handed back", f"{applied.command} is not of the first to run out")
        if lease.expires_ns > books.now or lease.consumer is None or not lease.consumer.returning:
            raise Violation("handed back", f"{lease.number} of {queue.name} is not due to go back")
        books.met["ran out while it was handed back"] += 1
        return max(commands.hand_back(books, queue, lease, applied), 1)

    def _step(self, books: Books, own: deque[Applied]) -> list[tuple[int, int]]:
        """Jobs take a step each, in the order of their turns, as many as a turn has room for."""
        answers = []
        left = books.settings.job_work
        for _ in range(len(self.jobs)):
            if left <= 0:
                books.met["jobs cut short"] += 1
                break
            job = self.jobs.popleft()
            if isinstance(job, RedriveJob):
                work, over = self._redrive(books, own, job)
                done = job.moved
            else:
                work, over = self._purge(books, own, job)
                done = job.purged
            left -= work
            if over:
                if job.gone(books):
                    done = -rejection.NODE_NOT_READY
                elif job.apart:
                    done = -rejection.STORAGE_ERROR
                answers.append((job.asked.number, done))
            else:
                self.jobs.append(job)
        return answers

    def _redrive(self, books: Books, own: deque[Applied], job: RedriveJob) -> tuple[int, bool]:
        """How much work its step was, and whether it is over."""
        dlq = job.dlq
        if job.gone(books):
            return 1, True
        if not (_is_there(books, dlq) and _is_there(books, job.parent)):
            books.met["redrive of a queue made again"] += dlq.name in books.queues
            return 1, True
        moved = 0
        if dlq.pending and job.left:
            command, reply = own.popleft() if own else (None, None)
            if not isinstance(command, Redrive) and dlq.apart:
                own.extendleft([Applied(command, reply)] if command is not None else [])
                job.apart = True
                return 1, True
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
        return 4 * moved + 1, job.left <= 0 or not moved

    def _purge(self, books: Books, own: deque[Applied], job: PurgeJob) -> tuple[int, bool]:
        """The same of a purge."""
        if job.gone(books):
            return 1, True
        if not _is_there(books, job.queue):
            books.met["purge of a queue made again"] += job.asked.queue in books.queues
            return 1, True
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
        over = isinstance(reply, Rejection) or job.left <= 0
        if over and not isinstance(reply, Rejection) and job.filled - job.seen:
            raise Violation("purge", f"{len(job.filled - job.seen)} lanes are passed over")
        return len(command.lanes) + 1, over


def _is_there(books: Books, queue: Queue) -> bool:
    """Whether it is the very queue, not another one of its name."""
    return books.queues.get(queue.name) is queue
