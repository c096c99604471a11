"""When turns begin and end: the turn (`core/turn.py`) on an event loop.

Whatever arrives during one round of the loop is one turn: applied at once, answered by the commit
at its end. A busy broker so commits hundreds of messages together, an idle one commits a single
message without waiting for others. Owns the timer for the next turn. A fault stops the process; it
is never ignored.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from fila.broker import stepping
from fila.broker.clock import Clock
from fila.broker.outbox import Outbox, Recorder, Sink, Watcher
from fila.broker.rota import Rota
from fila.broker.telling import Telling
from fila.core import quarantine
from fila.core.machine import Machine
from fila.core.reader import StoreDamagedError
from fila.core.rejection import Rejection
from fila.core.turn import Committer, Turn
from fila.hooks.contract import Hooks

log = logging.getLogger("fila.broker")

_NS = 1_000_000_000


class Turns:
    def __init__(
        self,
        machine: Machine,
        committer: Committer,
        hooks: Hooks,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        on_fault: Callable[[BaseException], None],
        recorder: Recorder | None,
    ) -> None:
        self._machine = machine
        machine.record_events(recorder is not None)
        self._outbox = Outbox(recorder)
        self._turn = Turn(machine, hooks, committer, self._outbox)
        self._turn.on_fault = self.fault
        self._turn.on_room = self.begin
        self.work = self._turn.work  # what requests have done in this turn
        self.rota = Rota(self.work)
        self._clock = clock
        self._loop = loop
        bounds = machine.view.settings
        self.telling = Telling(bounds.pass_bytes, bounds.leaving_bytes, self.begin_soon)
        self._on_fault = on_fault
        self._stopped = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ns = 0  # when it rings
        self._quarantined = machine.view.quarantined
        self._known_apart: set[str] = set()  # those the log tells of
        self._tell_quarantined()
        self.begin()  # leases that ran out while the broker was down

    @property
    def machine(self) -> Machine:
        return self._machine

    @property
    def watcher(self) -> Watcher | None:
        return self._outbox.watcher

    @watcher.setter
    def watcher(self, watcher: Watcher | None) -> None:
        self._outbox.watcher = watcher
        self._turn.failures = watcher

    def begin(self) -> None:
        """Open a turn, unless one is open: time passes, and the turn's end is arranged."""
        if not self._turn.is_open and not self._stopped:
            self._loop.call_soon(self._end_turn)
            try:
                self._turn.begin(self._clock.now_ns())
            except BaseException as error:
                self.fault(error)
                raise

    def begin_soon(self) -> None:
        """The same, from where a turn is being committed."""
        self._loop.call_soon(self.begin)

    def reply(self, sink: Sink, data: bytes) -> None:
        """Send `data` when everything this turn did is committed."""
        self._outbox.replies.append((sink, data))

    def after_commit(self, call: Callable[[], None]) -> None:
        """Call when everything this turn did is committed."""
        self._turn.after_commit(call)

    def fault(self, error: BaseException) -> None:
        """Something that must not happen did. Nothing more is applied, committed or sent."""
        if not self._stopped:
            self.stop()
            self._on_fault(error)

    def set_apart(self, error: StoreDamagedError) -> Rejection:
        """A queue's rows cannot be read, and nothing was changed yet: it is quarantined with this
        turn's end. Raises if that is not so, or not one queue's matter. What to tell who asked."""
        if not self._stopped:
            self.begin()
            refused = self._machine.set_apart(error)
            if refused is not None:
                return refused
            self.fault(error)
        raise error

    @property
    def stopped(self) -> bool:
        """Whether nothing is applied, committed or sent any more."""
        return self._stopped

    def call_later(self, delay_s: float, call: Callable[[], None]) -> asyncio.TimerHandle:
        """For what is not the machine's to remember."""
        return self._loop.call_later(delay_s, call)

    def stop(self) -> None:
        self._stopped = True
        self._outbox.stopped = True
        if self._timer is not None:
            self._timer.cancel()

    def _end_turn(self) -> None:
        if self._stopped:
            return
        try:
            more = len(self.telling) > 0 and self.telling.step()
            due_ns = self._turn.end()
            self.rota.begin()
            if len(self._quarantined) > len(self._known_apart):
                self._tell_quarantined()
            if self.rota.waiting:
                self.begin()
                self.rota.serve()
            elif more or self._turn.clears_up or 0 < due_ns <= self._machine.view.now_ns:
                self.begin()
            elif due_ns:
                self._arm(due_ns)
        except BaseException as error:
            self.fault(error)

    def _tell_quarantined(self) -> None:
        for name, one in self._quarantined.items():
            if name not in self._known_apart:
                log.error(quarantine.refused(one).message)
        self._known_apart = set(self._quarantined)

    def _arm(self, at_ns: int) -> None:
        """Wake for what is due next; nothing polls. A timer that would ring too early is left
        alone: it is set again when it has rung, and most turns need none of their own."""
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

    def record_snapshot(self, keys_max: int, done: Callable[[], object]) -> None:
        """Tell the journal what every key holds, in this turn and those that follow."""
        stepping.run(self, self._telling_snapshot(keys_max, done))

    def _telling_snapshot(self, keys_max: int, done: Callable[[], object]) -> stepping.Steps:
        for _ in self._machine.record_snapshot(keys_max):
            self.work.done += self.work.step
            yield
        done()
