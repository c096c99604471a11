"""One hook of one queue: its script at work, its breaker, its quarantine, its counts.

Owns what happens around a script: cutting batches, the fallback for what failed, who is to blame,
when to stop asking, when to start the script afresh, what is logged. Never raises for anything a
script or a message does. Knows Lua only as something that answers with codes (`lua.py`).

After a failure by time or memory the runtime is thrown away and the script starts afresh, globals
included, with the next message that needs it: what it was interrupted in cannot be trusted.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import islice
from math import inf
from struct import pack
from typing import Generic, NamedTuple, TypeVar

from fila.core.meter import HOOK_BOUNDS_US
from fila.hooks.assignments import Assignments
from fila.hooks.body import headers_end
from fila.hooks.breaker import Breaker
from fila.hooks.complaints import Complaints
from fila.hooks.contract import DEFAULT, LAST_GOOD, REJECT, HookError, HookSettings, HookStats
from fila.hooks.limits import (
    CODE_DONE,
    CODE_FAILED,
    CODE_FULL,
    CODE_MORE,
    CODE_PART,
    COSTLY_GROSS,
    HEAD_BYTES,
    HEAD_BYTES_MAX,
    HEADER_BYTES_MAX,
    HEADERS_MAX,
    MESSAGES_PER_EXTRA_TIMEOUT,
    NS_PER_BODY_BYTE,
    ORIGINS_SHOWN_MAX,
    UNIFORMLY_SLOW_PART,
    WITNESSES_ASKED_MAX,
)
from fila.hooks.lua import Answer, LuaScript
from fila.hooks.origins import Origins
from fila.hooks.quarantine import Quarantine
from fila.hooks.witnesses import Witnesses
from fila.text import shown

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

    def __init__(
        self, queue: str, source: str, settings: HookSettings, host: Host, origins: Origins
    ) -> None:
        self._queue = queue
        self._source = source.encode("utf-8", "backslashreplace")
        self._settings = settings
        self._host = host
        self._breaker = Breaker(settings.breaker_threshold, settings.breaker_cooldown_ms)
        self._quarantine = Quarantine(settings.breaker_threshold, settings.breaker_cooldown_ms)
        self._witnesses: Witnesses[Item] = Witnesses()
        self._origins = origins
        self._timeout_s = settings.timeout_ms / 1000
        self._complaints = Complaints(queue, self.hook, settings)
        self._lua: LuaScript | None = None
        self._head_bytes = HEAD_BYTES
        self._executions = 0
        self._errors = 0
        self._timeouts = 0
        self._memory = 0
        self._bypassed = 0
        self._late = 0
        self._kept_out = 0
        self._busy_ns = 0
        self._fell_back = 0
        self._version = 0
        self._now_ns = 0  # of the call being decided
        self._known: set[bytes] | None = None  # keys that are no strangers, while that matters
        self.undecided: list[int] = []  # which messages of the last call got what fail mode says …
        self.refused: list[int] = []  # … and which are not to be stored
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
            self._complaints.broken(str(problem))

    def rehearse(self, items: Sequence[Item], version: int) -> None:
        """Try the script on these messages, as long as one call may take; raise `HookError` with
        its problem where it fails."""
        self._version = version
        left_s = self._timeout_s
        for item in items:
            lua = self._lua
            if left_s <= 0 or lua is None:
                return
            head_bytes = headers_end(self._body(item), HEADER_BYTES_MAX, HEADERS_MAX) or 0
            answer = self._ask(lua, (item,), head_bytes, inf)
            if answer[0] == CODE_FAILED:
                text = lua.decided()[0] if answer[2] == b"memory" else answer[3]
                raise HookError(
                    f"{self.hook} fails for a message like those of the queue: {_printable(text)}"
                )
            left_s -= answer[1]

    def witnesses(self) -> list[Item]:
        """Messages that the script decided, of different origins; few."""
        return self._witnesses.all()

    def run(self, items: Sequence[Item], version: int, now_ns: int) -> list[Verdict]:
        """One verdict per item, in order."""
        began_ns = self._host.clock()
        count = len(items)
        budget_s = self._timeout_s * (1 + count / MESSAGES_PER_EXTRA_TIMEOUT)
        extended = False
        if self.undecided:
            self.refused = []
            self.undecided = []
        self._version, self._now_ns = version, now_ns
        fell_back = self._fell_back
        verdicts: list[Verdict] = []
        while (done := len(verdicts)) < count:
            if budget_s <= 0 and not extended:
                budget_s += self._reading_s(items)
                extended = True
            elif budget_s <= 0:
                self._too_late(items, verdicts)
            elif not (self._breaker.allows(now_ns) and (lua := self._lua or self._revive())):
                self._bypassed += count - done
                self._fall_back(items[done:], verdicts)
            elif part := self._admitted(self._part(items, done)):
                budget_s -= self._run_part(lua, items, part, budget_s, verdicts)
            else:
                self._kept_out += 1
                self._fall_back(items[done : done + 1], verdicts)
        took_ns = self._host.clock() - began_ns
        self._busy_ns += took_ns
        if count:
            self._durations[bisect_left(HOOK_BOUNDS_US, took_ns / count / 1000)] += count
            wanted = self._witnesses.wanted()
            if wanted is not None and fell_back == self._fell_back:
                self._keep_witness(items[wanted % count], verdicts[wanted % count])
        return verdicts

    def stats(self) -> HookStats:
        held = self._quarantine.held(self._now_ns)
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
            self._complaints.last,
            tuple(self._durations),
            self._settings.fail_mode,
            self._late,
            self._kept_out,
            self._quarantine.began,
            len(held),
            tuple(_printable(origin) for origin in held[-ORIGINS_SHOWN_MAX:]),
            self._quarantine.keeps_strangers_out(self._now_ns),
        )

    # What the two hooks do differently.

    def _default(self) -> Verdict:
        """For messages the script has no say in."""
        raise NotImplementedError

    def _fallback(self, item: Item) -> Verdict:
        """The same, in a queue whose fail mode is not the default."""
        raise NotImplementedError

    def _remember(self, items: Sequence[Item], verdicts: Sequence[Verdict]) -> None:
        """Keep verdicts for `_fallback`; asked only where the fail mode is `last-good`."""
        raise NotImplementedError

    def _blank(self) -> Item:
        """A message with nothing in it."""
        raise NotImplementedError

    def _keep_witness(self, item: Item, verdict: Verdict) -> None:
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
        items: Sequence[Item],
        part: Sequence[Item],
        budget_s: float,
        verdicts: list[Verdict],
    ) -> float:
        """Append verdicts for the part's first messages, or none if the script must start afresh.

        Returns the seconds used up.
        """
        answer = self._ask(lua, part, self._head_bytes, budget_s)
        spent_s = 0.0
        if answer[0] == CODE_MORE:
            spent_s, packed = answer[1], answer[2:]
            self._took(packed, items, verdicts)
            answer = self._ask_again(lua, part[len(packed)], budget_s)
        code = answer[0]
        if code in (CODE_DONE, CODE_PART):
            self._took(answer[2:], items, verdicts)
        elif code == CODE_FAILED:
            self._failed(lua, answer, items, verdicts)
            if answer[2] != b"error":  # a time-out is its origin's, and not at the others' expense
                return spent_s + max(0.0, float(answer[1]) - self._timeout_s)
        elif code == CODE_FULL:
            self._lua = None
            self._memory += 1
            problem = f"{self.hook}: kept more memory than its limit; started afresh"
            self._blame(part[0], problem, costly=1)
            return spent_s
        else:
            self._errors += 1
            self._fall_back(items[len(verdicts) : len(verdicts) + 1], verdicts)
            self._complaints.failed(_TOO_MANY_HEADERS, self._now_ns)
        return spent_s + float(answer[1])

    def _ask(
        self, lua: LuaScript, part: Sequence[Item], head_bytes: int, budget_s: float
    ) -> Answer:
        count = len(part)
        sizes = pack(f">{count}I", *map(len, self._bodies(part)))
        batch = self._pack(part, head_bytes)
        return lua.decide(batch, sizes, count, head_bytes, self._version, budget_s)

    def _ask_again(self, lua: LuaScript, item: Item, budget_s: float) -> Answer:
        """For one message whose headers did not fit; later batches are cut longer if that helps."""
        head_bytes = headers_end(self._body(item), HEADER_BYTES_MAX, HEADERS_MAX)
        if head_bytes is None:
            return (CODE_MORE, 0.0)
        if self._head_bytes < head_bytes <= HEAD_BYTES_MAX:
            self._head_bytes = 1 << (head_bytes - 1).bit_length()
        return self._ask(lua, (item,), head_bytes, budget_s)

    def _took(self, packed: Answer, items: Sequence[Item], verdicts: list[Verdict]) -> None:
        if packed:
            done = len(verdicts)
            verdicts += self._read(packed)
            self._executions += len(packed)
            if self._settings.fail_mode == LAST_GOOD:
                self._remember(items[done : len(verdicts)], verdicts[done:])
            if self._quarantine.failing:
                for item in items[done : len(verdicts)]:
                    self._quarantine.succeed(self._origin(item))
            if self._breaker.failures and self._breaker.succeed():
                self._complaints.works_again()

    def _failed(
        self, lua: LuaScript, answer: Answer, items: Sequence[Item], verdicts: list[Verdict]
    ) -> None:
        _, _, kind, text, gross = answer
        out_of_memory, packed = (text, ()) if kind == b"bug" else lua.decided()
        self._took(packed, items, verdicts)
        item = items[len(verdicts)]
        self._fall_back((item,), verdicts)
        self._executions += 1
        if kind != b"error":
            self._lua = None
        if kind == b"memory":
            text = out_of_memory
            self._memory += 1
        elif kind == b"timeout":
            self._timeouts += 1
        else:
            self._errors += 1
        costly = 0 if kind == b"error" else COSTLY_GROSS if gross else 1
        self._blame(item, _printable(text), costly=costly)

    def _reading_s(self, items: Sequence[Item]) -> float:
        """Time a call gets on top for what there is to read in it; never more than it could use."""
        size = sum(min(len(body), HEADER_BYTES_MAX) for body in self._bodies(items))
        return min(size * NS_PER_BODY_BYTE / 1e9, len(items) * self._timeout_s)

    def _too_late(self, items: Sequence[Item], verdicts: list[Verdict]) -> None:
        """The call's time is used up: the rest of it gets the fallback. The script is to blame if
        it is slow for others, too; else whoever came last, who most likely used the time."""
        done = len(verdicts)
        self._late += len(items) - done
        self._fall_back(items[done:], verdicts)
        problem = f"{self.hook}: used up the time of a call with {len(items)} messages"
        origin = self._origin(items[done - 1])
        if self._works_for_others(origin, self._timeout_s / UNIFORMLY_SLOW_PART):
            self._quarantine.fail(origin, self._now_ns, at_once=True)
            self._complaints.failed(problem, self._now_ns)
        else:
            self._note(problem, at_once=True)

    def _fall_back(self, items: Sequence[Item], verdicts: list[Verdict]) -> None:
        """What the queue's fail mode says of messages without a verdict."""
        mode = self._settings.fail_mode
        self._fell_back += len(items)
        self.undecided += range(len(verdicts), len(verdicts) + len(items))
        if mode == REJECT:
            self.refused += range(len(verdicts), len(verdicts) + len(items))
        if mode == DEFAULT:
            verdicts += [self._default()] * len(items)
        else:
            verdicts += [self._fallback(item) for item in items]

    # Who is to blame for a failure.

    def _body(self, item: Item) -> bytes:
        return self._bodies((item,))[0]

    def _origin(self, item: Item) -> bytes:
        return self._origins.of(self._body(item))

    def _admitted(self, part: Sequence[Item]) -> Sequence[Item]:
        """The part up to the first message whose origin is in quarantine."""
        quarantine, now_ns = self._quarantine, self._now_ns
        if not quarantine.at_work:
            return part
        strangers_out = quarantine.keeps_strangers_out(now_ns)
        if not strangers_out:
            self._known = None
        elif self._known is None:
            packed = tuple(self._origins.known())
            self._known = {one.fairness_key for one in self._host.assignments.read(packed)}
        for at, item in enumerate(part):
            origin = self._origin(item)
            stranger = self._known is not None and origin not in self._known
            if stranger or quarantine.keeps_out(origin, now_ns):
                return part[:at]
        return part

    def _blame(self, item: Item, problem: str, *, costly: int) -> None:
        """Count a failure towards its origin's quarantine, and towards the breaker, which trips
        only if the script fails for others as well."""
        origin = self._origin(item)
        gross = costly > 1
        self._quarantine.fail(origin, self._now_ns, costly=costly)
        if self._quarantine.is_overwhelmed():
            self._note(problem, at_once=True)
        elif self._breaker.is_last_straw(at_once=gross) and self._works_for_others(origin):
            self._breaker.succeed()
            self._complaints.failed(problem, self._now_ns)
        else:
            self._note(problem, at_once=gross)

    def _works_for_others(self, origin: bytes, within_s: float = inf) -> bool:
        """Whether the script decides about a message it decided before, of another origin, or about
        one without any headers. Asked when the next failure would switch the policy off."""
        witnesses = islice(self._witnesses.besides(origin), WITNESSES_ASKED_MAX)
        for witness in (*witnesses, self._blank()):
            if self._lua is None:
                try:
                    self.compile()
                except HookError:
                    return False
            assert self._lua is not None
            head_bytes = headers_end(self._body(witness), HEADER_BYTES_MAX, HEADERS_MAX) or 0
            answer = self._ask(self._lua, (witness,), head_bytes, inf)
            if answer[0] == CODE_DONE and answer[1] <= within_s:
                return True
            if answer[0] == CODE_FULL or (answer[0] == CODE_FAILED and answer[2] != b"error"):
                self._lua = None
            if answer[0] == CODE_FAILED and answer[4]:
                return False  # grossly slow: not to be tried again
        return False

    def _revive(self) -> LuaScript | None:
        try:
            self.compile()
        except HookError as problem:
            self._errors += 1
            self._note(str(problem), at_once=True)
        return self._lua

    def _note(self, problem: str, *, at_once: bool = False) -> None:
        """Count a failure towards the breaker."""
        if self._breaker.fail(self._now_ns, at_once=at_once):
            self._quarantine.clear()  # it was not the origins
            self._complaints.tripped(problem, self._breaker.failures)
        else:
            self._complaints.failed(problem, self._now_ns)


_TOO_MANY_HEADERS = (
    f"a message with over {HEADERS_MAX} headers, or over {HEADER_BYTES_MAX} bytes of them, "
    "is not shown to hooks"
)


def _printable(text: bytes) -> str:
    """A script's message on one line, whatever is in it."""
    return shown(text.decode("utf-8", "backslashreplace"))
