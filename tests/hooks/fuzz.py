"""Random scripts against the sandbox: `python -m tests.hooks.fuzz --scripts 100000 --seed 1`.

Half of the scripts are made from a grammar that likes dangerous names and extreme values, half are
mutations of working ones. Whatever a script is, the hook layer may only refuse it with `HookError`
or give every message a proper verdict, within bounded time, and the process must not grow.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import logging
import random
import resource
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from fila.core.verdict import DELAY_MS_MAX, WEIGHT_MAX, Assignment, FailureVerdict
from fila.hooks.contract import HookError, HookSettings
from fila.hooks.limits import (
    FAIRNESS_KEY_BYTES_MAX,
    THROTTLE_KEY_BYTES_MAX,
    THROTTLE_KEYS_MAX,
)
from fila.hooks.policy import LuaHooks
from tests.hooks.grammar import Grammar
from tests.hooks.mutation import mutated
from tests.hooks.trial import MESSAGE_ID, body

QUEUE = "fuzzed"
TIMEOUT_MS = 2
PAUSE_MS_MAX = 1_000
CONFIG = {b"x": b"1", b"weight:acme": b"5", b"max_retries": b"3", b"big": b"v" * 9_000}
BODIES = [
    body({"tenant": "acme", "priority": "5", "provider": "stripe"}, b"payload"),
    body({}, b""),
    body({"tenant": "x" * 600, "k": "\x00\x7f%s"}, b"p" * 600),
    body({f"h{i}": "v" for i in range(40)}),
]
ITEMS = [
    (MESSAGE_ID, attempts, error, one)
    for attempts, error, one in zip(
        (0, 1, 7, 4_294_967_295),
        (b"", b"HTTP 503", b"\xff" * 40, b"e" * 65_535),
        BODIES,
        strict=True,
    )
]


class Report(NamedTuple):
    scripts: int
    refused: int
    outcomes: dict[str, int]
    longest_pause_ms: float
    slowest_script: str
    grown_bytes: int
    seconds: float


def run(scripts: int, seed: int, corpus: list[str], *, progress: bool = False) -> Report:
    rng = random.Random(seed)
    grammar = Grammar(rng)
    hooks = LuaHooks(
        CONFIG.get,
        clock=time.monotonic_ns,
        seed=lambda: seed,
        settings=HookSettings(timeout_ms=TIMEOUT_MS, breaker_threshold=1_000),
    )
    outcomes: Counter[str] = Counter()
    refused, longest_s, slowest, settled_bytes = 0, 0.0, "", 0
    began = time.monotonic()
    for number in range(scripts):
        hook = rng.choice(("on_enqueue", "on_failure"))
        source = grammar.script(hook) if rng.random() < 0.5 else mutated(rng, corpus, hook)
        pause_began = time.process_time()
        try:
            if hook == "on_enqueue":
                hooks.install(QUEUE, source, None)
            else:
                hooks.install(QUEUE, None, source)
        except HookError as refusal:
            refused += 1
            outcomes["refused: " + ("compile" if "compile" in str(refusal) else "load")] += 1
            if not str(refusal).isprintable():
                raise AssertionError(f"{refusal!r} for:\n{source}") from refusal
        else:
            outcomes += try_out(hooks, hook, source)
        pause_s = time.process_time() - pause_began
        if pause_s > longest_s:
            longest_s, slowest = pause_s, source
        assert pause_s * 1000 < PAUSE_MS_MAX, f"{pause_s:.3f} s for:\n{source}"
        if number == scripts // 10:
            settled_bytes = resident_bytes()
        if progress and number % 5_000 == 4_999:
            print(f"{number + 1} scripts, {resident_bytes() >> 20} MiB resident", flush=True)
    hooks.remove(QUEUE)
    return Report(
        scripts,
        refused,
        dict(outcomes.most_common()),
        longest_s * 1000,
        slowest,
        resident_bytes() - settled_bytes,
        time.monotonic() - began,
    )


def try_out(hooks: LuaHooks, hook: str, source: str) -> Counter[str]:
    now_ns = 0
    if hook == "on_enqueue":
        for bodies in (BODIES[:1], BODIES):
            verdicts = hooks.on_enqueue(QUEUE, bodies, now_ns)
            assert len(verdicts) == len(bodies), source
            for assignment in verdicts:
                check_assignment(assignment, source)
        stats = hooks.stats(QUEUE).on_enqueue
    else:
        for items in (ITEMS[:1], ITEMS):
            answers = hooks.on_failure(QUEUE, items, now_ns)
            assert len(answers) == len(items), source
            for verdict in answers:
                check_failure(verdict, source)
        stats = hooks.stats(QUEUE).on_failure
    assert stats is not None
    assert stats.last_problem.isprintable(), source
    failures = stats.errors + stats.timeouts + stats.memory
    return Counter(
        decided=stats.executions - min(failures, stats.executions),
        errors=stats.errors,
        timeouts=stats.timeouts,
        memory=stats.memory,
        bypassed=stats.bypassed,
    )


def check_assignment(verdict: Assignment, source: str) -> None:
    key, weight, throttle_keys = verdict
    key.decode("utf-8")
    assert type(key) is bytes, source
    assert 1 <= len(key) <= FAIRNESS_KEY_BYTES_MAX, source
    assert type(weight) is int, source
    assert 1 <= weight <= WEIGHT_MAX, source
    assert list(throttle_keys) == sorted(set(throttle_keys)), source
    assert len(throttle_keys) <= THROTTLE_KEYS_MAX, source
    for throttle_key in throttle_keys:
        throttle_key.decode("utf-8")
        assert 1 <= len(throttle_key) <= THROTTLE_KEY_BYTES_MAX, source


def check_failure(verdict: FailureVerdict, source: str) -> None:
    assert type(verdict.dead_letter) is bool, source
    assert type(verdict.delay_ms) is int, source
    assert 0 <= verdict.delay_ms <= DELAY_MS_MAX, source


def resident_bytes() -> int:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def load_corpus() -> list[str]:
    """Working scripts and attacks, to mutate."""
    from tests.hooks.test_memory import BOMBS
    from tests.hooks.test_time import ENDED_EARLIER, LOOPS

    attacks = [*BOMBS.values(), *LOOPS.values(), *ENDED_EARLIER.values()]
    wrapped = [f"function on_enqueue(msg)\n{statements}\nend" for statements in attacks]
    return [*WORKING, *wrapped]


WORKING = [
    """
