"""A script tried on sample messages, without a broker: what it would decide, its time and memory.

Owns the format of samples (JSON lines) and the trial run behind `fila hooks test`
and the dashboard. Each message is
decided on its own, as if it had come alone, and a failure never switches the script off.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from struct import error as StructError  # noqa: N812
from struct import pack
from typing import Any, NamedTuple

from fila.core.verdict import Assignment, FailureVerdict
from fila.hooks.contract import (
    ON_ENQUEUE,
    ON_FAILURE,
    HookError,
    HookSettings,
    HookStats,
    QueueHookStats,
)
from fila.hooks.policy import LuaHooks

_NEVER = 1 << 62  # failures before the breaker trips
_FIELDS = ("headers", "payload", "attempts", "error", "id")


class Sample(NamedTuple):
    """A message to try a script on. `attempts`, `error` and `id` matter to on_failure alone."""

    headers: Mapping[str, str]
    payload: bytes = b""
    attempts: int = 1
    error: str = ""
    id: bytes = bytes(16)


class Tried(NamedTuple):
    """One message and one hook. `problem` is empty unless the script failed and the verdict is the
    default; `memory_bytes` is what the script had in use afterwards, garbage included."""

    hook: str
    number: int
    assignment: Assignment | None
    failure: FailureVerdict | None
    problem: str
    time_ns: int
    memory_bytes: int


def read_samples(lines: Iterable[str]) -> list[Sample]:
    """One JSON object per line; blank lines are skipped. `HookError` names the line at fault."""
    samples = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                sample = _sample(json.loads(line))
                _body(sample)
                samples.append(sample)
            except StructError as fault:
                raise HookError(f"line {number}: a header is longer than 65535 bytes") from fault
            except (ValueError, HookError) as fault:
                raise HookError(f"line {number} is not a sample message: {fault}") from fault
    return samples


def rehearse(
    on_enqueue: str | None,
    on_failure: str | None,
    samples: Iterable[Sample],
    *,
    queue: str,
    config: Mapping[str, str],
    clock: Callable[[], int],
    seed: int,
    timeout_ms: int | None = None,
    memory_limit_bytes: int | None = None,
) -> list[Tried]:
    """Run both scripts over the samples; `HookError` if one of them does not load."""
    samples = list(samples)
    tried: list[Tried] = []
    for _ in range(2):  # first to warm up: a broker's caches are warm, and times should tell
        hooks = LuaHooks(
            lambda key: _encoded(config.get(key.decode())),
            clock=clock,
            seed=lambda: seed,
            settings=HookSettings(breaker_threshold=_NEVER, told=False),
        )
        hooks.install(
            queue,
            on_enqueue,
            on_failure,
            timeout_ms=timeout_ms,
            memory_limit_bytes=memory_limit_bytes,
        )
        tried = _try_all(
            hooks, queue, on_enqueue is not None, on_failure is not None, samples, clock
        )
    return tried


def document_of(one: Tried) -> dict[str, Any]:
    """What was decided, as JSON has it."""
    document: dict[str, Any] = {"message": one.number, "hook": one.hook}
    if one.assignment is not None:
        document["fairness_key"] = one.assignment.fairness_key.decode()
        document["weight"] = one.assignment.weight
        document["throttle_keys"] = [key.decode() for key in one.assignment.throttle_keys]
    if one.failure is not None:
        document["action"] = "dlq" if one.failure.dead_letter else "retry"
        document["delay_ms"] = one.failure.delay_ms
    document["time_us"] = one.time_ns / 1000
    document["memory_bytes"] = one.memory_bytes
    document["problem"] = one.problem or None
    return document


def _try_all(
    hooks: LuaHooks,
    queue: str,
    with_on_enqueue: bool,
    with_on_failure: bool,
    samples: list[Sample],
    clock: Callable[[], int],
) -> list[Tried]:
    tried = []
    for number, sample in enumerate(samples, 1):
        body = _body(sample)
        if with_on_enqueue:
            before, began_ns = hooks.stats(queue), clock()
            assignment = hooks.on_enqueue(queue, [body], began_ns)[0]
            time_ns, after = clock() - began_ns, hooks.stats(queue)
            problem, memory = _outcome(ON_ENQUEUE, before, after)
            tried.append(Tried(ON_ENQUEUE, number, assignment, None, problem, time_ns, memory))
        if with_on_failure:
            item = (sample.id, sample.attempts, sample.error.encode(), body)
            before, began_ns = hooks.stats(queue), clock()
            verdict = hooks.on_failure(queue, [item], began_ns)[0]
            time_ns, after = clock() - began_ns, hooks.stats(queue)
            problem, memory = _outcome(ON_FAILURE, before, after)
            tried.append(Tried(ON_FAILURE, number, None, verdict, problem, time_ns, memory))
    return tried


def _sample(value: Any) -> Sample:
    if not isinstance(value, dict):
        raise HookError("it must be a JSON object")
    for name in value:
        if name not in _FIELDS:
            raise HookError(f'unknown field "{name}" (known: {", ".join(_FIELDS)})')
    headers = value.get("headers", {})
    if not isinstance(headers, dict) or not all(isinstance(v, str) for v in headers.values()):
        raise HookError('"headers" must be an object whose values are strings')
    attempts = value.get("attempts", 1)
    if type(attempts) is not int or not 0 <= attempts < 1 << 32:
        raise HookError('"attempts" must be a whole number')
    payload, error = value.get("payload", ""), value.get("error", "")
    if not isinstance(payload, str) or not isinstance(error, str):
        raise HookError('"payload" and "error" must be strings')
    return Sample(headers, payload.encode(), attempts, error, _id(value.get("id")))


def _id(text: Any) -> bytes:
    if text is None:
        return bytes(16)
    try:
        raw = bytes.fromhex(text.replace("-", ""))
    except (AttributeError, ValueError):
        raw = b""
    if len(raw) != 16:
        raise HookError('"id" must be a UUID')
    return raw


def _body(sample: Sample) -> bytes:
    parts = [pack(">H", len(sample.headers))]
    for text in (text for pair in sample.headers.items() for text in pair):
        encoded = text.encode()
        parts.append(pack(">H", len(encoded)) + encoded)
    parts.append(pack(">I", len(sample.payload)) + sample.payload)
    return b"".join(parts)


def _encoded(value: str | None) -> bytes | None:
    return None if value is None else value.encode()


def _outcome(hook: str, before: QueueHookStats, after: QueueHookStats) -> tuple[str, int]:
    then: HookStats = getattr(before, hook)
    now: HookStats = getattr(after, hook)
    failed = then.errors + then.timeouts + then.memory != now.errors + now.timeouts + now.memory
    return (now.last_problem if failed else "", now.memory_bytes)
