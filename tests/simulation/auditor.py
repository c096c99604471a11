"""The auditor: replays every turn that counts on its own model, and checks each promise on the way.

A turn counts when its effects were released, or when its write is found on the disk after a crash.
The auditor never sees the machine's memory here; comparing.py does that, against this model.
"""

from __future__ import annotations

from fila.core.command import DeleteQueue
from fila.core.settings import Settings

from . import (
    ages,
    batches,
    busy,
    caps,
    commands,
    deliveries,
    events,
    extensions,
    fair,
    moves,
    overrides,
    reclassify,
    waits,
)
from .books import Books
from .jobs import Jobs
from .tokens import NEVER_NS, TOLERANCE
from .turn import AskLoad, AskPurge, AskRedrive, AskUnload, Record, Violation


class Auditor(Books):
    def __init__(self, settings: Settings, journal: bool, hooked: set[str]) -> None:
        super().__init__(settings, journal, hooked)
        self.jobs = Jobs()
        self.turn = Record(0)
        self.durable_ns = 0  # the newest time the disk knows of
        self.rings = events.Rings()

    def replay(self, turn: Record) -> None:
        """Follow one turn, and check everything about it."""
        self.turn = turn
        self.now = max(self.now, turn.now_ns)
        if turn.wrote:
            self.durable_ns = self.now
        self.events = self.rings.follow(turn.events, turn.apart)
        self.told = []
        self.told_open = {}
        self.left_late = False
        self.turns_apart = turn.apart
        for queue in self.queues.values():
            queue.had_credit = bool(queue.credit)
        self.fall_due()
        for queue in self.queues.values():
            busy.passes(queue, self.now)
        overrides.fall_due(self)
        ended: list[str] = []
        for step in turn.steps:
            if isinstance(step.command, DeleteQueue):
                ended += self._consumers_under(step.command.queue)
            if isinstance(step.command, AskRedrive):
                self.jobs.ask_redrive(self, step.command, step.reply)
            elif isinstance(step.command, AskPurge):
                self.jobs.ask_purge(self, step.command, step.reply)
            elif isinstance(step.command, AskLoad):
                moves.load(self, step.command, self.rings)
            elif not isinstance(step.command, AskUnload):
                commands.follow(self, step)
        self._set_apart(turn)
        self.jobs.follow(self, turn)
        self._set_apart(turn)  # a dead-letter queue may have been made meanwhile
        for delivery in turn.deliveries:
            deliveries.follow(self, delivery)
        leaving = moves.leaving(self, turn)
        batches.collect(self, turn)
        for name in sorted(turn.apart):
            ended += self.queues[name].consumers
        for queue in leaving:
            ended += queue.consumers
        several = bool(turn.apart or leaving)
        seen = [one.consumer.id for one in turn.ended]
        if (sorted(seen) if several else seen) != (sorted(ended) if several else ended):
            raise Violation("streams end", f"ended {turn.ended}, should be {ended}")
        if self.journal:
            events.expect_no_more(self.events)
        elif turn.events:
            raise Violation("journal", "events were made though nobody listens")
        self._check_turn_end(turn)
        moves.left(self, turn, leaving)

    def _set_apart(self, turn: Record) -> None:
        for name in turn.apart:
            if name in self.queues:
                self.queues[name].apart = True

    def restart(self, now: int) -> None:
        """The broker died and was loaded again: consumers are gone, leases stay."""
        self.now = max(now, self.durable_ns)
        self.timers = []
        self.rings = events.Rings()
        self.jobs.restart()
        self.tokens.forget_ready()
        for queue in self.queues.values():
            queue.apart = queue.away = False
            queue.stale = set()
            moves.reset(self, queue)
            moves.back(self, queue)

    def _moving(self) -> bool:
        """A queue comes, or goes and gives slots back."""
        return any(queue.loading or queue.leaving for queue in self.queues.values())

    def _woken(self, wake_ns: int) -> bool:
        """Whether a message that expired wakes it, though it may be gone."""
        return self.left_late or wake_ns <= self.now

    def _consumers_under(self, name: str) -> list[str]:
        """Consumers that lose their queue when this one is deleted."""
        queue = self.queues.get(name)
        if queue is None:
            return []
        dlq = self.queues.get(name + ".dlq")
        owned = dlq is not None and dlq.owner == name
        return [*queue.consumers, *(dlq.consumers if dlq is not None and owned else ())]

    def _check_turn_end(self, turn: Record) -> None:
        wake_ns = NEVER_NS
        now = self.now
        for message in self.at_tokens:
            if turn.more or not message.lane.key.queue.credit:
                waits.not_looked_at(message)
        self.at_tokens = []
        for queue in self.queues.values():
            fair.turn_ends(queue, bool(queue.credit) and not turn.more)
            if queue.absent:
                continue  # nothing of it is waited for any more
            ends_ns = overrides.next_ns(queue)
            if ends_ns:
                wake_ns = min(wake_ns, max(ends_ns, now))
            if queue.leases:
                first = extensions.first_of(queue)
                if first.expires_ns <= now and not (self.jobs.leases_left or queue.loading):
                    raise Violation("lease", f"{first.number} of {queue.name} is past its time")
                wake_ns = min(wake_ns, max(first.expires_ns, now))
            for batch in queue.batches.values():
                ends_ns = batch.expires_ns if batch.consumer is None else batch.wait_until_ns
                left = turn.more or self.jobs.batches_left or queue.loading
                if ends_ns <= now and not left:
                    raise Violation("batch", f"{batch.name} of {queue.name} is past its time")
                if batch.consumer is None or not turn.waits:
                    wake_ns = min(wake_ns, max(ends_ns, now))
            if not queue.credit or turn.more:
                continue
            for lane in queue.ready_lanes:
                if lane.is_hazy(now):
                    continue
                if ages.passed_over(self, lane.key):
                    continue
                if self.tokens.has(lane, now, TOLERANCE):
                    raise Violation(
                        "work-conserving",
                        f"{queue.name}/{lane.key.name.decode()} {lane.throttle_keys} waits while "
                        f"{next(iter(queue.credit)).id} has credit",
                    )
                if caps.is_full(self.tokens, lane):
                    continue
                token_ns = max(one.token_ns() for one in self.tokens.buckets_of(lane))
                if token_ns < NEVER_NS:
                    wake_ns = min(wake_ns, token_ns + 2 + int((token_ns - now) * TOLERANCE))
        for ready_ns, _, lane in self.timers:
            key = lane.key
            if key.paused or key.queue.absent:
                continue
            if ready_ns < wake_ns and not lane.ready and lane.timed and key.queue.credit:
                wake_ns = min(wake_ns, lane.timed[0].ready_ns)
        expires_ns = ages.next_ns(self)
        if expires_ns:
            wake_ns = min(wake_ns, max(expires_ns, now))
        if turn.more:
            # A commit may wake it, or its time; and what was cut short may be in quarantine now.
            if (
                not turn.waits
                and not turn.apart
                and not any(queue.leaving for queue in self.queues.values())
            ):
                wake_ns = now
            for queue in self.queues.values():
                queue.shared = {}  # who waits for a token was not looked at to the end
        elif (
            self.jobs.under_way()
            or commands.returning(self) is not None
            or reclassify.under_way(self)
        ):
            wake_ns = now
        elif 0 < turn.deadline_ns <= now and not (
            self.jobs.some_left()
            or self._woken(wake_ns)
            or self._moving()
            or turn.lingering
            or turn.apart
        ):
            raise Violation("no polling", "wants to wake at once with nothing to do")
        if wake_ns < NEVER_NS and not 0 < turn.deadline_ns <= wake_ns:
            raise Violation(
                "wakes in time", f"wants to wake at {turn.deadline_ns}, something is due {wake_ns}"
            )
