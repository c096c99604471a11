"""One seed's world: the production turn and commit path on a simulated disk and clock.

Everything random comes from the seed's one generator. The world says when a turn begins and ends
and when a sync does, lets the broker die at any commit boundary, and starts it again from what the
disk holds.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable
from functools import partial
from random import Random

from fila.core.applies import Reply
from fila.core.command import (
    Command,
    Consume,
    Enqueue,
    EnqueueKeyed,
    Leave,
    ResumeKey,
    ResumeQueue,
    SetConfig,
)
from fila.core.effects import Effects
from fila.core.entry import message_id
from fila.core.load import load
from fila.core.machine import Machine
from fila.core.rejection import Rejection
from fila.core.room import Crowded
from fila.core.row_batch import RowBatch
from fila.core.turn import Applied, Turn
from fila.storage.committer import FsyncCommitter, OsCommitter
from fila.storage.contract import StoreDamagedError, StoreError
from fila.storage.memory import MemoryStore
from fila.storage.pending import PendingStore

from . import comparing, deliveries, disk, groups, profile
from .auditor import Auditor
from .clients import Clients
from .damage import Damage
from .hooks import DrawnHooks
from .late import UNDER_WAY_MAX, LateCommitter
from .moves import Moves, family_of
from .pages import PageReader
from .profile import Profile
from .turn import AskLoad, AskPurge, AskRedrive, AskUnload, Record, Step, Violation
from .workload import Workload

MS = 1_000_000
SECOND = 1_000 * MS
HOUR = 3_600 * SECOND
START_NS = 1_700_000_000 * SECOND
DRAIN_TURNS_MAX = 10_000  # a pass may be one visit, and many visits may only pay


class Died(BaseException):
    """The process is gone, and with it `lost` of the newest writes if the power was, too."""

    def __init__(self, lost: int) -> None:
        super().__init__(lost)
        self.lost = lost


class World:
    """`look_inside`: compare the machine's memory and the disk with the model, too."""

    turn: Turn
    own: list[Applied]  # commands the turn made itself
    covered: int
    turns_ended: int
    idle_at_start: int

    def __init__(self, seed: int, look_inside: bool = True) -> None:
        self.look_inside = look_inside
        self.rng = rng = Random(seed)
        self.profile = Profile(rng)
        self.settings = self.profile.settings
        self.clock_ns = START_NS
        self.store = MemoryStore()
        self.damage = Damage(seed)
        self.late_rng = Random(f"late {seed}")
        self.late = self.late_rng.random() < 0.25  # a log that answers late; see late.py
        self.moves = Moves(seed)
        self.clients = Clients(rng)
        self.workload = Workload(rng, self.profile, self.clients)
        self.hooks = DrawnHooks(self.workload, self.profile.hooked)
        self._start()
        self.auditor = Auditor(self.settings, self.profile.journal, self.profile.hooked)
        self.record = Record(START_NS)
        self.unreleased: list[Record] = []  # over, not yet let go
        self.acknowledged: set[bytes] = set()  # ids of enqueues whose reply was let go
        self.fate = 1.0  # of the turn under way: how the broker dies, if it does
        self.dies = False  # at the next release
        self.jobs = 0
        self.events = 0
        self.stored_max = 0  # messages one turn handled at most, since the last start
        self.crashes = 0
        self.recent: deque[Record] = deque(maxlen=8)
        self.trace = hashlib.blake2b(digest_size=8)

    def run(self) -> None:
        self._turn(lambda: self.workload.open(self))
        for _ in range(self.profile.turns):
            self.clock_ns = self._next_time()
            self._turn(self._ask)
            if self.rng.random() < 0.015:
                self._check_all()
        self._drain()

    def _ask(self) -> None:
        self.workload.ask(self)
        self.moves.ask(self)

    # --- what is asked in a turn

    def apply(self, command: Command, asked: object = None) -> Reply:
        reply = self.turn.apply(command)
        self.own.pop()  # not the turn's own doing
        self.record.steps.append(Step(command, reply, asked))
        return reply

    def nack(self, queue: str, ids: list[bytes], errors: list[str], connection: int) -> None:
        calls = len(self.hooks.calls)
        command = self.turn.nack(queue, ids, errors, connection)
        shown = self.hooks.calls.pop() if len(self.hooks.calls) > calls else None
        self.apply(command, shown)

    def redrive(self, queue: str, count: int) -> None:
        number = self._next_job()
        reply = self.turn.redrive(queue, count, partial(self._job_done, number))
        self.record.steps.append(Step(AskRedrive(queue, count, number), reply))

    def purge(self, queue: str, fairness_key: bytes | None, named: int) -> None:
        number = self._next_job()
        done = partial(self._job_done, number)
        reply = self.turn.purge(queue, fairness_key, "ops", done)
        self.record.steps.append(Step(AskPurge(queue, fairness_key, number, named), reply))

    def unload_group(self, family: str) -> None:
        number = self.machine.state.queues[self._member(family)].group.number
        self.turn.unload_group(number, "it moves")
        self.record.steps.append(Step(AskUnload(family), None))

    def load_group(self, family: str) -> None:
        unloaded = self.machine.state.unloaded
        self.turn.load_group(unloaded[self._member(family)].group)
        self.record.steps.append(Step(AskLoad(family), None))

    def _member(self, family: str) -> str:
        state = self.machine.state
        names = [*state.queues, *state.unloaded]
        return next(name for name in names if family_of(name) == family)

    def reclassify(self, queue: str, cancel: bool) -> None:
        """What the turn is told of it are commands, like those of others."""
        before = len(self.own)
        if cancel:
            self.turn.reclassify.cancel(queue, "ops")
        else:
            self.turn.reclassify.begin(queue, 0, "ops", dry_run=False)
        for command, reply in self.own[before:]:
            self.record.steps.append(Step(command, reply))
        del self.own[before:]

    def _next_job(self) -> int:
        self.jobs += 1
        return self.jobs

    def _job_done(self, number: int, count: int | Rejection) -> None:
        self.answers.append((number, -count.code if isinstance(count, Rejection) else count))

    def backlog(self) -> int:
        return sum(queue.pending for queue in self.machine.state.queues.values())

    # --- a turn

    def _turn(self, ask: Callable[[], None], may_die: bool = True) -> None:
        turn = self.turn
        self.record = Record(self.clock_ns)
        self.recent.append(self.record)
        self.fate = self.rng.random() if may_die else 1.0
        self.own = turn.applied = []
        try:
            self._move_syncs(may_die)
            self.reader.watch(self.machine)
            if may_die:
                self.damage.before_turn(self.machine, self.store)
            turn.begin(self.clock_ns)
            ask()
            self._move_syncs(may_die)
            redriving = any(turn.redriving(name) for name in self.machine.state.queues)
            redriving = redriving or bool(turn.reclassify.jobs)
            turn.end()
            self._move_syncs(may_die)
            apart = self.damage.after_turn(self.machine, self.store)
            if self.dies or apart or self.fate < self.profile.crashes:
                raise Died(self._power_cut())
        except StoreDamagedError as error:
            self.damage.stopped(self.machine, self.store, error)
            self._restart(lost=0, whole=False)
            return
        except Died as died:
            self.store.unreadable = set()
            # A turn that was under way is ahead of the disk; so is one whose write was refused.
            behind = turn.is_open or self.store.before_write is not None
            whole = not died.lost and not behind and not self.machine.view.quarantined
            self._restart(died.lost, whole)
            return
        if self.look_inside:
            self.reader.check(self.record, redriving)
            comparing.check_windows(self.machine)
            if not self.unreleased:
                comparing.check_counts(self.auditor, self.machine, self.idle_at_start)

    def leaving(self, effects: Effects, calls: list[Callable[[], None]]) -> Callable[[], None]:
        """The turn's outlet: what it may let go is noted, for the auditor counts it even if the
        broker dies before that."""
        record = self.record
        record.own = self.own
        record.lingering = any(
            self.machine.state.queues.get(one.queue.name) is not one.queue
            for one in self.turn.reclassify.jobs
        )
        record.hooked = self.hooks.take_calls()
        turn = self.turn
        record.close(effects, turn.more, turn.waits_for_commit, turn.due_ns())
        leaving_bytes = sum([one.delivered_bytes() for one in self.unreleased])
        deliveries.check_size(self.settings, record, leaving_bytes)
        record.apart = set(self.machine.view.quarantined)
        record.away = set(self.machine.state.unloaded)
        weight = record.weight()
        self.events += weight
        self.stored_max = max(self.stored_max, weight)
        self.trace.update(record.mark().encode())
        self.unreleased.append(record)
        return partial(self._release, record, calls)

    def commit(self, batches: list[RowBatch], committed: Callable[[], None]) -> None:
        """The turn's committer: the production one, on a disk that may refuse."""
        self.record.wrote = bool(batches)
        commands = [step.command for step in self.record.all_steps()]
        groups.check_batches(batches, commands, bool(self.record.apart) or not self.turns_ended)
        self.turns_ended += 1
        crashes = self.profile.crashes
        if self.fate < crashes / 3 and batches:
            if self.late:
                self.unreleased.pop()
                raise Died(lost=1)  # it never reached the log
            self._refuse_write(batches, committed)
        self.dies = self.fate < crashes * 2 / 3
        syncing = isinstance(self.committer, FsyncCommitter) and self.committer.syncing
        self.auditor.met["committed while a sync was under way"] += syncing
        self.committer.commit(batches, committed)

    def _release(self, record: Record, calls: list[Callable[[], None]]) -> None:
        """The committer says it is safe: the outside sees it."""
        if self.dies:
            raise Died(lost=0)
        if not self.unreleased or record is not self.unreleased.pop(0):
            raise Violation("commit order", "a turn was let go twice, or before an earlier one")
        self.answers: list[tuple[int, int]] = []
        for call in calls:
            call()
        record.answers = self.answers
        self.auditor.replay(record)
        for delivery in record.deliveries:
            ids = [message_id(entry) for entry in delivery.entries]
            self.clients.receive(delivery.consumer.id, ids)
        for ended in record.ended:
            self.clients.remove(ended.consumer.id)
        for command, reply, _ in record.steps:
            if isinstance(command, Enqueue) and reply is None:
                self.acknowledged.update(command.ids)
            elif isinstance(reply, Crowded) and isinstance(command, Enqueue | EnqueueKeyed):
                kept = sorted({*range(len(command.ids))}.difference(reply.refused))
                stored = [one for one, known in reply.results if not known]
                keyed = isinstance(command, EnqueueKeyed)
                self.acknowledged.update(stored if keyed else [command.ids[at] for at in kept])
            elif isinstance(command, EnqueueKeyed) and isinstance(reply, list):
                self.acknowledged.update([one[0] for one in reply if isinstance(one, tuple)])
        for leased in record.batches_leased:
            self.workload.batches.answered(leased)

    # --- syncs: they begin and end when the world likes, turns are committed meanwhile

    def _move_syncs(self, may_die: bool) -> None:
        rng = self.rng
        committer = self.committer
        if isinstance(committer, LateCommitter):
            self._answer(committer, self.profile.flushes if may_die else 1.0)
            return
        if isinstance(committer, OsCommitter):
            if rng.random() < 0.02:
                self.store.sync()
            return
        often = self.profile.flushes if may_die else 1.0
        while committer.pending() and rng.random() < often:
            if committer.syncing:
                if may_die and rng.random() < self.profile.crashes / 4:
                    self._fail_sync(committer)
                self.store.sync(self.covered)
                committer.end_sync()
            elif committer.wants_sync():
                self.covered = self.store.unsynced_writes
                committer.begin_sync()

    def _answer(self, log: LateCommitter, often: float) -> None:
        """The log answers for some of the turns under way, the oldest first."""
        while log.under_way() and (
            self.late_rng.random() < often or log.under_way() >= UNDER_WAY_MAX
        ):
            self.auditor.met["answered late by several turns"] += log.under_way() > 4
            log.answer()

    def _power_cut(self) -> int:
        """How many of the newest writes are gone: any that no sync made safe."""
        if self.late or not self.profile.fsync:
            return 0
        return self.rng.randint(0, self.store.unsynced_writes)

    def _fail_sync(self, committer: FsyncCommitter) -> None:
        """The disk is gone while it syncs. Nothing may be seen any more."""
        committer.fail(StoreError("the disk is gone"))
        held = list(self.unreleased)
        try:
            committer.commit([], lambda: None)
        except StoreError:
            pass
        else:
            raise Violation("failed commit", "a committer whose sync failed commits more")
        if committer.wants_sync() or held != self.unreleased:
            raise Violation("failed commit", "effects were let go although the sync failed")
        raise Died(self._power_cut())

    # --- death and restart

    def _refuse_write(self, batches: list[RowBatch], committed: Callable[[], None]) -> None:
        """The disk refuses this write. Nothing of the turn may be seen, and no later write."""

        def refuse() -> None:
            raise StoreError("no space left on device")

        record = self.record
        for again in range(2):
            # The second time the store refuses by itself.
            self.store.before_write = None if again else refuse
            try:
                self.committer.commit(batches, committed)
            except StoreError:
                pass
            else:
                raise Violation("failed commit", "a store that failed takes further writes")
            if not self.unreleased or self.unreleased[-1] is not record:
                raise Violation("failed commit", "effects were let go although the write failed")
        self.store.before_write = refuse
        self.unreleased.pop()
        raise Died(self._power_cut())

    def _restart(self, lost: int, whole: bool) -> None:
        """Start again from the disk. `whole`: it holds everything the dead machine knew."""
        self.crashes += 1
        self.stored_max = 0
        self.dies = False
        self.hooks.take_calls()
        if isinstance(self.committer, LateCommitter):
            under_way = self.committer.under_way()
            kept = self.committer.die(self.late_rng)
            self.auditor.met["turns that never reached the log"] += under_way - kept
            whole = whole and kept == under_way
            written = sum(record.wrote for record in self.unreleased[:kept])
            lost = 0
        else:
            written = sum(record.wrote for record in self.unreleased) - lost
        for record in self.unreleased:
            if written <= 0:
                break
            written -= record.wrote
            self.auditor.replay(record)
        self.unreleased = []
        self.clients.lose_all()
        self.workload.batches.lose_all()
        self.auditor.met["page asked for in full windows"] += self.reader.crowded
        self.store = self.store.crash(lost)
        self.clock_ns = self._time_after_restart()
        before = self.machine
        self._change_settings()
        if self.look_inside:
            self.damage.at_start(self.store, self.settings, self.clock_ns)
        self._start()
        self.auditor.restart(self.clock_ns)
        if self.machine.state.now != self.auditor.now:
            raise Violation(
                "time", f"loaded at {self.machine.state.now}, should be {self.auditor.now}"
            )
        self.clock_ns = self.machine.state.now
        if not self.look_inside:
            return
        comparing.check_memory(self.auditor, self.machine, self.stored_max, self.idle_at_start)
        disk.check_store(self.auditor, self.machine, self.store)
        if whole:
            disk.check_rebuilt(before, self.machine)

    def _change_settings(self) -> None:
        """An operator may have edited the file; what bounds stored rows stays."""
        if self.rng.random() < 0.3:
            self.settings = profile.settings(self.rng)._replace(
                versions_kept=self.settings.versions_kept,
                idle_lanes=self.settings.idle_lanes,
                ledger_mentions=self.settings.ledger_mentions,
                idempotency_keys_max=self.settings.idempotency_keys_max,
                idempotency_ms=self.settings.idempotency_ms,
            )
            self.auditor.settings = self.settings

    def _start(self) -> None:
        """A broker on what the disk holds."""
        self.committer: OsCommitter | FsyncCommitter | LateCommitter
        self.rows: MemoryStore | PendingStore = self.store
        if self.late:
            self.rows = PendingStore(self.store)
            self.committer = LateCommitter(self.rows)
        elif self.profile.fsync:
            self.committer = FsyncCommitter(self.store)
        else:
            self.committer = OsCommitter(self.store)
        self.covered = 0  # unsynced writes when the sync under way began
        self.reader = PageReader(self.rows)
        self.machine: Machine = load(self.reader, self.settings, self.clock_ns)
        self.machine.record_events(self.profile.journal)
        self.turn = Turn(self.machine, self.hooks, self, self)
        self.idle_at_start = len(self.machine.state.idle)
        self.turns_ended = 0  # since the start: the first may put right what the start found
        self.own = []

    # --- time

    def _next_time(self) -> int:
        rng = self.rng
        now = self.clock_ns
        deadline_ns = self.turn.due_ns()
        if self.machine.state.returning and rng.random() < 0.1:
            return now + 60 * SECOND  # what is being handed back runs out meanwhile
        near = deadline_ns and deadline_ns - now < 200 * MS
        if near and rng.random() < 0.6:
            return max(deadline_ns, now)
        roll = rng.random()
        if roll < 0.25:
            return now
        if roll < 0.97:
            return now + rng.randint(0, self.profile.step_ns_max)
        if roll < 0.99 and deadline_ns:
            return max(deadline_ns, now)
        return now + rng.randint(0, rng.choice((SECOND, 60 * SECOND, 5 * HOUR)))

    def _time_after_restart(self) -> int:
        rng = self.rng
        roll = rng.random()
        if roll < 0.4:
            return self.clock_ns + rng.randint(0, 100 * MS)
        if roll < 0.7:
            return self.clock_ns + rng.randint(0, rng.choice((10 * SECOND, 5 * HOUR)))
        return self.clock_ns - rng.randint(0, rng.choice((MS, 10 * SECOND, 5 * HOUR)))

    # --- looking closely, and the end

    def _check_all(self) -> None:
        if not self.look_inside:
            return
        again = load(self.rows, self.settings, self.clock_ns)
        disk.check_rebuilt(self.machine, again)
        if not self.unreleased:
            comparing.check_memory(self.auditor, self.machine, self.stored_max, self.idle_at_start)
            disk.check_store(self.auditor, self.machine, self.store)

    def _drain(self) -> None:
        """Consume everything there is: nothing that was acknowledged may be missing."""
        self.profile.failures = self.profile.dead = self.profile.released = 0.0
        self._turn(self._open_the_gates, may_die=False)
        for _ in range(DRAIN_TURNS_MAX):
            if not self.auditor.messages:
                break
            if not any(client.held for client in self.clients.alive.values()):
                self.clock_ns = max(self.turn.due_ns(), self.clock_ns)
            self._turn(self._answer_all, may_die=False)
        for _ in range(DRAIN_TURNS_MAX):
            if not self.turn.reclassify.jobs:
                break
            self._turn(lambda: None, may_die=False)
        else:
            raise Violation("reclassify", "it does not end")
        self._check_all()
        if self.auditor.messages:
            raise Violation("nothing is lost", f"{len(self.auditor.messages)} never drain")
        missing = self.acknowledged - self.auditor.gone.keys()
        if missing:
            raise Violation("nothing is lost", f"{len(missing)} acknowledged messages are gone")

    def _open_the_gates(self) -> None:
        for family in sorted({family_of(name) for name in self.machine.state.unloaded}):
            self.load_group(family)
        for throttle_key in self.profile.throttle_names():
            self.apply(SetConfig(f"throttle.{throttle_key.decode()}", ""))
        for name, queue in self.machine.state.queues.items():
            self.apply(ResumeQueue(name))
            for fairness_key in list(queue.key_pauses):
                self.apply(ResumeKey(name, fairness_key))
        for client in list(self.clients.alive.values()):
            self.clients.remove(client.id)
            self.apply(Leave(client.queue, client.id, release=True))
        self._consume_all()

    def _consume_all(self) -> None:
        """Whoever has no consumer gets one: dead letters' queues may be made anew meanwhile."""
        served = {client.queue for client in self.clients.alive.values()}
        for name in [name for name in self.machine.state.queues if name not in served]:
            client = self.clients.connect(name)
            client.temper = "quick"
            self.apply(Consume(name, client.id, client.connection, 64, 1 << 20))

    def _answer_all(self) -> None:
        self._consume_all()
        for client in list(self.clients.alive.values()):
            ids = list(client.held)
            client.held.clear()
            if ids:
                self.workload.settle(self, client.queue, ids, client.connection)
