"""One hook of one queue: its script at work, its breaker, its counts.

Owns what happens around a script: cutting batches, defaults for what failed, when to stop asking,
when to start the script afresh, what is logged. Never raises for anything a script or a message
does. Knows Lua only as something that answers with codes (`lua.py`).

After a failure by time or memory the runtime is thrown away and the script starts afresh, globals
included, with the next message that needs it: what it was interrupted in cannot be trusted.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Callable, Sequence
from struct import pack
from typing import Generic, NamedTuple, TypeVar

from fila.core.meter import HOOK_BOUNDS_US
from fila.hooks.assignments import Assignments
from fila.hooks.body import headers_end
from fila.hooks.breaker import Breaker
from fila.hooks.contract import (
    HookError,
    HookSettings,
    HookStats,
)
from fila.hooks.limits import (
    CODE_DONE,
    CODE_FAILED,
    CODE_FULL,
    CODE_MORE,
    CODE_PART,
    HEAD_BYTES,
    HEAD_BYTES_MAX,
    HEADER_BYTES_MAX,
    HEADERS_MAX,
    MESSAGES_PER_EXTRA_TIMEOUT,
)
from fila.hooks.lua import Answer, LuaScript
from fila.text import shown

log = logging.getLogger("fila.hooks")

Item = TypeVar("Item")
Verdict = TypeVar("Verdict")


class Host(NamedTuple):
    """What every script needs of the broker: `fila.get`, a clock, seeds, and shared assignments."""

    config: Callable[[bytes], bytes | None]
    clock: Callable[[], int]
    seed: Callable[[], int]
    assignments: Assignments


class Script(Generic[Item, Verdict]):
    """What both hooks have in common. `compile` first, then `run` for each batch."""

    hook: str

    def __init__(self, queue: str, source: str, settings: HookSettings, host: Host) -> None:
        self._queue = queue
        self._source = source.encode("utf-8", "backslashreplace")
        self._settings = settings
        self._host = host
        self._breaker = Breaker(settings.breaker_threshold, settings.breaker_cooldown_ms)
        self._timeout_s = settings.timeout_ms / 1000
        self._logged_ns: int | None = None
        self._unlogged = 0
        self._lua: LuaScript | None = None
        self._head_bytes = HEAD_BYTES
        self._executions = 0
        self._errors = 0
        self._timeouts = 0
        self._memory = 0
        self._bypassed = 0
        self._busy_ns = 0
        self._last_problem = ""
        self._durations = [0] * (len(HOOK_BOUNDS_US) + 1)

    def compile(self) -> None:
        """Load the script into a fresh runtime; raise `HookError` with its problem if it fails."""
        lua = LuaScript(
            self.hook,
            self._queue,
            self._host.config,
            timeout_ms=self._settings.timeout_ms,
            memory_limit_bytes=self._settings.memory_limit_bytes,
            seed=self._host.seed(),
        )
        answer = lua.load(self._source, self._timeout_s)
        if answer[0] == CODE_FAILED:
            what = "does not compile" if answer[2] == b"compile" else "cannot be loaded"
            text = lua.decided()[0] if answer[2] == b"memory" else answer[3]
            raise HookError(f"{self.hook} {what}: {_printable(text)}")
        if lua.keeps_too_much():
            limit = self._settings.memory_limit_bytes
            raise HookError(f"{self.hook} cannot be loaded: it keeps more than {limit} bytes")
        self._lua = lua

    def compile_later(self) -> None:
        """As `compile`, but a script that fails is logged, and tried again after each cool-down."""
        try:
            self.compile()
        except HookError as problem:
            self._errors += 1
            self._last_problem = str(problem)
            log.error(
                'queue "%s": its stored script is broken and messages get the defaults until it is '
                "replaced: %s",
                self._queue,
                problem,
            )

    def run(self, items: Sequence[Item], version: int, now_ns: int) -> list[Verdict]:
        """One verdict per item, in order."""
        began_ns = self._host.clock()
        count = len(items)
        budget_s = self._timeout_s * (1 + count / MESSAGES_PER_EXTRA_TIMEOUT)
        verdicts: list[Verdict] = []
        while (done := len(verdicts)) < count:
            if budget_s <= 0:
                self._give_up(count - done, verdicts, now_ns)
            elif self._breaker.allows(now_ns) and (lua := self._lua or self._revive(now_ns)):
                part = self._part(items, done)
                budget_s -= self._run_part(lua, part, version, now_ns, budget_s, verdicts)
            else:
                self._bypassed += count - done
                verdicts += [self._default()] * (count - done)
        took_ns = self._host.clock() - began_ns
        self._busy_ns += took_ns
        if count:
            self._durations[bisect_left(HOOK_BOUNDS_US, took_ns / count / 1000)] += count
        return verdicts

    def stats(self) -> HookStats:
        return HookStats(
            self._executions,
            self._errors,
            self._timeouts,
            self._memory,
            self._bypassed,
            self._breaker.trips,
            self._breaker.state,
            self._busy_ns,
            self._lua.memory_bytes() if self._lua is not None else 0,
            self._last_problem,
            tuple(self._durations),
        )

    # What the two hooks do differently.

    def _default(self) -> Verdict:
        """For messages the script has no say in."""
        raise NotImplementedError

    def _part(self, items: Sequence[Item], start: int) -> Sequence[Item]:
        """As many items from `start` on as may go into one batch."""
        raise NotImplementedError

    def _pack(self, items: Sequence[Item], head_bytes: int) -> bytes:
        raise NotImplementedError

    def _bodies(self, items: Sequence[Item]) -> Sequence[bytes]:
        raise NotImplementedError

    def _read(self, packed: tuple[bytes, ...]) -> list[Verdict]:
        raise NotImplementedError

    # One call into Lua and what follows from it.

    def _run_part(
        self,
        lua: LuaScript,
        part: Sequence[Item],
        version: int,
        now_ns: int,
        budget_s: float,
        verdicts: list[Verdict],
    ) -> float:
        """Append verdicts for the part's first messages, or none if the script must start afresh.

        Returns the seconds used up: infinitely many if the batch as a whole took too long.
        """
        answer = self._ask(lua, part, self._head_bytes, version, budget_s)
        spent_s = 0.0
        if answer[0] == CODE_MORE:
            spent_s, packed = answer[1], answer[2:]
            self._took(packed, verdicts)
            answer = self._ask_again(lua, part[len(packed)], version, budget_s)
        code = answer[0]
        if code in (CODE_DONE, CODE_PART):
            self._took(answer[2:], verdicts)
        elif code == CODE_FAILED:
            self._failed(lua, answer, verdicts, now_ns)
            if answer[2] == b"overrun":
                return float("inf")
        elif code == CODE_FULL:
            self._lua = None
            self._memory += 1
            self._note(f"{self.hook}: kept more memory than its limit; started afresh", now_ns)
            return spent_s
        else:
            self._errors += 1
            verdicts.append(self._default())
            self._log(_TOO_MANY_HEADERS, now_ns)
        return spent_s + float(answer[1])

    def _ask(
        self, lua: LuaScript, part: Sequence[Item], head_bytes: int, version: int, budget_s: float
    ) -> Answer:
        count = len(part)
        sizes = pack(f">{count}I", *map(len, self._bodies(part)))
        return lua.decide(self._pack(part, head_bytes), sizes, count, head_bytes, version, budget_s)

    def _ask_again(self, lua: LuaScript, item: Item, version: int, budget_s: float) -> Answer:
        """For one message whose headers did not fit; later batches are cut longer if that helps."""
        head_bytes = headers_end(self._bodies((item,))[0], HEADER_BYTES_MAX, HEADERS_MAX)
        if head_bytes is None:
            return (CODE_MORE, 0.0)
        if self._head_bytes < head_bytes <= HEAD_BYTES_MAX:
            self._head_bytes = 1 << (head_bytes - 1).bit_length()
        return self._ask(lua, (item,), head_bytes, version, budget_s)

    def _took(self, packed: Answer, verdicts: list[Verdict]) -> None:
        if packed:
            verdicts += self._read(packed)
            self._executions += len(packed)
            if self._breaker.failures and self._breaker.succeed():
                log.info('queue "%s": %s works again', self._queue, self.hook)

    def _failed(self, lua: LuaScript, answer: Answer, verdicts: list[Verdict], now_ns: int) -> None:
        _, _, kind, text, gross = answer
        out_of_memory, packed = (text, ()) if kind == b"bug" else lua.decided()
        self._took(packed, verdicts)
        verdicts.append(self._default())
        self._executions += 1
        if kind != b"error":
            self._lua = None
        if kind == b"memory":
            text = out_of_memory
            self._memory += 1
        elif kind in (b"timeout", b"overrun"):
            self._timeouts += 1
        else:
            self._errors += 1
        self._note(_printable(text), now_ns, at_once=gross)

    def _give_up(self, count: int, verdicts: list[Verdict], now_ns: int) -> None:
        """The batch's time is used up: the rest of it gets the defaults, each a failure."""
        self._timeouts += count
        verdicts += [self._default()] * count
        for _ in range(count):
            if self._breaker.allows(now_ns):
                self._note(self._last_problem, now_ns)

    def _revive(self, now_ns: int) -> LuaScript | None:
        try:
            self.compile()
        except HookError as problem:
            self._errors += 1
            self._note(str(problem), now_ns, at_once=True)
        return self._lua

    def _note(self, problem: str, now_ns: int, *, at_once: bool = False) -> None:
        """Count a failure towards the breaker; log each trip, and the others now and then."""
        self._last_problem = problem
        if not self._breaker.fail(now_ns, at_once=at_once):
            self._log(problem, now_ns)
            return
        log.warning(
            'queue "%s": %s is switched off for %d ms after %d failures in a row, '
            "messages get the defaults; last problem: %s",
            self._queue,
            self.hook,
            self._settings.breaker_cooldown_ms,
            self._breaker.failures,
            problem,
        )

    def _log(self, problem: str, now_ns: int) -> None:
        self._last_problem = problem
        quiet_ns = self._settings.breaker_cooldown_ms * 1_000_000
        if self._logged_ns is not None and now_ns - self._logged_ns < quiet_ns:
            self._unlogged += 1
            return
        log.warning(
            'queue "%s": %s failed, the message gets the defaults: %s%s',
            self._queue,
            self.hook,
            problem,
            f" ({self._unlogged} more failures since the last line)" if self._unlogged else "",
        )
        self._logged_ns, self._unlogged = now_ns, 0


_TOO_MANY_HEADERS = (
    f"a message with over {HEADERS_MAX} headers, or over {HEADER_BYTES_MAX} bytes of them, "
    "is not shown to hooks"
)


def _printable(text: bytes) -> str:
    """A script's message on one line, whatever is in it."""
    return shown(text.decode("utf-8", "backslashreplace"))
