"""The policy hooks of all queues, in Lua: the broker's `Hooks`.

Owns which queue has which scripts. Everything about running one is in `script.py`; what the broker
may rely on is in `contract.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from fila.core.verdict import DEFAULT_ASSIGNMENT, RETRY_NOW, Assignment, FailedItem, FailureVerdict
from fila.hooks.assignments import Assignments
from fila.hooks.contract import FAIL_MODES, HookError, HookSettings, QueueHookStats
from fila.hooks.limits import MEMORY_LIMIT_BYTES_MAX, MEMORY_LIMIT_BYTES_MIN, TIMEOUT_MS_MAX
from fila.hooks.on_enqueue import EnqueueScript
from fila.hooks.on_failure import FailureScript
from fila.hooks.origins import Origins
from fila.hooks.script import Host

log = logging.getLogger("fila.hooks")


class LuaHooks:
    """See `fila.hooks.contract.Hooks`.

    `config` answers `fila.get`; `clock` is monotonic nanoseconds, for `busy_ns` alone; `seed` gives
    a new random seed for each runtime (the jitter of back-off).
    """

    def __init__(
        self,
        config: Callable[[bytes], bytes | None],
        *,
        clock: Callable[[], int],
        seed: Callable[[], int],
        settings: HookSettings | None = None,
    ) -> None:
        self._host = Host(config, clock, seed, Assignments())
        self._settings = settings or HookSettings()
        self._config_version = 1
        self._on_enqueue: dict[str, EnqueueScript] = {}
        self._on_failure: dict[str, FailureScript] = {}

    def check(self, on_enqueue: str | None, on_failure: str | None) -> None:
        for script in self._scripts("", on_enqueue, on_failure, self._settings):
            if script is not None:
                script.compile()

    def rehearse(
        self,
        queue: str,
        on_enqueue: str | None,
        on_failure: str | None,
        *,
        timeout_ms: int | None = None,
        memory_limit_bytes: int | None = None,
        fail_mode: str | None = None,
        on_messages: bool = True,
    ) -> None:
        settings = _overridden(self._settings, timeout_ms, memory_limit_bytes, fail_mode)
        placing, failing = self._scripts(queue, on_enqueue, on_failure, settings)
        if placing is not None:
            placing.compile()
            if on_messages and queue in self._on_enqueue:
                placing.rehearse(self._on_enqueue[queue].witnesses(), self._config_version)
        if failing is not None:
            failing.compile()
            if on_messages and queue in self._on_failure:
                failing.rehearse(self._on_failure[queue].witnesses(), self._config_version)

    def install(
        self,
        queue: str,
        on_enqueue: str | None,
        on_failure: str | None,
        *,
        timeout_ms: int | None = None,
        memory_limit_bytes: int | None = None,
        fail_mode: str | None = None,
        strict: bool = True,
    ) -> None:
        try:
            settings = _overridden(self._settings, timeout_ms, memory_limit_bytes, fail_mode)
        except HookError as problem:
            if strict:
                raise
            log.error('queue "%s": its hooks get the default limits: %s', queue, problem)
            settings = self._settings
        enqueue_script, failure_script = self._scripts(queue, on_enqueue, on_failure, settings)
        for script in (enqueue_script, failure_script):
            if script is not None and strict:
                script.compile()
            elif script is not None:
                script.compile_later()
        self.remove(queue)
        if enqueue_script is not None:
            self._on_enqueue[queue] = enqueue_script
        if failure_script is not None:
            self._on_failure[queue] = failure_script

    def remove(self, queue: str) -> None:
        self._on_enqueue.pop(queue, None)
        self._on_failure.pop(queue, None)

    def has_on_enqueue(self, queue: str) -> bool:
        return queue in self._on_enqueue

    def has_on_failure(self, queue: str) -> bool:
        return queue in self._on_failure

    def on_enqueue(self, queue: str, bodies: Sequence[bytes], now_ns: int) -> list[Assignment]:
        script = self._on_enqueue.get(queue)
        if script is None:
            return [DEFAULT_ASSIGNMENT] * len(bodies)
        return script.run(bodies, self._config_version, now_ns)

    def undecided(self, queue: str) -> list[int]:
        script = self._on_enqueue.get(queue)
        return [] if script is None else script.undecided

    def refused(self, queue: str) -> list[int]:
        script = self._on_enqueue.get(queue)
        return [] if script is None else script.refused

    def on_failure(
        self, queue: str, items: Sequence[FailedItem], now_ns: int
    ) -> list[FailureVerdict]:
        script = self._on_failure.get(queue)
        if script is None:
            return [RETRY_NOW] * len(items)
        return script.run(items, self._config_version, now_ns)

    def config_changed(self) -> None:
        self._config_version += 1

    def stats(self, queue: str) -> QueueHookStats:
        enqueue_script = self._on_enqueue.get(queue)
        failure_script = self._on_failure.get(queue)
        return QueueHookStats(
            enqueue_script.stats() if enqueue_script is not None else None,
            failure_script.stats() if failure_script is not None else None,
        )

    def _scripts(
        self, queue: str, on_enqueue: str | None, on_failure: str | None, settings: HookSettings
    ) -> tuple[EnqueueScript | None, FailureScript | None]:
        host, origins = self._host, Origins()
        return (
            None
            if on_enqueue is None
            else EnqueueScript(queue, on_enqueue, settings, host, origins),
            None
            if on_failure is None
            else FailureScript(queue, on_failure, settings, host, origins),
        )


def _overridden(
    settings: HookSettings,
    timeout_ms: int | None,
    memory_limit_bytes: int | None,
    fail_mode: str | None,
) -> HookSettings:
    if timeout_ms is not None:
        _check("timeout_ms", timeout_ms, 1, TIMEOUT_MS_MAX)
        settings = replace(settings, timeout_ms=timeout_ms)
    if memory_limit_bytes is not None:
        _check(
            "memory_limit_bytes", memory_limit_bytes, MEMORY_LIMIT_BYTES_MIN, MEMORY_LIMIT_BYTES_MAX
        )
        settings = replace(settings, memory_limit_bytes=memory_limit_bytes)
    if fail_mode is not None:
        if fail_mode not in FAIL_MODES:
            raise HookError(f"fail_mode must be one of {', '.join(FAIL_MODES)}, got {fail_mode}")
        settings = replace(settings, fail_mode=fail_mode)
    return settings


def _check(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise HookError(f"{name} must be between {least} and {most}, got {value}")
