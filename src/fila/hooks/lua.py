"""One Lua runtime with one script in it. The only module that imports lupa.

Owns the runtime's memory limit and the order in which its trusted Lua is loaded; the Lua beside it
owns the rest. After a failure by time or memory a runtime must not be used again, except to read
what it decided before; its owner makes a new one.

Two facts about the Lua API shape this module. Passing a string into a runtime that is out of memory
ends the process, so strings are passed only while there is room to spare (`MEMORY_RESERVE_BYTES`)
or with the limit lifted. And a call from Lua back into Python is unsafe at the memory limit, so
there is none: the script's thread is suspended instead, and no Python object enters the runtime.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

from lupa.lua54 import LuaError, LuaMemoryError, LuaRuntime

from fila.hooks.limits import (
    BATCH_BYTES_HARD_MAX,
    CODE_ASK,
    CODE_FAILED,
    CODE_FULL,
    COLLECT_EVERY_BYTES,
    LUA_CODES,
    LUA_LIMITS,
    MEMORY_RESERVE_BYTES,
    SCRIPT_BYTES_MAX,
)

log = logging.getLogger("fila.hooks")

TRUSTED_DIR: Final = Path(__file__).with_name("trusted")
TRUSTED: Final = (
    "guard",
    "pattern",
    "matcher",
    "library",
    "fila",
    "verdict",
    "runner",
    "seal",
)

Answer = tuple[Any, ...]
"""A code and what follows it; see `runner.lua`."""


class LuaScript:
    """A loaded script. Raises nothing a script could cause: failures are answers."""

    __slots__ = (
        "_base_bytes",
        "_collect_at_bytes",
        "_config",
        "_decide",
        "_learn",
        "_limit_bytes",
        "_load",
        "_resume",
        "_runtime",
        "_verdicts",
    )

    def __init__(
        self,
        hook: str,
        queue: str,
        config: Callable[[bytes], bytes | None],
        *,
        timeout_ms: int,
        memory_limit_bytes: int,
        seed: int,
    ) -> None:
        runtime = _bare_runtime()
        runner = _furnish(runtime, hook, queue, timeout_ms, seed)
        self._runtime = runtime
        self._config = config
        self._load = runner[b"load"]
        self._decide = runner[b"decide"]
        self._resume = runner[b"resume"]
        self._learn = runner[b"learn"]
        self._verdicts = runner[b"verdicts"]
        self._base_bytes: int = runtime.get_memory_used(total=True)
        self._limit_bytes: int = self._base_bytes + memory_limit_bytes
        self._collect_at_bytes: int = self._base_bytes + COLLECT_EVERY_BYTES

    def load(self, source: bytes, budget_s: float) -> Answer:
        """Compile the script and run its main chunk."""
        if len(source) > SCRIPT_BYTES_MAX:
            text = f"the script is {len(source)} bytes long (limit {SCRIPT_BYTES_MAX})"
            return (CODE_FAILED, 0.0, b"compile", text.encode(), False)
        self._set_limit()
        return self._finish(self._load, source, budget_s)

    def decide(
        self,
        batch: bytes,
        sizes: bytes,
        count: int,
        head_bytes: int,
        version: int,
        budget_s: float,
    ) -> Answer:
        """Decide about `count` messages: their bodies, each cut to `head_bytes`, in one string.

        Answers `CODE_FULL`, and has done nothing, if there is no room to pass the batch safely.
        """
        assert len(batch) + len(sizes) <= BATCH_BYTES_HARD_MAX
        if self.keeps_too_much():
            return (CODE_FULL,)
        return self._finish(self._decide, batch, sizes, count, head_bytes, version, budget_s)

    def decided(self) -> tuple[bytes, Answer]:
        """After a failure: how to say that it was memory, and the verdicts from before it."""
        self._lift_limit()
        answer = self._verdicts()
        self._set_limit()
        return (answer[0], answer[1:]) if isinstance(answer, tuple) else (answer, ())

    def memory_bytes(self) -> int:
        """What the script uses now, garbage included."""
        used: int = self._runtime.get_memory_used(total=True)
        return max(0, used - self._base_bytes)

    def keeps_too_much(self) -> bool:
        """Collect garbage if there is much of it; True if the script still holds over its limit."""
        if self._runtime.get_memory_used(total=True) <= self._collect_at_bytes:
            return False
        self._runtime.gccollect()
        used: int = self._runtime.get_memory_used(total=True)
        self._collect_at_bytes = used + COLLECT_EVERY_BYTES
        return used > self._limit_bytes

    def _finish(self, call: Any, *args: Any) -> Answer:
        try:
            answer: Answer = call(*args)
            while answer[0] == CODE_ASK:
                answer = self._config_value(answer[1])
        except LuaMemoryError:
            return (CODE_FAILED, 0.0, b"memory", b"not enough memory", False)
        except LuaError as bug:
            # What scripts raise is caught in Lua: this is trusted Lua, and wrong. Say so, go on.
            log.exception("the hook layer itself failed; please report this")
            return (CODE_FAILED, 0.0, b"bug", str(bug).encode(), False)
        return answer

    def _config_value(self, key: bytes) -> Answer:
        try:
            value = self._config(key)
        except Exception:
            # A fault of the broker's, but no reason to lose a batch of messages.
            log.exception("a hook asked for a config value that could not be read")
            value = None
        self._lift_limit()
        self._learn(key, value)
        self._set_limit()
        answer: Answer = self._resume()
        return answer

    def _set_limit(self) -> None:
        self._runtime.set_max_memory(self._limit_bytes + MEMORY_RESERVE_BYTES, total=True)

    def _lift_limit(self) -> None:
        self._runtime.set_max_memory(0, total=True)


def _bare_runtime() -> LuaRuntime:
    return LuaRuntime(
        encoding=None,
        register_eval=False,
        register_builtins=False,
        attribute_filter=_no_attributes,
        max_memory=0,
    )


def _no_attributes(_obj: object, _name: object, _is_setting: bool) -> object:
    raise AttributeError("hooks cannot reach the host")


def _furnish(runtime: LuaRuntime, hook: str, queue: str, timeout_ms: int, seed: int) -> Any:
    """Load the trusted Lua, empty the globals, and return the runner's functions."""
    limits = runtime.table_from({name.encode(): value for name, value in LUA_LIMITS.items()})
    limits[b"codes"] = runtime.table_from({name.encode(): code for name, code in LUA_CODES.items()})
    load = {name: runtime.compile(code, mode=b"b") for name, code in _trusted().items()}
    guard = load["guard"](limits)
    matcher = load["matcher"](limits, guard)
    pattern = load["pattern"](limits, guard, matcher)
    environment = load["library"](limits, guard, pattern, matcher[b"join"])
    fila, config = load["fila"](limits, guard, CODE_ASK)
    verdict = load["verdict"](limits)
    runner = load["runner"](
        limits, guard, fila, config, environment, verdict, hook.encode(), queue.encode()
    )
    load["seal"](seed)
    guard[b"limit"](timeout_ms)
    return runner


@cache
def _trusted() -> dict[str, bytes]:
    """The trusted Lua, compiled: a runtime is made ten times faster from this than from text."""
    runtime = _bare_runtime()
    dump = runtime.eval(b"string.dump")
    compiled = {}
    for name in TRUSTED:
        source = (TRUSTED_DIR / f"{name}.lua").read_bytes()
        compiled[name] = bytes(dump(runtime.compile(source, name=b"=fila", mode=b"t"), True))
    return compiled
