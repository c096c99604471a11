"""Policy: who decides about a message, asked before a command is made. Hooks are one.

Owns what the turn asks and how: where a message stands (assignments) and what becomes of one that
failed (verdicts). The machine sees the answers only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from fila.core.entry import ATTEMPTS, BODY, Entry
from fila.core.machine import Machine
from fila.core.verdict import (
    DEAD,
    DEFAULT_ASSIGNMENT,
    RETRY_NOW,
    Assignment,
    FailedItem,
    FailureVerdict,
)


class Policy(Protocol):
    """An answer never fails: every message gets one. Without a script there are defaults."""

    def has_on_enqueue(self, queue: str) -> bool: ...

    def has_on_failure(self, queue: str) -> bool: ...

    def on_enqueue(self, queue: str, bodies: Sequence[bytes], now_ns: int) -> list[Assignment]: ...

    def undecided(self, queue: str) -> list[int]:
        """Of the last call of `on_enqueue`: which got what fail mode says."""
        ...

    def on_failure(
        self, queue: str, items: Sequence[FailedItem], now_ns: int
    ) -> list[FailureVerdict]: ...


class Defaults:
    """The policy of those who have none: a replay, a benchmark."""

    def has_on_enqueue(self, queue: str) -> bool:
        return False

    def has_on_failure(self, queue: str) -> bool:
        return False

    def on_enqueue(self, queue: str, bodies: Sequence[bytes], now_ns: int) -> list[Assignment]:
        return [DEFAULT_ASSIGNMENT] * len(bodies)

    def undecided(self, queue: str) -> list[int]:
        return []

    def on_failure(
        self, queue: str, items: Sequence[FailedItem], now_ns: int
    ) -> list[FailureVerdict]:
        return [RETRY_NOW] * len(items)


class Judged(NamedTuple):
    verdicts: list[FailureVerdict]
    entries: list[Entry | None] | None  # the messages as they were read; None: no hook asked


def assign(policy: Policy, queue: str, bodies: list[bytes], now_ns: int) -> list[Assignment]:
    """Where each message stands."""
    if policy.has_on_enqueue(queue):
        return policy.on_enqueue(queue, bodies, now_ns)
    return [DEFAULT_ASSIGNMENT] * len(bodies)


def assign_again(
    policy: Policy, queue: str, bodies: list[bytes], now_ns: int
) -> list[Assignment | None]:
    """Where each message would stand now; None where the hook has no verdict of its own."""
    found: list[Assignment | None] = []
    if bodies:
        found += policy.on_enqueue(queue, bodies, now_ns)
        for at in policy.undecided(queue):
            found[at] = None
    return found


def judge(
    policy: Policy,
    machine: Machine,
    queue: str,
    ids: list[bytes],
    errors: list[str],
    connection: int,
) -> Judged:
    """What becomes of each failed message; those a nack will not find need no answer.

    A hook has to see the messages, so they are read here, once: the command takes what
    was read along. A queue's delivery limit comes after the hook: it is the last word."""
    verdicts = [RETRY_NOW] * len(ids)
    attempts_max = machine.view.max_attempts(queue)
    hooked = policy.has_on_failure(queue)
    if not hooked and not attempts_max:
        return Judged(verdicts, None)
    entries = machine.failed(queue, ids, connection)
    if hooked:
        _ask(policy, queue, ids, errors, entries, verdicts, machine.state.now)
    if attempts_max:
        for at, entry in enumerate(entries):
            spent = entry is not None and entry[ATTEMPTS] + 1 >= attempts_max
            if spent and not verdicts[at].dead_letter:
                verdicts[at] = DEAD
    return Judged(verdicts, entries)


def _ask(
    policy: Policy,
    queue: str,
    ids: list[bytes],
    errors: list[str],
    entries: list[Entry | None],
    verdicts: list[FailureVerdict],
    now_ns: int,
) -> None:
    """What the hook says of those that were found."""
    items: list[FailedItem] = []
    asked: list[int] = []  # which of the ids
    for at, entry in enumerate(entries):
        if entry is not None:
            error = errors[at].encode()
            items.append((ids[at], entry[ATTEMPTS] + 1, error, entry[BODY]))
            asked.append(at)
    answers = policy.on_failure(queue, items, now_ns)
    for at, answer in zip(asked, answers, strict=True):
        verdicts[at] = answer
