"""The turn: the one place where its steps are ordered.

    begin(now)   time passes
    commands     each is applied when it comes, in the order they came
    end()        leases that were let go are handed back, those that ran out end, messages that
                 are expired go, redrives, purges and reclassifications take a step, one delivery
                 pass, one commit; what all of it justifies leaves when the committer calls it safe

Commands come before expiries: as long as a lease has not been ended, its holder may settle it,
however late (docs/decisions/019-commands-before-expiries.md).

No clock, no loop, no thread. Its driver says what time it is and when a turn ends: the
broker's loop, the simulator, tests, a replay, a benchmark. An exception out of any step leaves a
machine that is ahead of the disk: the driver stops then.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Protocol

from fila.core import policy as deciding
from fila.core.applies import Applies, Reply
from fila.core.command import Age, Command, Expire, ExpireBatch, Nack, Release
from fila.core.effects import Effects
from fila.core.jobs import Done, Jobs
from fila.core.load import load_group
from fila.core.machine import Machine
from fila.core.policy import Judged, Policy
from fila.core.reader import StoreDamagedError
from fila.core.reclassify_job import Reclassifications
from fila.core.rejection import Rejection
from fila.core.remains import take_apart
from fila.core.row_batch import RowBatch
from fila.core.settlement import VISIBILITY_EXPIRED
from fila.core.verdict import Assignment, FailureVerdict
from fila.core.work import SHIFT

Call = Callable[[], None]


class Committer(Protocol):
    """The one path by which batches reach the disk."""

    def commit(self, batches: list[RowBatch], committed: Call) -> None:
        """Store the batches, visible to reads on return; call `committed`, in order, when safe."""
        ...


class Outlet(Protocol):
    """Through which everything leaves: deliveries, replies, calls."""

    def leaving(self, effects: Effects, calls: list[Call]) -> Call:
        """A turn is over: its effects, as one call to make when it is committed."""
        ...


class Failures(Protocol):
    """Who measures what failed, batch by batch."""

    def failed(
        self, queue: str, ids: list[bytes], errors: list[str], verdicts: list[FailureVerdict]
    ) -> None: ...


class Applied(NamedTuple):
    command: Command
    reply: Reply


class Turn(Applies):
    """One machine's turns, one after the other."""

    def __init__(
        self, machine: Machine, policy: Policy, committer: Committer, outlet: Outlet
    ) -> None:
        self.machine = machine
        self._policy = policy
        self._committer = committer
        self._outlet = outlet
        self._jobs = Jobs(machine, policy, self)
        self.reclassify = Reclassifications(machine, policy, self)
        self.work = machine.state.work  # what requests have done in this turn
        self._calls: list[Call] = []
        self._stored = True
        self._leaving_bytes = 0  # of deliveries that wait for their commit
        self.is_open = False
        self.more = False  # the last delivery pass was cut short
        # So much waits for its commit that nothing more is handed out; `on_room` when it may be.
        self.waits_for_commit = False
        self.on_room: Call | None = None
        self.failures: Failures | None = None
        self.on_fault: Callable[[BaseException], None] | None = None
        # Every command of the turn with its reply, its own ones included, if a list is given.
        self.applied: list[Applied] | None = None

    # --- the order of a turn

    def begin(self, now: int) -> None:
        """Let time pass, and take commands."""
        self.is_open = True
        self.machine.advance(now)

    def follow(self, command: Command) -> Reply:
        """Apply a command. One that breaks off half-applied is a fault, even if it is caught."""
        try:
            reply = self.machine.follow(command)
        except BaseException as error:
            if self.on_fault is not None:
                self.on_fault(error)
            raise
        if self.applied is not None:
            self.applied.append(Applied(command, reply))
        return reply

    def end(self) -> int:
        """Do what is due, deliver, and commit. Returns when the next turn is due: see `due_ns`."""
        machine = self.machine
        state = machine.state
        if state.returning.heap:
            self._hand_back()
        if state.due_queues:
            self._end_leases()
        if state.due_lease_batches:
            self._end_batches()
        if state.due_aging:
            self._age()
        if self._jobs.under_way:
            self._calls += self._jobs.step()
        if self.reclassify.jobs:
            self.reclassify.step()
        delivered_bytes = 0
        if self._leaving_bytes < state.settings.leaving_bytes:
            self.more = machine.deliver()
            delivered_bytes = state.settings.pass_bytes - state.pass_bytes_left
        else:
            self.more = self.waits_for_commit = True
        batches, deliveries, ended, events, leased = machine.take()
        # Rows are not kept in memory until a flush.
        told = Effects([], deliveries, ended, events, leased)
        calls, self._calls = self._calls, []
        self.is_open = False
        state.work.done = 0
        self._stored = False
        leaving = self._outlet.leaving(told, calls)
        self._leaving_bytes += delivered_bytes
        self._committer.commit(batches, partial(self._let_go, leaving, delivered_bytes))
        if not self._stored:
            self._stored = True
            machine.stored()
        if state.remains:
            take_apart(state)
        return self.due_ns()

    @property
    def clears_up(self) -> bool:
        """Whether another turn is wanted for nothing but memory that is to be freed."""
        return bool(self.machine.state.remains)

    def due_ns(self) -> int:
        """When a turn is due by itself, in ns: up to the present for at once, 0 for never."""
        if self._jobs.under_way:
            return self.machine.state.now
        due_ns = self.machine.next_deadline(delivers=not self.waits_for_commit)
        if self.reclassify.jobs:
            step_ns = self.reclassify.due_ns()
            return min(due_ns, step_ns) if due_ns else step_ns
        return due_ns

    def _let_go(self, leaving: Call, delivered_bytes: int) -> None:
        if not self._stored:
            # Before anything leaves: it may bring the next command with it.
            self._stored = True
            self.machine.stored()
        leaving()
        self._leaving_bytes -= delivered_bytes
        if (
            self.waits_for_commit
            and self._leaving_bytes < self.machine.state.settings.leaving_bytes
        ):
            self.waits_for_commit = False
            if self.on_room is not None:
                self.on_room()

    # --- what is asked of a turn beside commands

    def after_commit(self, call: Call) -> None:
        """Call when everything this turn did is committed."""
        self._calls.append(call)

    def assign(self, queue: str, bodies: list[bytes]) -> list[Assignment]:
        """Where the policy wants each of these messages."""
        return deciding.assign(self._policy, queue, bodies, self.machine.state.now)

    def nack(self, queue: str, ids: list[bytes], errors: list[str], connection: int) -> Nack:
        """The command that fails these messages, with what the policy says of each."""
        verdicts, entries = self._judge(queue, ids, errors, connection)
        return Nack(queue, ids, errors, verdicts, connection, entries)

    def redrive(self, queue: str, count: int, done: Done) -> Rejection | None:
        """Move dead letters back, some per turn; `done` gets the number once it is committed."""
        return self._jobs.redrive(queue, count, done)

    def redriving(self, queue: str) -> bool:
        """Whether dead letters of this queue are being moved."""
        return self._jobs.redriving(queue)

    def purge(
        self, queue: str, fairness_key: bytes | None, who: str, done: Done
    ) -> Rejection | None:
        """Drop what is pending, some lanes per turn; `done` gets the number once committed."""
        return self._jobs.purge(queue, fairness_key, who, done)

    def unload_group(self, number: int, why: str) -> None:
        """Let a log group go with this turn's end; everybody it concerns is told why."""
        self.machine.unload_group(number, why)

    def load_group(self, number: int) -> None:
        """Take up a log group that was unloaded: its queues are served from now on. What fell due
        meanwhile does so with the next turn, which is due at once."""
        load_group(self.machine.state, number)
        self.reclassify.take_up()

    # --- leases that are handed back, or ran out: so many messages per turn, the rest with the next

    def _hand_back(self) -> None:
        machine = self.machine
        left = machine.state.settings.hand_back_messages
        while left > 0:
            found = machine.returning()
            if found is None:
                return
            queue, ids = found
            left -= self._cost(queue, ids)
            self.apply(Release(queue, ids))

    def _cost(self, queue: str, ids: list[bytes]) -> int:
        """Of messages that are read and stored anew: large ones count as in `work.py`."""
        size = sum(self.machine.view.leased_bytes(queue, ids))
        return max(1, len(ids), size >> SHIFT)

    def _end_leases(self) -> None:
        machine = self.machine
        left = machine.state.settings.expire_messages
        while left > 0:
            due = machine.due_lease()
            if due is None:
                return
            queue, lease, ids, returning = due
            left -= self._cost(queue, ids)
            if returning:
                self.apply(Release(queue, ids))
                continue
            verdicts, entries = self._judge_expired(queue, ids)
            self.apply(Expire(queue, lease, ids, verdicts, entries))

    def _end_batches(self) -> None:
        machine = self.machine
        left = machine.state.settings.expire_messages
        while left > 0:
            due = machine.due_batch()
            if due is None:
                return
            queue, name, ids = due
            verdicts, entries = self._judge_expired(queue, ids)
            ended = self.apply(ExpireBatch(queue, name, ids, verdicts, entries))
            left -= 1 if isinstance(ended, Rejection) else max(ended, 1)

    def _age(self) -> None:
        """Give up messages whose time to live ran out: so many per turn, queue after queue."""
        machine = self.machine
        left = machine.state.settings.age_messages
        for queue in machine.aging_queues():
            if left <= 0:
                return
            try:
                found = machine.due_messages(queue, left)
            except StoreDamagedError as error:
                if machine.set_apart(error) is None:
                    raise
                continue
            left -= max(len(found), 1)
            if found:
                self.apply(Age(queue, found))

    def _judge_expired(self, queue: str, ids: list[bytes]) -> Judged:
        return self._judge(queue, ids, [VISIBILITY_EXPIRED] * len(ids), 0)

    def _judge(self, queue: str, ids: list[bytes], errors: list[str], connection: int) -> Judged:
        """What the policy says of failed messages; whoever measures failures is told."""
        judged = deciding.judge(self._policy, self.machine, queue, ids, errors, connection)
        if self.failures is not None:
            self.failures.failed(queue, ids, errors, judged.verdicts)
        return judged
