"""What the broker knows of policy hooks: verdicts for batches of messages, and nothing of Lua.

Owns the `Hooks` protocol, its settings, statistics and error, and `NoHooks`, which decides nothing.
Never imports a script engine. Verdicts never fail: whatever a script does, every message gets one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from fila.core.verdict import DEFAULT_ASSIGNMENT, RETRY_NOW, Assignment, FailedItem, FailureVerdict

ON_ENQUEUE = "on_enqueue"
ON_FAILURE = "on_failure"

# What a message gets that its hook has no verdict for: a queue's fail mode.
DEFAULT = "default"
LAST_GOOD = "last-good"
REJECT = "reject"
FAIL_MODES: Final = (DEFAULT, LAST_GOOD, REJECT)


class HookError(Exception):
    """A script that cannot be used, or a limit that cannot be set. The text is for its author."""


@dataclass(frozen=True, slots=True)
class HookSettings:
    """The defaults for every queue; `install` may override time, memory and the fail mode."""

    timeout_ms: int = 10
    memory_limit_bytes: int = 1024 * 1024
    breaker_threshold: int = 3
    breaker_cooldown_ms: int = 10_000
    fail_mode: str = DEFAULT
    told: bool = True  # failures are logged


class HookStats(NamedTuple):
    """Counts of one hook of one queue since it was installed.

    `executions` counts messages the script was run for; `errors`, `timeouts` and `memory` are those
    of them that failed; `late` came after their call's time was used up; `bypassed` were not asked
    about because the breaker was open, `kept_out` because their origin was in quarantine: all of
    these got the fallback. `busy_ns` is time spent.
    """

    executions: int
    errors: int
    timeouts: int
    memory: int
    bypassed: int
    trips: int
    breaker: str
    busy_ns: int
    memory_bytes: int
    last_problem: str
    durations: tuple[int, ...] = ()  # messages by time taken, see HOOK_BOUNDS_US
    fail_mode: str = DEFAULT
    late: int = 0
    kept_out: int = 0
    quarantines: int = 0  # how often an origin was put away
    quarantined: int = 0  # how many are, now
    quarantined_keys: tuple[str, ...] = ()  # the latest of them
    strangers_kept_out: bool = False


class QueueHookStats(NamedTuple):
    """Both hooks of one queue; None where there is no script."""

    on_enqueue: HookStats | None
    on_failure: HookStats | None


class Hooks(Protocol):
    """The policy hooks of all queues: a `fila.core.policy.Policy`, and how its scripts are kept.

    A body is the bytes of a message between its queue name and its end, as on the wire:
    `map headers, bytes payload`. `now_ns` is monotonic.
    """

    def check(self, on_enqueue: str | None, on_failure: str | None) -> None:
        """Raise `HookError` if either script would not work on a new queue."""

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
        """Raise `HookError` if either script would not work on this queue; with `on_messages` also
        if it fails for a message that the queue's present script decided. Changes nothing."""

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
        """Put the scripts to work, replacing what the queue had; None means no script.

        Strict: a script that does not work raises `HookError` and the queue keeps what it had.
        Otherwise (a queue loaded from disk) it is logged and the queue uses the defaults.
        """

    def remove(self, queue: str) -> None:
        """Forget the queue's scripts; unknown queues are fine."""

    def has_on_enqueue(self, queue: str) -> bool:
        """Whether `on_enqueue` would run a script."""

    def has_on_failure(self, queue: str) -> bool:
        """Whether `on_failure` would run a script."""

    def on_enqueue(self, queue: str, bodies: Sequence[bytes], now_ns: int) -> list[Assignment]:
        """Where each message of one batch stands, in order."""

    def undecided(self, queue: str) -> list[int]:
        """Of the last batch of `on_enqueue`: which messages got what the fail mode says."""

    def refused(self, queue: str) -> list[int]:
        """Which messages of the last batch are not to be stored: the hook has no verdict for them
        and the queue's fail mode is `reject`."""

    def on_failure(
        self, queue: str, items: Sequence[FailedItem], now_ns: int
    ) -> list[FailureVerdict]:
        """What becomes of each failed message of one batch, in order."""

    def config_changed(self) -> None:
        """Runtime config changed: values that scripts have read are out of date."""

    def stats(self, queue: str) -> QueueHookStats:
        """What the queue's hooks did so far."""


class NoHooks:
    """No script engine: every message gets the defaults, every script is refused."""

    def check(self, on_enqueue: str | None, on_failure: str | None) -> None:
        if on_enqueue is not None or on_failure is not None:
            raise HookError("this broker runs without hooks; create the queue without scripts")

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
        self.check(on_enqueue, on_failure)

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
        if strict:
            self.check(on_enqueue, on_failure)

    def remove(self, queue: str) -> None:
        pass

    def has_on_enqueue(self, queue: str) -> bool:
        return False

    def has_on_failure(self, queue: str) -> bool:
        return False

    def on_enqueue(self, queue: str, bodies: Sequence[bytes], now_ns: int) -> list[Assignment]:
        return [DEFAULT_ASSIGNMENT] * len(bodies)

    def undecided(self, queue: str) -> list[int]:
        return []

    def refused(self, queue: str) -> list[int]:
        return []

    def on_failure(
        self, queue: str, items: Sequence[FailedItem], now_ns: int
    ) -> list[FailureVerdict]:
        return [RETRY_NOW] * len(items)

    def config_changed(self) -> None:
        pass

    def stats(self, queue: str) -> QueueHookStats:
        return QueueHookStats(None, None)
