"""The broker: what clients may ask of it, each a command of the turn that is open (`turns.py`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from fila.broker.clock import Clock
from fila.broker.ids import Ids
from fila.broker.options import Options, assignment_of
from fila.broker.outbox import Recorder, Sink, Watcher
from fila.broker.overrides import fault_of, limits_in, limits_of, override_of
from fila.broker.refused import FULL, with_refused
from fila.broker.turns import Turns
from fila.core import rejection, versions
from fila.core.command import (
    Ack,
    AckBatch,
    Consume,
    CreateQueue,
    DeleteQueue,
    Enqueue,
    EnqueueKeyed,
    Extend,
    ExtendBatch,
    HandBack,
    Hold,
    Lease,
    Leave,
    PauseKey,
    PauseQueue,
    Release,
    ReleaseBatch,
    ResumeKey,
    ResumeQueue,
    SetConfig,
    SetOverride,
    StoreAuth,
    UpdateQueue,
    Withdraw,
)
from fila.core.effect import BatchLeased
from fila.core.jobs import Done
from fila.core.machine import Machine
from fila.core.reader import StoreDamagedError
from fila.core.reclassify_job import Document
from fila.core.rejection import Rejection
from fila.core.room import Crowded
from fila.core.turn import Committer
from fila.core.verdict import Assignment
from fila.hooks.contract import HookError, Hooks, QueueHookStats

if TYPE_CHECKING:
    from fila.broker.lease_requests import Wanted

__all__ = ["Broker", "Recorder", "Sink", "Watcher"]


class Broker(Turns):
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
        self._hooks = hooks
        self._ids = ids
        self._records_messages = recorder if recorder and recorder.wants_messages else None
        self._leases_asked = 0
        self._connections = 0
        self._consumers = 0
        super().__init__(machine, committer, hooks, clock, loop, on_fault, recorder)

    def next_connection(self) -> int:
        self._connections += 1
        return self._connections

    def enqueue(self, queue: str, bodies: list[bytes]) -> list[bytes] | Rejection:
        """Store messages; their ids count once this turn is committed. Instead of an id stands
        nothing for a message whose hook has no verdict, where the queue's fail mode is `reject`,
        and FULL for one that there was no room for; a Rejection if there was room for none."""
        self.begin()
        if not self._machine.view.has_queue(queue):
            return self._machine.view.no_queue(queue)
        assignments = self._turn.assign(queue, bodies)
        refused = self._hooks.refused(queue)
        if not refused:
            return self._store(queue, bodies, assignments)
        kept = sorted({*range(len(bodies))}.difference(refused))
        ids = self._store(queue, [bodies[at] for at in kept], [assignments[at] for at in kept])
        if isinstance(ids, Rejection):
            return ids
        stored = dict(zip(kept, ids, strict=True))
        return [stored.get(at, b"") for at in range(len(bodies))]

    def enqueue_with(
        self, queue: str, messages: list[Options]
    ) -> list[tuple[bytes, bool]] | Rejection:
        """Store messages with options; an id for each, as in `enqueue`, and whether its key was
        known already."""
        self.begin()
        if not self._machine.view.has_queue(queue):
            return self._machine.view.no_queue(queue)
        if not self._hooks.has_on_enqueue(queue):
            return self._store_with(queue, messages, [assignment_of(one) for one in messages])
        assignments = self._turn.assign(queue, [one.body for one in messages])
        refused = self._hooks.refused(queue)
        if not refused:
            return self._store_with(queue, messages, assignments)
        kept = sorted({*range(len(messages))}.difference(refused))
        results = self._store_with(
            queue, [messages[at] for at in kept], [assignments[at] for at in kept]
        )
        if isinstance(results, Rejection):
            return results
        stored = dict(zip(kept, results, strict=True))
        return [stored.get(at, (b"", False)) for at in range(len(messages))]

    def _store(
        self, queue: str, bodies: list[bytes], assignments: list[Assignment]
    ) -> list[bytes] | Rejection:
        now_ns = self._machine.view.now_ns
        ids = self._ids.take(len(bodies), now_ns)
        crowded = self._turn.apply(Enqueue(queue, ids, bodies, assignments))
        if isinstance(crowded, Rejection):
            return crowded
        if crowded is not None and crowded.refused:
            return self._stored_in_part(queue, ids, bodies, crowded)
        if self._records_messages is not None:
            record = self._records_messages.record_messages
            self._turn.after_commit(partial(record, queue, now_ns, ids, bodies))
        return ids

    def _store_with(
        self, queue: str, messages: list[Options], assignments: list[Assignment]
    ) -> list[tuple[bytes, bool]] | Rejection:
        now_ns = self._machine.view.now_ns
        bodies = [one.body for one in messages]
        ids = self._ids.take(len(bodies), now_ns)
        delays = [one.delay_ms for one in messages]
        keys = [one.idempotency_key for one in messages]
        if any(keys):
            keyed = EnqueueKeyed(queue, ids, bodies, assignments, delays, keys)
            results = self._turn.apply(keyed)
            if isinstance(results, Rejection):
                return results
            if isinstance(results, Crowded):
                if results.why is not None and len(results.refused) == len(ids):
                    return results.why
                results = with_refused(results.results, results.refused)
        else:
            crowded = self._turn.apply(Enqueue(queue, ids, bodies, assignments, delays))
            if isinstance(crowded, Rejection):
                return crowded
            results = [(id, False) for id in ids]
            if crowded is not None and crowded.refused:
                stored = self._stored_in_part(queue, ids, bodies, crowded)
                if isinstance(stored, Rejection):
                    return stored
                return [(id, False) for id in stored]
        if self._records_messages is not None:
            new = [at for at, (id, known) in enumerate(results) if not known and id != FULL]
            record = self._records_messages.record_messages
            new_ids = [ids[at] for at in new]
            new_bodies = [bodies[at] for at in new]
            self._turn.after_commit(partial(record, queue, now_ns, new_ids, new_bodies))
        return results

    def _stored_in_part(
        self, queue: str, ids: list[bytes], bodies: list[bytes], crowded: Crowded
    ) -> list[bytes] | Rejection:
        """The ids of those there was room for; why there was none, if it was none at all."""
        if crowded.why is not None and len(crowded.refused) == len(ids):
            return crowded.why
        kept = sorted({*range(len(ids))}.difference(crowded.refused))
        if self._records_messages is not None:
            now_ns = self._machine.view.now_ns
            record = self._records_messages.record_messages
            own = [ids[at] for at in kept], [bodies[at] for at in kept]
            self._turn.after_commit(partial(record, queue, now_ns, *own))
        return [id for id, _ in with_refused([(ids[at], False) for at in kept], crowded.refused)]

    def release(self, queue: str, ids: list[bytes], connection: int) -> list[int] | Rejection:
        """Hand single messages back, without counting an attempt."""
        self.begin()
        return self._turn.apply(Release(queue, ids, connection))

    def extend(
        self, queue: str, ids: list[bytes], visibility_ms: int, connection: int
    ) -> list[int] | Rejection:
        """Let leases of messages end so much later than now."""
        self.begin()
        return self._turn.apply(Extend(queue, ids, visibility_ms, connection))

    def lease_batch(
        self,
        queue: str,
        name: str,
        wanted: Wanted,
        done: Callable[[BatchLeased], Sink | None],
        part: tuple[int, int] = (0, 0),
    ) -> int | Rejection:
        """Ask for a batch. `done` gets its messages once it is committed; of a batch that is open
        already, the part of them that `part` names. Returns the request's number."""
        self.begin()
        self._leases_asked += 1
        request = self._leases_asked
        reply = self._turn.apply(Lease(queue, name, request, *wanted, *part))
        if isinstance(reply, Rejection):
            return reply
        self._outbox.leasing[request] = done
        return request

    def withdraw(self, queue: str, name: str, request: int) -> None:
        """The batch is no longer waited for."""
        self._outbox.leasing.pop(request, None)
        if not self._stopped:
            self.begin()
            self._turn.apply(Withdraw(queue, name, request))

    def ack_batch(
        self, queue: str, name: str, below: int | None, before: int
    ) -> tuple[int, int, int] | Rejection:
        """A step of it; the last number is the next one's `before`."""
        self.begin()
        return self._turn.apply(AckBatch(queue, name, below, before))

    def extend_batch(
        self, queue: str, name: str, visibility_ms: int, below: int | None
    ) -> tuple[int, int] | Rejection:
        self.begin()
        return self._turn.apply(ExtendBatch(queue, name, visibility_ms, below))

    def release_batch(
        self, queue: str, name: str, below: int | None, before: int
    ) -> tuple[int, int, int] | Rejection:
        """A step of it, as with an ack."""
        self.begin()
        return self._turn.apply(ReleaseBatch(queue, name, below, before))

    def ack(self, queue: str, ids: list[bytes], connection: int) -> list[int] | Rejection:
        self.begin()
        return self._turn.apply(Ack(queue, ids, connection))

    def nack(
        self, queue: str, ids: list[bytes], errors: list[str], connection: int
    ) -> list[int] | Rejection:
        self.begin()
        try:
            command = self._turn.nack(queue, ids, errors, connection)  # its hook has them read
        except StoreDamagedError as error:
            return self.set_apart(error)
        return self._turn.apply(command)

    def consume(
        self, queue: str, connection: int, sink: Sink, prefetch: int, prefetch_bytes: int = 0
    ) -> str | Rejection:
        """Open a consumer; deliveries to `sink` begin with this turn's end. Returns its id."""
        self.begin()
        self._consumers += 1
        consumer = f"c{connection}-{self._consumers}"
        reply = self._turn.apply(Consume(queue, consumer, connection, prefetch, prefetch_bytes))
        if isinstance(reply, Rejection):
            return reply
        self._outbox.sinks[consumer] = sink
        return consumer

    def consumers(self) -> int:
        """Open consumers and waiting lease requests, of all connections."""
        return len(self._outbox.sinks) + len(self._outbox.leasing)

    def leave(self, queue: str, consumer: str, release: bool) -> None:
        """End a consumer; `release` hands back what it holds."""
        self._outbox.sinks.pop(consumer, None)
        if not self._stopped:
            self.begin()
            self._turn.apply(Leave(queue, consumer, release))

    def depart(self, queue: str, consumer: str) -> None:
        """End one consumer; what it holds stays leased, and what turns before this one gave it
        still reaches its sink."""
        self.begin()
        self._turn.apply(Leave(queue, consumer))
        self.after_commit(partial(self._forget, consumer))

    def _forget(self, consumer: str) -> None:
        self._outbox.sinks.pop(consumer, None)

    def hold(self, queue: str, consumer: str, held: bool) -> None:
        """Hand a consumer nothing more while its client does not take what it has."""
        if not self._stopped:
            self.begin()
            self._turn.apply(Hold(queue, consumer, held))

    def hand_back(self, queue: str, connection: int) -> None:
        """Hand back everything consumers of this connection hold, the departed ones included."""
        self.begin()
        self._turn.apply(HandBack(queue, connection))

    def create_queue(
        self,
        queue: str,
        on_enqueue: str | None,
        on_failure: str | None,
        visibility_ms: int,
        max_attempts: int | None = None,
        cost: str | None = None,
    ) -> Rejection | None:
        self.begin()
        try:
            self._hooks.check(on_enqueue, on_failure)
        except HookError as error:
            return Rejection(rejection.LUA_COMPILATION_ERROR, str(error))
        wanted = CreateQueue(
            queue, on_enqueue, on_failure, visibility_ms, max_attempts or 0, cost or ""
        )
        reply = self._turn.apply(wanted)
        if isinstance(reply, Rejection):
            return reply
        self.install_hooks(queue)
        return None

    def update_queue(self, wanted: UpdateQueue, rehearse: bool) -> int | Rejection:
        """Change a queue's settings, all that are named or none; the version that holds then. Its
        hooks decide as they did until the new ones are known to work."""
        self.begin()
        queue = wanted.queue
        try:
            settings = self._machine.view.settings_after(wanted)
        except StoreDamagedError as error:
            return self.set_apart(error)
        if isinstance(settings, Rejection):
            return settings
        before = self._machine.view.settings_of(queue)
        about_hooks = any(settings[name] != before[name] for name in versions.ABOUT_HOOKS)
        if about_hooks:
            limits = limits_in(queue, settings)
            if isinstance(limits, Rejection):
                return limits
            scripts = [settings[name] or None for name in versions.SCRIPTS]
            try:
                self._hooks.rehearse(queue, *scripts, **limits._asdict(), on_messages=rehearse)
            except HookError as error:
                return Rejection(rejection.LUA_COMPILATION_ERROR, str(error))
        reply = self._turn.apply(wanted)
        if about_hooks and not isinstance(reply, Rejection):
            self._hooks.config_changed()
            self.install_hooks(queue)
        return reply

    def delete_queue(self, queue: str) -> Rejection | None:
        self.begin()
        reply = self._turn.apply(DeleteQueue(queue))
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
        reply = self._turn.apply(SetConfig(key, value))
        if isinstance(reply, Rejection):
            return reply
        self._hooks.config_changed()
        if override is not None and self._machine.view.has_queue(override.queue):
            self.install_hooks(override.queue)
        return None

    def store_auth(self, key: bytes, value: bytes | None) -> None:
        """Keep a row about API keys; None removes it."""
        self.begin()
        self._turn.apply(StoreAuth(key, value))

    def redrive(self, queue: str, count: int, done: Done) -> Rejection | None:
        """Move dead letters back, a few per turn; `done` gets the number once it is committed, or
        why it ended before its time."""
        self.begin()
        return self._turn.redrive(queue, count, done)

    def redriving(self, queue: str) -> bool:
        """Whether dead letters of this queue are being moved."""
        return self._turn.redriving(queue)

    def purge(
        self, queue: str, fairness_key: bytes | None, who: str, done: Done
    ) -> Rejection | None:
        """Drop what is pending, some lanes per turn; `done` as of a redrive."""
        self.begin()
        return self._turn.purge(queue, fairness_key, who, done)

    def pause_queue(self, queue: str, reason: str, who: str) -> Rejection | None:
        return self._steer(PauseQueue(queue, reason, who))

    def resume_queue(self, queue: str, who: str) -> Rejection | None:
        return self._steer(ResumeQueue(queue, who))

    def pause_key(self, queue: str, key: bytes, reason: str, who: str) -> Rejection | None:
        return self._steer(PauseKey(queue, key, reason, who))

    def resume_key(self, queue: str, key: bytes, who: str) -> Rejection | None:
        return self._steer(ResumeKey(queue, key, who))

    def reclassify(self, queue: str, rate: int, who: str, dry_run: bool) -> Document | Rejection:
        """Begin to judge what waits again; how that stands."""
        self.begin()
        return self._turn.reclassify.begin(queue, rate, who, dry_run)

    def cancel_reclassify(self, queue: str, who: str) -> Document | Rejection:
        self.begin()
        return self._turn.reclassify.cancel(queue, who)

    def reclassification(self, queue: str) -> Document | Rejection:
        return self._turn.reclassify.told(queue)

    def set_override(self, command: SetOverride) -> Rejection | None:
        return self._steer(command)

    def _steer(
        self, command: PauseQueue | ResumeQueue | PauseKey | ResumeKey | SetOverride
    ) -> Rejection | None:
        self.begin()
        reply = self._turn.apply(command)
        return reply if isinstance(reply, Rejection) else None

    # --- hooks

    def hook_stats(self, queue: str) -> QueueHookStats:
        """What the queue's hooks did so far, and the state of their breakers."""
        return self._hooks.stats(queue)

    def install_hooks(self, queue: str) -> None:
        """Put a queue's stored scripts to work; one that no longer compiles means defaults."""
        found = self._machine.view.scripts(queue)
        limits = limits_of(queue, self._machine.view.config)
        self._hooks.install(
            queue, found.on_enqueue, found.on_failure, strict=False, **limits._asdict()
        )