function on_enqueue(msg)
  local tier = msg.headers["tier"] or "standard"
  local weights = { premium = 3, standard = 1 }
  return { fairness_key = msg.headers["tenant"] or "default", weight = weights[tier] or 1 }
end
""",
    """
seen = {}
function on_enqueue(msg)
  local tenant = msg.headers.tenant or "none"
  seen[tenant] = (seen[tenant] or 0) + 1
  local keys = {}
  for name, value in pairs(msg.headers) do
    keys[#keys + 1] = name:lower() .. ":" .. value:sub(1, 20)
    if #keys > 10 then break end
  end
  table.sort(keys, function(a, b) return a > b end)
  return { fairness_key = tenant, weight = fila.get("weight:" .. tenant), throttle_keys = keys }
end
""",
    """
local function parse(text)
  local parts = {}
  for word in text:gmatch("[^%s,]+") do parts[#parts + 1] = word end
  return table.concat(parts, "/"), select("#", table.unpack(parts))
end
function on_enqueue(msg)
  local ok, path, count = pcall(parse, msg.headers.tenant or "a, b c")
  if not ok then error({ path }) end
  local keys = fila.helpers.rate_limit_keys(msg, { "p:{provider}" })
  return { fairness_key = path, weight = count, throttle_keys = keys }
end
""",
    """
function on_failure(msg, error)
  local decision = fila.helpers.max_retries(msg.attempts, tonumber(fila.get("max_retries")) or 5)
  if error:find("4%d%d") or msg.error:match("^HTTP (%d+)") == "404" then
    return { action = "dlq" }
  end
  if decision.action == "retry" then
    decision.delay_ms = fila.helpers.exponential_backoff(msg.attempts, 1000, 60000)
  end
  return decision
end
""",
    """
function on_failure(msg)
  local s = string.format("%s-%05d-%q", msg.id:gsub("-", ""), msg.attempts % 99999, msg.queue)
  local n = utf8.len(msg.error) or #msg.error
  return { action = n > 10 and "retry" or "dlq", delay_ms = math.min(2 ^ #s, 60000) // 1 }
end
""",
]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.hooks.fuzz", description=__doc__)
    parser.add_argument("--scripts", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    faulthandler.enable()
    logging.getLogger("fila.hooks").setLevel(logging.CRITICAL)
    report = run(options.scripts, options.seed, load_corpus(), progress=True)
    for name, value in report._asdict().items():
        print(f"{name}: {value}")


if __name__ == "__main__":
    main()
