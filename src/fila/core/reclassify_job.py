"""A reclassification under way: what it looks at with each step, and what it found so far.

A step looks at so many messages at most, reads so many lanes at most and asks the hook once. With a
rate it waits until it may go on. A trial run takes the same steps, moves nothing and is forgotten
with the broker; the real one goes on after a restart from the place its last step stored.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from fila.core import policy as deciding
from fila.core import reclassify, rows
from fila.core.applies import Applies
from fila.core.command import BeginReclassify, EndReclassify, Reclassify
from fila.core.entry import BODY, WEIGHT, Entry
from fila.core.machine import Machine
from fila.core.policy import Policy
from fila.core.purging import LaneName, Purgeable
from fila.core.queue import Queue
from fila.core.reader import StoreDamagedError
from fila.core.reclassify_rows import START, Course
from fila.core.rejection import Rejection, invalid_value
from fila.core.state import MS
from fila.core.verdict import Assignment

WORK: Final = 4  # to judge a message costs as much as so many other messages
DIFFERENCES_MAX: Final = 100  # kinds that are told; of others how many messages there were
NS: Final = 1_000_000_000
BURST: Final = 10  # of the messages of a second one in so many may go at once

Stand = tuple[bytes, int, tuple[bytes, ...]]  # fairness key, weight, throttle keys
Document = dict[str, object]
RUNNING: Final = "running"
DONE: Final = "done"
CANCELLED: Final = "cancelled"
FAILED: Final = "failed"
NONE: Final = "none"
JOBS_MAX: Final = 64  # queues at once
LAST_MAX: Final = 256  # that are remembered when they are over


class ReclassifyJob:
    __slots__ = (
        "_after",
        "_name",
        "changes",
        "course",
        "dry_run",
        "fresh",
        "lanes",
        "others",
        "over",
        "paced_from",
        "paced_ns",
        "queue",
        "state",
        "why",
    )

    def __init__(self, queue: Queue, course: Course, dry_run: bool, fresh: bool) -> None:
        self.queue = queue
        self.course = course  # of a trial run its own; else the queue's as of the last step
        self.dry_run = dry_run
        self.fresh = fresh  # what came with this very turn is not in the store yet
        self.state = RUNNING
        self.why = ""
        self.over = False
        self.changes: dict[tuple[Stand, Stand], int] = {}
        self.others = 0  # messages whose change is none of these
        self.paced_ns = 0  # since when the rate is kept, and how many it had by then
        self.paced_from = 0
        self._begin_walk()

    def _begin_walk(self) -> None:
        self.lanes = Purgeable(list(self.queue.keys.values()), self.course.next_lane)
        self._name: LaneName | None = None
        self._after = b""

    # --- what is told

    def document(self) -> Document:
        course = self.course
        return {
            "queue": self.queue.name,
            "state": self.state,
            "why": self.why,
            "dry_run": self.dry_run,
            "version": course.version,
            "began_ms": course.began_ns // MS,
            "by": course.who,
            "rate": course.rate,
            "waiting": course.waiting,
            "judged": course.judged,
            "moved": course.moved,
            "reweighed": course.reweighed,
            "undecided": course.undecided,
            "differences": [
                {"from": _told(before), "to": _told(after), "messages": count}
                for (before, after), count in sorted(self.changes.items(), key=_most)
            ],
            "other_differences": self.others,
        }

    # --- its steps

    def due_ns(self, now: int) -> int:
        """When it takes its next step."""
        rate = self.course.rate
        if not rate or not self.paced_ns:
            return now
        ahead = self.course.judged - self.paced_from - rate // BURST
        return max(now, self.paced_ns + ahead * NS // rate)

    def step(self, machine: Machine, policy: Policy, turn: Applies) -> int:
        """How much work that was."""
        state = machine.state
        queue = self.queue
        now = state.now
        if state.queues.get(queue.name) is not queue:
            return self._end(FAILED, "the queue is gone")
        if not self.dry_run and queue.course is None:
            return self._end(CANCELLED, "")
        if not policy.has_on_enqueue(queue.name):
            if not self.dry_run:
                turn.apply(EndReclassify(queue.name))
            return self._end(FAILED, "the queue has no on_enqueue hook any more")
        if self.fresh:
            self.fresh = False
            return 1
        if not self.paced_ns:
            self.paced_ns, self.paced_from = now, self.course.judged
        if self.due_ns(now) > now:
            return 0
        if not self.lanes.complete:
            return self.lanes.gather(state.settings.job_lanes)
        if queue.version != self.course.version:
            # Another hook: what was judged by the last one is looked at again.
            self.course = self.course._replace(
                version=queue.version,
                after=START,
                next_lane=queue.next_lane,
                began_ns=now,
            )
            self.changes, self.others = {}, 0
            self._begin_walk()
            return 1
        if any(lane.queue is queue for lane in state.removed_early):
            return 1  # until the commit those lanes put what moves behind what went before its time
        found, looked = self._look(machine)
        entries = [entry for _, some in found for entry in some]
        bodies = [entry[BODY] for entry in entries]
        wanted = deciding.assign_again(policy, queue.name, bodies, now)
        self._compare(found, wanted, state.settings.weight_max)
        self._note(found, wanted, turn)
        if self._name is None and self.lanes.left == 0:
            if not self.dry_run:
                turn.apply(EndReclassify(queue.name, done=True))
            self._end(DONE, "")
        return WORK * len(entries) + looked + 1

    def _look(self, machine: Machine) -> tuple[list[tuple[LaneName, list[Entry]]], int]:
        """The next messages, lane by lane; and how many lanes that took."""
        state = machine.state
        settings = state.settings
        left = settings.reclassify_messages
        rate = self.course.rate
        if rate:
            left = min(left, max(rate // 20, 1))
        bytes_left = settings.page_bytes
        pages = settings.redrive_pages
        resumed = int.from_bytes(self.course.after[:8], "big")
        found: list[tuple[LaneName, list[Entry]]] = []
        looked = 0
        while left > 0 and bytes_left > 0 and pages > 0 and looked < settings.job_lanes:
            if self._name is None:
                names = self.lanes.take(1)
                if not names:
                    break
                self._name, self._after = names[0], b""
            looked += 1
            key = self.queue.keys.get(self._name[0])
            lane = key.lanes.get(self._name[1]) if key is not None else None
            # One that was made later may have the name of one that was forgotten meanwhile.
            later = lane is not None and lane.number >= self.course.next_lane
            if lane is None or later or lane.number < resumed or not lane.pending:
                self._name = None
                continue
            if lane.number == resumed and not self._after:
                self._after = rows.queue_prefix(self.queue.number) + self.course.after
            pages -= bool(lane.horizon)
            some, after, last = reclassify.waiting_after(
                state, lane, self.course, self._after, left, bytes_left
            )
            kept = [one for one in some if not reclassify.came_later(one, self.course)]
            if kept:
                found.append((self._name, kept))
            left -= len(some)
            bytes_left -= sum([len(one[BODY]) for one in some])
            if after:
                self.course = self.course._replace(after=reclassify.place_of(after))
            if last:
                self._name = None
            elif after == self._after:
                break  # it goes on when this turn is in the store
            self._after = after
        return found, looked

    def _note(
        self,
        found: list[tuple[LaneName, list[Entry]]],
        wanted: list[Assignment | None],
        turn: Applies,
    ) -> None:
        """Move what is to be moved, or count it."""
        if self.dry_run:
            return
        parts = []
        at = 0
        for name, entries in found:
            parts.append((name, entries, wanted[at : at + len(entries)]))
            at += len(entries)
        course = self.course
        reply = turn.apply(Reclassify(self.queue.name, parts, course.after))
        if isinstance(reply, Rejection):
            self._end(FAILED, reply.message)
            return
        now_is = self.queue.course
        assert now_is is not None
        self.course = now_is

    def _compare(
        self,
        found: list[tuple[LaneName, list[Entry]]],
        wanted: list[Assignment | None],
        weight_max: int,
    ) -> None:
        at = moved = reweighed = undecided = 0
        for (fairness_key, throttle_keys), entries in found:
            for entry in entries:
                one = wanted[at]
                at += 1
                if one is None:
                    undecided += 1
                    continue
                before = (fairness_key, entry[WEIGHT], throttle_keys)
                weight = min(max(one.weight, 1), weight_max)
                after = (one.fairness_key, weight, one.throttle_keys)
                if before == after:
                    continue
                if (before[0], before[2]) != (after[0], after[2]):
                    moved += 1
                else:
                    reweighed += 1
                known = self.changes.get((before, after), 0)
                if known or len(self.changes) < DIFFERENCES_MAX:
                    self.changes[before, after] = known + 1
                else:
                    self.others += 1
        if self.dry_run:
            course = self.course
            self.course = course._replace(
                judged=course.judged + at,
                moved=course.moved + moved,
                reweighed=course.reweighed + reweighed,
                undecided=course.undecided + undecided,
            )

    def cancel(self) -> None:
        self._end(CANCELLED, "")

    def fail(self, why: str) -> None:
        self._end(FAILED, why)

    def _end(self, state: str, why: str) -> int:
        self.over = True
        self.state = state
        self.why = why
        return 1


def _most(item: tuple[tuple[Stand, Stand], int]) -> tuple[int, tuple[Stand, Stand]]:
    return -item[1], item[0]


def _told(stand: Stand) -> Document:
    return {
        "key": stand[0].decode(errors="replace"),
        "weight": stand[1],
        "throttle_keys": [name.decode(errors="replace") for name in stand[2]],
    }


class Reclassifications:
    """Those of one machine, a queue each; of those that are over what they came to."""

    def __init__(self, machine: Machine, policy: Policy, turn: Applies) -> None:
        self._machine = machine
        self._policy = policy
        self._turn = turn
        self.jobs: deque[ReclassifyJob] = deque()
        self._last: dict[Queue, ReclassifyJob] = {}
        self.take_up()

    def take_up(self) -> None:
        """What was under way when the broker, or the log group, went down goes on."""
        for queue in self._machine.state.queues.values():
            if queue.course is not None and queue not in self._last:
                self._add(ReclassifyJob(queue, queue.course, False, False))

    def _add(self, job: ReclassifyJob) -> None:
        self.jobs.append(job)
        self._last.pop(job.queue, None)
        self._last[job.queue] = job
        if len(self._last) > LAST_MAX:
            for queue, one in self._last.items():
                if one.over:
                    del self._last[queue]
                    break

    def begin(self, name: str, rate: int, who: str, dry_run: bool) -> Document | Rejection:
        state = self._machine.state
        queue = state.queues.get(name)
        if queue is None:
            return state.no_queue(name)
        before = self._last.get(queue)
        if before is not None and not before.over:
            return invalid_value(
                "queue", f'"{name}" is being reclassified already; see how far it is, or cancel it'
            )
        if not self._policy.has_on_enqueue(name):
            return invalid_value("queue", f'"{name}" has no on_enqueue hook that could be asked')
        if len(self.jobs) >= JOBS_MAX:
            return invalid_value("queue", f"{JOBS_MAX} queues are being reclassified already")
        if dry_run:
            course = Course(
                state.now, queue.next_lane, queue.version, rate, 0, 0, 0, 0, queue.pending, who,
                START,
            )  # fmt: skip
        else:
            reply = self._turn.apply(BeginReclassify(name, rate, who))
            if isinstance(reply, Rejection):
                return reply
            assert queue.course is not None
            course = queue.course
        job = ReclassifyJob(queue, course, dry_run, True)
        self._add(job)
        return job.document()

    def cancel(self, name: str, who: str) -> Document | Rejection:
        found = self._find(name)
        if isinstance(found, Rejection):
            return found
        if found is None or found.over:
            return invalid_value("queue", f'"{name}" is not being reclassified')
        if not found.dry_run:
            self._turn.apply(EndReclassify(name, who=who))
        found.cancel()
        self.jobs.remove(found)
        return found.document()

    def told(self, name: str) -> Document | Rejection:
        """How far it is, or what it came to."""
        found = self._find(name)
        if isinstance(found, Rejection):
            return found
        return {"queue": name, "state": NONE} if found is None else found.document()

    def _find(self, name: str) -> ReclassifyJob | Rejection | None:
        state = self._machine.state
        queue = state.queues.get(name)
        return self._last.get(queue) if queue is not None else state.no_queue(name)

    def due_ns(self) -> int:
        """When the next step is due; 0: there is nothing to do."""
        now = self._machine.state.now
        return min([job.due_ns(now) for job in self.jobs], default=0)

    def step(self) -> None:
        """One step, of the first whose time has come."""
        now = self._machine.state.now
        for job in self.jobs:
            if job.due_ns(now) <= now:
                self.jobs.remove(job)
                self._step(job)
                if job.over:
                    if self._machine.state.queues.get(job.queue.name) is not job.queue:
                        self._last.pop(job.queue, None)
                else:
                    self.jobs.append(job)
                return

    def _step(self, job: ReclassifyJob) -> None:
        try:
            job.step(self._machine, self._policy, self._turn)
        except StoreDamagedError as error:
            if self._machine.set_apart(error) is None:
                raise
            job.fail("its rows cannot be read")
