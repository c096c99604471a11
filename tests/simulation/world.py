"""One seed's world: the production machine and commit path on a simulated disk and clock.

Everything random comes from the seed's one generator. The world lets the broker die at any commit
boundary and starts it again from what the disk holds.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable
from random import Random

from fila.core.command import (
    Command,
    Consume,
    Enqueue,
    EnqueueKeyed,
    Expire,
    ExpireBatch,
    Leave,
    ResumeKey,
    ResumeQueue,
    SetConfig,
)
from fila.core.effects import Effects
from fila.core.load import load
from fila.core.machine import Machine, Reply
from fila.core.rows import ID_AT
from fila.storage.committer import FsyncCommitter, OsCommitter
from fila.storage.contract import StoreError
from fila.storage.memory import MemoryStore

from . import comparing, disk, profile
from .auditor import Auditor
from .clients import Clients
from .profile import Profile
from .turn import Step, Turn, Violation
from .workload import Workload

MS = 1_000_000
SECOND = 1_000 * MS
HOUR = 3_600 * SECOND
START_NS = 1_700_000_000 * SECOND
DRAIN_TURNS_MAX = 3_000


class Died(BaseException):
    """The process is gone: between a write and the release of what it justified."""


class World:
    """`look_inside`: compare the machine's memory and the disk with the model, too."""

    def __init__(self, seed: int, look_inside: bool = True) -> None:
        self.look_inside = look_inside
        self.rng = rng = Random(seed)
        self.profile = Profile(rng)
        self.settings = self.profile.settings
        self.clock_ns = START_NS
        self.store = MemoryStore()
        self.committer = self._committer()
        self.machine = self._load()
        self.clients = Clients(rng)
        self.workload = Workload(rng, self.profile, self.clients)
        self.auditor = Auditor(self.settings, self.profile.journal)
        self.turn = Turn(START_NS)
        self.unreleased: list[Turn] = []  # taken from the machine, not yet let go
        self.acknowledged: set[bytes] = set()  # ids of enqueues whose reply was let go
        self.dies_at = -1  # at which release from now on the process dies; -1: not
        self.events = 0
        self.stored_max = 0  # messages one turn handled at most, since the last start
        self.crashes = 0
        self.recent: deque[Turn] = deque(maxlen=8)
        self.trace = hashlib.blake2b(digest_size=8)

    def run(self) -> None:
        self._turn(lambda: self.workload.open(self))
        for _ in range(self.profile.turns):
            self.clock_ns = self._next_time()
            self._turn(lambda: self.workload.ask(self))
            if self.rng.random() < 0.015:
                self._check_all()
        self._drain()

    def apply(self, command: Command, asked: object = None) -> Reply:
        reply = self.machine.apply(command)
        self.turn.steps.append(Step(command, reply, asked))
        return reply

    def backlog(self) -> int:
        return sum(queue.pending for queue in self.machine.state.queues.values())

    # --- a turn

    def _turn(self, ask: Callable[[], None], may_die: bool = True) -> None:
        machine = self.machine
        self.turn = turn = Turn(self.clock_ns)
        self.recent.append(turn)
        machine.advance(self.clock_ns)
        while (due := machine.due_lease()) is not None:
            queue, lease, ids = due
            self.apply(Expire(queue, lease, ids, [self.workload.verdict() for _ in ids]))
        while (run_out := machine.due_batch()) is not None:
            queue, name, ids = run_out
            self.apply(ExpireBatch(queue, name, ids, [self.workload.verdict() for _ in ids]))
        ask()
        more = machine.deliver()
        effects = machine.take()
        self._commit(turn, effects, more, may_die)

    def _commit(self, turn: Turn, effects: Effects, more: bool, may_die: bool) -> None:
        rng = self.rng
        turn.close(effects, more, self.machine.next_deadline())
        weight = turn.weight()
        self.events += weight
        self.stored_max = max(self.stored_max, weight)
        self.trace.update(turn.mark().encode())
        self.unreleased.append(turn)
        fate = rng.random() if may_die else 1.0
        crashes = self.profile.crashes
        if fate < crashes / 3 and turn.wrote:
            self._fail_write(effects)
            return
        if fate < crashes * 2 / 3:
            self.dies_at = 0
        try:
            self.committer.commit(effects.batches, lambda: self._release(turn))
            self.machine.stored()
            if isinstance(self.committer, FsyncCommitter):
                if rng.random() < 0.3 or not may_die:
                    self.committer.flush()
            elif rng.random() < 0.05:
                self.store.sync()
        except Died:
            self._restart(lost=0, whole=True)
            return
        if self.dies_at >= 0 or fate < crashes:
            # Power fails: what was not synced may be lost, from the newest on.
            lost = rng.randint(0, self.store.unsynced_writes) if self.profile.fsync else 0
            self._restart(lost, whole=lost == 0)
            return
        if self.look_inside and not self.unreleased:
            comparing.check_counts(self.auditor, self.machine)

    def _release(self, turn: Turn) -> None:
        """The committer says it is safe: the outside sees it."""
        if self.dies_at == 0:
            raise Died
        if not self.unreleased or turn is not self.unreleased.pop(0):
            raise Violation("commit order", "a turn was let go twice, or before an earlier one")
        self.auditor.replay(turn)
        for delivery in turn.deliveries:
            ids = [entry[0][ID_AT:] for entry in delivery.entries]
            self.clients.receive(delivery.consumer.id, ids)
        for ended in turn.ended:
            self.clients.remove(ended.consumer.id)
        for command, reply, _ in turn.steps:
            if isinstance(command, Enqueue) and reply is None:
                self.acknowledged.update(command.ids)
            elif isinstance(command, EnqueueKeyed) and isinstance(reply, list):
                self.acknowledged.update([one[0] for one in reply if isinstance(one, tuple)])
        for leased in turn.batches_leased:
            self.workload.batches.answered(leased)

    # --- death and restart

    def _fail_write(self, effects: Effects) -> None:
        """The disk refuses this write. Nothing of the turn may be seen, and no later write."""

        def refuse() -> None:
            raise StoreError("no space left on device")

        self.store.before_write = refuse
        turn = self.unreleased[-1]
        for _ in range(2):
            try:
                self.committer.commit(effects.batches, lambda: self._release(turn))
            except StoreError:
                self.store.before_write = None  # the second time it refuses by itself
            else:
                raise Violation("failed commit", "a store that failed takes further writes")
            if not self.unreleased or self.unreleased[-1] is not turn:
                raise Violation("failed commit", "effects were let go although the write failed")
        self.unreleased.pop()
        lost = self.rng.randint(0, self.store.unsynced_writes) if self.profile.fsync else 0
        self._restart(lost, whole=False)

    def _restart(self, lost: int, whole: bool) -> None:
        """Start again from the disk. `whole`: it holds everything the dead machine knew."""
        self.crashes += 1
        self.stored_max = 0
        self.dies_at = -1
        written = sum(turn.wrote for turn in self.unreleased) - lost
        for turn in self.unreleased:
            if written <= 0:
                break
            written -= turn.wrote
            self.auditor.replay(turn)
        self.unreleased = []
        self.clients.lose_all()
        self.workload.batches.lose_all()
        self.store = self.store.crash(lost)
        self.committer = self._committer()
        self.clock_ns = self._time_after_restart()
        before = self.machine
        self._change_settings()
        self.machine = self._load()
        self.auditor.restart(self.clock_ns)
        if self.machine.state.now != self.auditor.now:
            raise Violation(
                "time", f"loaded at {self.machine.state.now}, should be {self.auditor.now}"
            )
        self.clock_ns = self.machine.state.now
        if not self.look_inside:
            return
        comparing.check_memory(self.auditor, self.machine, self.stored_max)
        disk.check_store(self.auditor, self.machine, self.store)
        if whole:
            disk.check_rebuilt(before, self.machine)

    def _change_settings(self) -> None:
        """An operator may have edited the file; what bounds stored rows stays."""
        if self.rng.random() < 0.3:
            self.settings = profile.settings(self.rng)._replace(
                idle_lanes=self.settings.idle_lanes,
                ledger_mentions=self.settings.ledger_mentions,
                idempotency_keys_max=self.settings.idempotency_keys_max,
                idempotency_ms=self.settings.idempotency_ms,
            )
            self.auditor.settings = self.settings

    def _load(self) -> Machine:
        machine = load(self.store, self.settings, self.clock_ns)
        machine.state.journal = self.profile.journal
        return machine

    def _committer(self) -> OsCommitter | FsyncCommitter:
        return FsyncCommitter(self.store) if self.profile.fsync else OsCommitter(self.store)

    # --- time

    def _next_time(self) -> int:
        rng = self.rng
        now = self.clock_ns
        deadline_ns = self.machine.next_deadline()
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
        again = load(self.store, self.settings, self.clock_ns)
        disk.check_rebuilt(self.machine, again)
        if not self.unreleased:
            comparing.check_memory(self.auditor, self.machine, self.stored_max)
            disk.check_store(self.auditor, self.machine, self.store)

    def _drain(self) -> None:
        """Consume everything there is: nothing that was acknowledged may be missing."""
        self.profile.failures = self.profile.dead = self.profile.released = 0.0
        self._turn(self._open_the_gates, may_die=False)
        for _ in range(DRAIN_TURNS_MAX):
            if not self.auditor.messages:
                break
            if not any(client.held for client in self.clients.alive.values()):
                self.clock_ns = max(self.machine.next_deadline(), self.clock_ns)
            self._turn(self._answer_all, may_die=False)
        self._check_all()
        if self.auditor.messages:
            raise Violation("nothing is lost", f"{len(self.auditor.messages)} never drain")
        missing = self.acknowledged - self.auditor.gone.keys()
        if missing:
            raise Violation("nothing is lost", f"{len(missing)} acknowledged messages are gone")

    def _open_the_gates(self) -> None:
        for throttle_key in self.profile.throttle_names():
            self.apply(SetConfig(f"throttle.{throttle_key.decode()}", ""))
        for name, queue in self.machine.state.queues.items():
            self.apply(ResumeQueue(name))
            for fairness_key in list(queue.key_pauses):
                self.apply(ResumeKey(name, fairness_key))
        for client in list(self.clients.alive.values()):
            self.clients.remove(client.id)
            self.apply(Leave(client.queue, client.id, release=True))
        for name in list(self.machine.state.queues):
            client = self.clients.connect(name)
            client.temper = "quick"
            self.apply(Consume(name, client.id, client.connection, 64, 1 << 20))

    def _answer_all(self) -> None:
        for client in list(self.clients.alive.values()):
            ids = list(client.held)
            client.held.clear()
            if ids:
                self.workload.settle(self, client.queue, ids, client.connection)
