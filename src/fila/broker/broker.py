"""The broker: one loop, one order.

Whatever arrives during one round of the event loop is applied at once and answered at the turn's
end: leases that ran out, one delivery pass, **one** commit for all of it, and then the replies and
deliveries it justifies. A busy broker so commits hundreds of messages together, an idle one commits
a single message without waiting for anybody. A fault stops the process; it is never papered over.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol, cast

from fila.broker.clock import Clock
from fila.broker.ids import Ids
from fila.broker.options import Options, assignment_of
from fila.broker.overrides import fault_of, limits_of, override_of
from fila.broker.purges import Purges
from fila.core import rejection
from fila.core.command import (
    Ack,
    AckBatch,
    Command,
    Consume,
    CreateQueue,
    DeleteQueue,
    Enqueue,
    EnqueueKeyed,
    Expire,
    ExpireBatch,
    ExtendBatch,
    HandBack,
    Hold,
    Lease,
    Leave,
    Nack,
    PauseKey,
    PauseQueue,
    Redrive,
    Release,
    ReleaseBatch,
    ResumeKey,
    ResumeQueue,
    SetConfig,
    StoreAuth,
    Withdraw,
)
from fila.core.effect import BatchLeased, Delivery
from fila.core.effects import Effects
from fila.core.lane import BODY, KEY
from fila.core.machine import Machine, Reply
from fila.core.rejection import Rejection
from fila.core.rows import ID_AT
from fila.core.settlement import VISIBILITY_EXPIRED
from fila.core.snapshot import snapshot
from fila.core.trail import Trail
from fila.core.verdict import DEFAULT_ASSIGNMENT, RETRY_NOW, Assignment, FailureVerdict
from fila.hooks.contract import HookError, Hooks, QueueHookStats
from fila.storage.committer import Committer

if TYPE_CHECKING:
    from fila.broker.bulk import Wanted

log = logging.getLogger("fila.broker")

_EXPIRED_PER_TURN = 2_048  # messages of leases that end in one turn, and as many of batches
_NS = 1_000_000_000


class Sink(Protocol):
    """Where effects go once they are committed: one client connection."""

    def send(self, data: bytes) -> None: ...

    def deliver(self, delivery: Delivery) -> None: ...

    def consumer_ended(self, consumer: str, why: Rejection) -> None: ...

    def flush(self) -> None: ...


class Recorder(Protocol):
    """Who wants to know what happened, once it is committed: the journal."""

    wants_messages: bool

    def record(self, trail: Trail) -> None: ...

    def record_messages(
        self, queue: str, now_ns: int, ids: list[bytes], bodies: list[bytes]
    ) -> None: ...


class Watcher(Protocol):
    """Who measures: told once per committed turn what went out, and per batch what failed."""

    def delivered(self, deliveries: list[Delivery]) -> None: ...

    def failed(
        self, queue: str, ids: list[bytes], errors: list[str], verdicts: list[FailureVerdict]
    ) -> None: ...


class _RedriveJob:
    """A redrive under way: it moves a few messages per turn until its count is reached."""

    def __init__(self, queue: str, left: int, done: Callable[[int], None]) -> None:
        self.queue = queue
        self.left = left
        self.moved = 0
        self.done = done


class Broker:
    def __init__(
        self,
        machine: Machine,
        committer: Committer,
        hooks: Hooks,
        clock: Clock,
        ids: Ids,
        loop: asyncio.AbstractEventLoop,
        on_fault: Callable[[BaseException], None],
        recorder: Recorder | None = None,
    ) -> None:
        self._machine = machine
        self._recorder = recorder
        machine.state.journal = recorder is not None
        self._committer = committer
        self._hooks = hooks
        self._clock = clock
        self._ids = ids
        self._loop = loop
        self._on_fault = on_fault
        self._turn_open = False
        self._stopped = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ns = 0  # when it rings
        self._outbox: list[tuple[Sink, bytes]] = []
        self._after_commit: list[Callable[[], None]] = []
        self._sinks: dict[str, Sink] = {}
        self._redrives: list[_RedriveJob] = []
        self._leasing: dict[int, Callable[[BatchLeased], Sink]] = {}  # who waits for a batch
        self._leases_asked = 0
        self._purges = Purges(machine, self._apply)
        self._connections = 0
        self._consumers = 0
        self.watcher: Watcher | None = None
        self.begin()  # leases that ran out while the broker was down

    @property
    def machine(self) -> Machine:
        return self._machine

    def next_connection(self) -> int:
        self._connections += 1
        return self._connections

    # --- the turn

    def begin(self) -> None:
        """Open a turn, unless one is open: time passes, and the turn's end is arranged."""
        if not self._turn_open and not self._stopped:
            self._turn_open = True
            self._loop.call_soon(self._end_turn)
            try:
                self._machine.advance(self._clock.now_ns())
            except BaseException as error:
                self.fault(error)
                raise

    def reply(self, sink: Sink, data: bytes) -> None:
        """Send `data` when everything this turn did is committed."""
        self._outbox.append((sink, data))

    def after_commit(self, call: Callable[[], None]) -> None:
        """Call when everything this turn did is committed."""
        self._after_commit.append(call)

    def fault(self, error: BaseException) -> None:
        """Something that must not happen did. Nothing more is applied, committed or sent."""
        if not self._stopped:
            self.stop()
            self._on_fault(error)

    def call_later(self, delay_s: float, call: Callable[[], None]) -> None:
        """For what is not the machine's to remember."""
        self._loop.call_later(delay_s, call)

    def stop(self) -> None:
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()

    def _apply(self, command: Command) -> Reply:
        """A command that breaks off half-applied is a fault, whoever catches the exception."""
        try:
            return self._machine.apply(command)
        except BaseException as error:
            self.fault(error)
            raise

    def _end_turn(self) -> None:
        if self._stopped:
            return
        machine = self._machine
        try:
            self._expire()
            self._step_redrives()
            for done in self._purges.step():
                self._after_commit.append(done)
            more = machine.deliver()
            effects = machine.take()
            outbox, self._outbox = self._outbox, []
            calls, self._after_commit = self._after_commit, []
            self._turn_open = False
            batches = effects.batches
            told = effects._replace(batches=[])  # rows are not kept in memory until a flush
            self._committer.commit(batches, lambda: self._release(outbox, told, calls))
            machine.stored()
            if more or self._redrives or self._purges:
                self.begin()
            else:
                self._arm()
        except BaseException as error:
            self.fault(error)

    def _release(
        self,
        outbox: list[tuple[Sink, bytes]],
        effects: Effects,
        calls: list[Callable[[], None]],
    ) -> None:
        if self._stopped:
            return
        served: dict[Sink, None] = {}
        dirty: dict[Sink, None] = {}
        for sink, data in outbox:
            sink.send(data)
            dirty[sink] = None
        for delivery in effects.deliveries:
            to = self._sinks.get(delivery.consumer.id)
            if to is not None:
                to.deliver(delivery)
                served[to] = None
        for sink in served:
            sink.flush()  # a waiting consumer comes before a producer's answer
            dirty.pop(sink, None)
        for leased in effects.batches_leased:
            done = self._leasing.pop(leased.request, None)
            if done is not None:
                dirty[done(leased)] = None
        for ended in effects.ended:
            to = self._sinks.pop(ended.consumer.id, None)
            if to is not None:
                gone = rejection.queue_not_found(ended.consumer.queue.name)
                to.consumer_ended(ended.consumer.id, gone)
                dirty[to] = None
        for sink in dirty:
            sink.flush()
        if effects.deliveries and self.watcher is not None:
            self.watcher.delivered(effects.deliveries)
        if effects.events and self._recorder is not None:
            self._recorder.record(effects.events)
        for call in calls:
            call()

    def _arm(self) -> None:
        """Wake for what the machine wants next; nothing polls. A timer that would ring too early
        is left alone: it is set again when it has rung, and most turns need none of their own."""
        at_ns = self._machine.next_deadline()
        if not at_ns:
            return
        if self._timer is not None:
            if self._timer_ns <= at_ns:
                return
            self._timer.cancel()
        delay = max(0.0, (at_ns - self._clock.now_ns()) / _NS)
        self._timer_ns = at_ns
        self._timer = self._loop.call_later(delay, self._ring)

    def _ring(self) -> None:
        self._timer = None
        self.begin()

    def _expire(self) -> None:
        """End leases that ran out; a failure hook decides about each message."""
        machine = self._machine
        ended = 0
        while ended < _EXPIRED_PER_TURN:
            due = machine.due_lease()
            if due is None:
                break
            queue, lease, ids = due
            errors = [VISIBILITY_EXPIRED] * len(ids)
            verdicts = self._verdicts(queue, ids, errors, 0)
            self._apply(Expire(queue, lease, ids, verdicts))
            ended += max(len(ids), 1)
            if self.watcher is not None:
                self.watcher.failed(queue, ids, errors, verdicts)
        ended = 0
        while ended < _EXPIRED_PER_TURN:
            run_out = machine.due_batch()
            if run_out is None:
                return
            queue, name, ids = run_out
            errors = [VISIBILITY_EXPIRED] * len(ids)
            verdicts = self._verdicts(queue, ids, errors, 0)
            count = self._apply(ExpireBatch(queue, name, ids, verdicts))
            ended += max(count, 1) if isinstance(count, int) else 1
            if self.watcher is not None and ids:
                self.watcher.failed(queue, ids, errors, verdicts)

    def record_snapshot(self, keys_max: int) -> None:
        """Tell the journal what every key holds, as of this turn."""
        self.begin()
        state = self._machine.state
        state.events.extend(snapshot(state, keys_max))

    # --- what clients ask

    def enqueue(self, queue: str, bodies: list[bytes]) -> list[bytes] | Rejection:
        """Store messages; their ids count once this turn is committed."""
        self.begin()
        state = self._machine.state
        if queue not in state.queues:
            return rejection.queue_not_found(queue)
        ids = self._ids.take(len(bodies), state.now)
        assignments = self._assign(queue, bodies)
        self._apply(Enqueue(queue, ids, bodies, assignments))
        if self._recorder is not None and self._recorder.wants_messages:
            record = partial(self._recorder.record_messages, queue, state.now, ids, bodies)
            self._after_commit.append(record)
        return ids

    def enqueue_with(
        self, queue: str, messages: list[Options]
    ) -> list[tuple[bytes, bool]] | Rejection:
        """Store messages with options; an id for each, and whether its key was known already."""
        self.begin()
        state = self._machine.state
        if queue not in state.queues:
            return rejection.queue_not_found(queue)
        bodies = [one.body for one in messages]
        ids = self._ids.take(len(bodies), state.now)
        if self._hooks.has_on_enqueue(queue):
            assignments = self._assign(queue, bodies)
        else:
            assignments = [assignment_of(one) for one in messages]
        delays = [one.delay_ms for one in messages]
        keys = [one.idempotency_key for one in messages]
        if any(keys):
            stored = self._apply(EnqueueKeyed(queue, ids, bodies, assignments, delays, keys))
            results = cast(list[tuple[bytes, bool]], stored)
        else:
            self._apply(Enqueue(queue, ids, bodies, assignments, delays))
            results = [(id, False) for id in ids]
        if self._recorder is not None and self._recorder.wants_messages:
            new = [place for place, (_, duplicate) in enumerate(results) if not duplicate]
            record = partial(
                self._recorder.record_messages,
                queue,
                state.now,
                [ids[place] for place in new],
                [bodies[place] for place in new],
            )
            self._after_commit.append(record)
        return results

    def release(self, queue: str, ids: list[bytes], connection: int) -> list[int] | Rejection:
        """Hand single messages back, without counting an attempt."""
        self.begin()
        return _codes(self._apply(Release(queue, ids, connection)))

    def lease_batch(
        self, queue: str, name: str, wanted: Wanted, done: Callable[[BatchLeased], Sink]
    ) -> int | Rejection:
        """Ask for a batch; `done` gets it when it is committed. Returns the request's number."""
        self.begin()
        self._leases_asked += 1
        request = self._leases_asked
        reply = self._apply(Lease(queue, name, request, *wanted))
        if isinstance(reply, Rejection):
            return reply
        self._leasing[request] = done
        return request

    def withdraw(self, queue: str, name: str, request: int) -> None:
        """Nobody waits for that batch any more."""
        self._leasing.pop(request, None)
        if not self._stopped:
            self.begin()
            self._apply(Withdraw(queue, name, request))

    def ack_batch(self, queue: str, name: str, below: int | None) -> tuple[int, int] | Rejection:
        self.begin()
        return _counts(self._apply(AckBatch(queue, name, below)))

    def extend_batch(
        self, queue: str, name: str, visibility_ms: int, below: int | None
    ) -> tuple[int, int] | Rejection:
        self.begin()
        return _counts(self._apply(ExtendBatch(queue, name, visibility_ms, below)))

    def release_batch(
        self, queue: str, name: str, below: int | None
    ) -> tuple[int, int] | Rejection:
        self.begin()
        return _counts(self._apply(ReleaseBatch(queue, name, below)))

    def ack(self, queue: str, ids: list[bytes], connection: int) -> list[int] | Rejection:
        self.begin()
        return _codes(self._apply(Ack(queue, ids, connection)))

    def nack(
        self, queue: str, ids: list[bytes], errors: list[str], connection: int
    ) -> list[int] | Rejection:
        self.begin()
        verdicts = self._verdicts(queue, ids, errors, connection)
        if self.watcher is not None:
            self.watcher.failed(queue, ids, errors, verdicts)
        return _codes(self._apply(Nack(queue, ids, errors, verdicts, connection)))

    def consume(self, queue: str, connection: int, sink: Sink, prefetch: int) -> str | Rejection:
        """Open a consumer; deliveries to `sink` begin with this turn's end. Returns its id."""
        self.begin()
        self._consumers += 1
        consumer = f"c{connection}-{self._consumers}"
        reply = self._apply(Consume(queue, consumer, connection, prefetch))
        if isinstance(reply, Rejection):
            return reply
        self._sinks[consumer] = sink
        return consumer

    def leave(self, queue: str, consumer: str, release: bool) -> None:
        """End a consumer; `release` hands back what it holds."""
        self._sinks.pop(consumer, None)
        if not self._stopped:
            self.begin()
            self._apply(Leave(queue, consumer, release))

    def hold(self, queue: str, consumer: str, held: bool) -> None:
        """Hand a consumer nothing more while its client does not take what it has."""
        if not self._stopped:
            self.begin()
            self._apply(Hold(queue, consumer, held))

    def hand_back(self, queue: str, connection: int) -> None:
        """Hand back everything consumers of this connection hold, the departed ones included."""
        self.begin()
        self._apply(HandBack(queue, connection))

    def create_queue(
        self, queue: str, on_enqueue: str | None, on_failure: str | None, visibility_ms: int
    ) -> Rejection | None:
        self.begin()
        try:
            self._hooks.check(on_enqueue, on_failure)
        except HookError as error:
            return Rejection(rejection.LUA_COMPILATION_ERROR, str(error))
        reply = self._apply(CreateQueue(queue, on_enqueue, on_failure, visibility_ms))
        if isinstance(reply, Rejection):
            return reply
        self.install_hooks(queue)
        return None

    def delete_queue(self, queue: str) -> Rejection | None:
        self.begin()
        reply = self._apply(DeleteQueue(queue))
        if isinstance(reply, Rejection):
            return reply
        self._hooks.remove(queue)
        return None

    def set_config(self, key: str, value: str) -> Rejection | None:
        self.begin()
        override = override_of(key)
        if override is not None and value:
            fault = fault_of(override, value)
            if fault is not None:
                return rejection.invalid_value(key, fault)
        reply = self._apply(SetConfig(key, value))
        if isinstance(reply, Rejection):
            return reply
        self._hooks.config_changed()
        if override is not None and override.queue in self._machine.state.queues:
            self.install_hooks(override.queue)
        return None

    def store_auth(self, key: bytes, value: bytes | None) -> None:
        """Keep a row about API keys; None removes it."""
        self.begin()
        self._apply(StoreAuth(key, value))

    def redrive(self, queue: str, count: int, done: Callable[[int], None]) -> Rejection | None:
        """Move dead letters back, a few per turn; `done` gets the number once it is committed."""
        self.begin()
        available = self._machine.redrivable(queue)
        if isinstance(available, Rejection):
            return available
        self._redrives.append(_RedriveJob(queue, min(count or available, available), done))
        return None

    def redriving(self, queue: str) -> bool:
        """Whether dead letters of this queue are being moved."""
        return any(job.queue == queue for job in self._redrives)

    def purge(
        self, queue: str, fairness_key: bytes | None, who: str, done: Callable[[int], None]
    ) -> Rejection | None:
        """Drop what is pending, some lanes per turn; `done` gets the number once committed."""
        self.begin()
        return self._purges.start(queue, fairness_key, who, done)

    def pause_queue(self, queue: str, reason: str, who: str) -> Rejection | None:
        return self._stop(PauseQueue(queue, reason, who))

    def resume_queue(self, queue: str, who: str) -> Rejection | None:
        return self._stop(ResumeQueue(queue, who))

    def pause_key(self, queue: str, key: bytes, reason: str, who: str) -> Rejection | None:
        return self._stop(PauseKey(queue, key, reason, who))

    def resume_key(self, queue: str, key: bytes, who: str) -> Rejection | None:
        return self._stop(ResumeKey(queue, key, who))

    def _stop(self, command: PauseQueue | ResumeQueue | PauseKey | ResumeKey) -> Rejection | None:
        self.begin()
        reply = self._apply(command)
        return reply if isinstance(reply, Rejection) else None

    # --- hooks

    def hook_stats(self, queue: str) -> QueueHookStats:
        """What the queue's hooks did so far, and the state of their breakers."""
        return self._hooks.stats(queue)

    def install_hooks(self, queue: str) -> None:
        """Put a queue's stored scripts to work; one that no longer compiles means defaults."""
        found = self._machine.state.queues[queue]
        limits = limits_of(queue, self._machine.state.config)
        self._hooks.install(
            queue, found.on_enqueue, found.on_failure, strict=False, **limits._asdict()
        )

    def _assign(self, queue: str, bodies: list[bytes]) -> list[Assignment]:
        if self._hooks.has_on_enqueue(queue):
            return self._hooks.on_enqueue(queue, bodies, self._machine.state.now)
        return [DEFAULT_ASSIGNMENT] * len(bodies)

    def _verdicts(
        self, queue: str, ids: list[bytes], errors: list[str], connection: int
    ) -> list[FailureVerdict]:
        """What the failure hook says of each message; those a nack will not find need no answer."""
        verdicts = [RETRY_NOW] * len(ids)
        if not self._hooks.has_on_failure(queue):
            return verdicts
        asked = []
        places = []
        for place, id in enumerate(ids):
            failed = self._machine.failed(queue, id, connection)
            if failed is not None:
                asked.append((id, failed.attempts, errors[place].encode(), failed.body))
                places.append(place)
        answers = self._hooks.on_failure(queue, asked, self._machine.state.now)
        for place, answer in zip(places, answers, strict=True):
            verdicts[place] = answer
        return verdicts

    def _step_redrives(self) -> None:
        machine = self._machine
        step = machine.state.settings.redrive_messages
        for job in list(self._redrives):
            entries = machine.oldest(job.queue, min(step, job.left))
            parent = job.queue.removesuffix(".dlq")
            moved = 0
            if entries:
                assignments = self._assign(parent, [entry[BODY] for entry in entries])
                ids = [entry[KEY][ID_AT:] for entry in entries]
                reply = self._apply(Redrive(job.queue, ids, assignments))
                moved = reply if isinstance(reply, int) else 0
            job.moved += moved
            job.left -= moved
            if job.left <= 0 or moved == 0:
                self._redrives.remove(job)
                self._after_commit.append(lambda job=job: job.done(job.moved))  # type: ignore[misc]


def _codes(reply: object) -> list[int] | Rejection:
    assert isinstance(reply, list | Rejection)
    return reply


def _counts(reply: object) -> tuple[int, int] | Rejection:
    assert isinstance(reply, tuple)
    return cast(tuple[int, int] | Rejection, reply)
