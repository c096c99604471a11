"""What is logged of a hook that fails: each trip, and of the other failures one line per cool-down.

Owns the wording and the quiet times. Lines hold what a script said, never what a message holds.
"""

from __future__ import annotations

import logging

from fila.hooks.contract import DEFAULT, HookSettings

log = logging.getLogger("fila.hooks")


class Complaints:
    __slots__ = (
        "_cooldown_ms",
        "_fallback",
        "_hook",
        "_logged_ns",
        "_queue",
        "_told",
        "_unlogged",
        "last",
    )

    def __init__(self, queue: str, hook: str, settings: HookSettings) -> None:
        mode = settings.fail_mode
        self._fallback = "defaults" if mode == DEFAULT else f'fallback "{mode}"'
        self._queue, self._hook = queue, hook
        self._told = settings.told
        self._cooldown_ms = settings.breaker_cooldown_ms
        self._logged_ns: int | None = None
        self._unlogged = 0
        self.last = ""

    def failed(self, problem: str, now_ns: int) -> None:
        self.last = problem
        if not self._told:
            return
        quiet_ns = self._cooldown_ms * 1_000_000
        if self._logged_ns is not None and now_ns - self._logged_ns < quiet_ns:
            self._unlogged += 1
            return
        log.warning(
            'queue "%s": %s failed, the message gets the %s: %s%s',
            self._queue,
            self._hook,
            self._fallback,
            problem,
            f" ({self._unlogged} more failures since the last line)" if self._unlogged else "",
        )
        self._logged_ns, self._unlogged = now_ns, 0

    def tripped(self, problem: str, failures: int) -> None:
        self.last = problem
        log.warning(
            'queue "%s": %s is switched off for %d ms after %d failures in a row, '
            "messages get the %s; last problem: %s",
            self._queue,
            self._hook,
            self._cooldown_ms,
            failures,
            self._fallback,
            problem,
        )

    def broken(self, problem: str) -> None:
        self.last = problem
        log.error(
            'queue "%s": its stored script is broken and messages get the %s until it is '
            "replaced: %s",
            self._queue,
            self._fallback,
            problem,
        )

    def works_again(self) -> None:
        log.info('queue "%s": %s works again', self._queue, self._hook)
