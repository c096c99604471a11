"""What Lua hooks cost: per call, per message in a batch, and as a share of a message's life.

    python -m bench.hooks [--full]

The hook reads two headers and returns a fairness key, a weight and one throttle key; messages carry
1 KB. Calls are timed one by one, for their percentiles, in CPU time of this thread: on a busy
machine the clock on the wall measures the neighbours. The share compares the hook with the life of
the same messages in the core and RocksDB, in turns in one process.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Callable
from struct import pack
from time import perf_counter_ns, thread_time_ns

from bench import command
from bench.lifecycle import BATCH, Lifecycle
from bench.record import Findings, Row, Target
from fila.hooks.contract import HookSettings
from fila.hooks.policy import LuaHooks
from fila.server.collector import collect_little
from fila.storage.rocks import RocksStore

SINGLE_P99_US = 50.0
BATCHED_US = 3.0
SHARE_KEPT = 0.70
QUEUE = "orders"

TWO_HEADERS = """
function on_enqueue(msg)
  return {
    fairness_key = msg.headers["tenant"] or "default",
    weight = tonumber(msg.headers["priority"]) or 1,
    throttle_keys = { "tenant:" .. msg.headers["tenant"] },
  }
end
"""
WITH_CONFIG = """
function on_enqueue(msg)
  local tenant = msg.headers["tenant"] or "default"
  return { fairness_key = tenant, weight = fila.get("weight:" .. tenant) }
end
"""
WITH_PATTERN = """
function on_enqueue(msg)
  local region, zone = msg.headers["tenant"]:match("^(%a+)-(%d+)$")
  return { fairness_key = region, throttle_keys = { "zone:" .. zone, "region:" .. region } }
end
"""
ALWAYS_FAILS = "function on_enqueue(msg) error('no') end"
RETRY = """
function on_failure(msg)
  if msg.attempts >= 5 or msg.error:find("4%d%d") then return { action = "dlq" } end
  local delay_ms = fila.helpers.exponential_backoff(msg.attempts, 1000, 60000)
  return { action = "retry", delay_ms = delay_ms }
end
"""

Body = bytes


def _clock_cost_ns() -> int:
    began = thread_time_ns()
    for _ in range(1_000):
        thread_time_ns()
    return (thread_time_ns() - began) // 1_000


CLOCK_NS = _clock_cost_ns()
Calls = Callable[[LuaHooks, list[Body]], object]


def run(full: bool) -> Findings:
    singles, batches = (200_000, 4_000) if full else (20_000, 600)
    rows = [
        _measure("on_enqueue, two headers", TWO_HEADERS, _enqueue, singles, batches),
        _measure("on_enqueue, fila.get", WITH_CONFIG, _enqueue, singles, batches),
        _measure("on_enqueue, pattern", WITH_PATTERN, _enqueue, singles, batches),
        _measure("on_failure, back-off", RETRY, _fail, singles, batches),
        _measure("on_enqueue, every message fails", ALWAYS_FAILS, _enqueue, singles // 10, 0),
        _measure("breaker open", ALWAYS_FAILS, _enqueue, singles, batches, breaker=True),
        _measure("no script", None, _enqueue, singles, batches),
    ]
    share = _share(60 if full else 20)
    two_headers = rows[0]
    p99, batched = float(two_headers["single p99 µs"]), float(two_headers["batch µs/msg p50"])
    kept = float(share["kept"])
    targets = [
        Target("one call, p99", f"< {SINGLE_P99_US:g} µs", f"{p99} µs", p99 < SINGLE_P99_US),
        Target(
            "in batches of 100", f"<= {BATCHED_US:g} µs", f"{batched} µs", batched <= BATCHED_US
        ),
        Target("core lifecycles kept", f">= {SHARE_KEPT}", f"{kept}", kept >= SHARE_KEPT),
    ]
    return Findings(
        "Hooks called as the broker calls them, messages of 1 KB with two headers. p50 and p99 of "
        "single calls, and of batches of 100 divided by 100, in CPU time.",
        {
            "Time per call": rows,
            "A script's own cost": [_install()],
            "Share of a message's life (core and RocksDB, batches of 100, CPU time)": [share],
        },
        targets,
        ["The share is without sockets; with them a message costs more and the hook weighs less."],
    )


def _measure(
    what: str,
    source: str | None,
    call: Calls,
    singles: int,
    batches: int,
    *,
    breaker: bool = False,
) -> Row:
    hooks = _hooks(source, threshold=3 if breaker else 1 << 60)
    bodies = _bodies()
    for _ in range(200):
        call(hooks, bodies[:1])
    single = sorted(
        _timed(call, hooks, bodies[at % BATCH : at % BATCH + 1]) for at in range(singles)
    )
    row: Row = {
        "what": what,
        "single p50 µs": _us(single[len(single) // 2]),
        "single p99 µs": _us(single[len(single) * 99 // 100]),
    }
    batch = sorted(_timed(call, hooks, bodies) for _ in range(batches))
    row["batch µs/msg p50"] = _us(batch[len(batch) // 2] / BATCH) if batch else "-"
    row["batch µs/msg p99"] = _us(batch[len(batch) * 99 // 100] / BATCH) if batch else "-"
    return row


def _timed(call: Calls, hooks: LuaHooks, bodies: list[Body]) -> int:
    began = thread_time_ns()
    call(hooks, bodies)
    return thread_time_ns() - began - CLOCK_NS


def _share(rounds: int) -> Row:
    """The same messages through the core and RocksDB, and through the hook, in turns."""
    hooks, bodies = _hooks(TWO_HEADERS), _bodies()
    core: list[float] = []
    hook: list[float] = []
    with tempfile.TemporaryDirectory(prefix="fila-bench-") as place:
        store = RocksStore(place)
        life = Lifecycle(store, 10, 2_000)
        for _ in range(rounds):
            core.append(life.turns(20) / 20 / BATCH)
            began = thread_time_ns()
            for _ in range(20):
                _enqueue(hooks, bodies)
            hook.append((thread_time_ns() - began) / 20 / BATCH)
        store.close()
    without, extra = statistics.median(core), statistics.median(hook)
    return {
        "without hook µs/msg": _us(without),
        "hook µs/msg": _us(extra),
        "kept": round(without / (without + extra), 3),
    }


def _install() -> Row:
    hooks = _hooks(None)
    times = []
    for at in range(50):
        began = perf_counter_ns()
        hooks.install(f"q{at}", TWO_HEADERS, None)
        times.append(perf_counter_ns() - began)
    stats = hooks.stats("q0").on_enqueue
    assert stats is not None
    return {"install µs": _us(statistics.median(times)), "script memory bytes": stats.memory_bytes}


def _hooks(source: str | None, threshold: int = 3) -> LuaHooks:
    config = {b"weight:tenant-%d" % at: b"%d" % (at + 1) for at in range(10)}
    hooks = LuaHooks(
        config.get,
        clock=perf_counter_ns,
        seed=lambda: 1,
        settings=HookSettings(breaker_threshold=threshold),
    )
    on_failure = source if source is RETRY else None
    hooks.install(QUEUE, None if on_failure else source, on_failure)
    return hooks


def _enqueue(hooks: LuaHooks, bodies: list[Body]) -> object:
    return hooks.on_enqueue(QUEUE, bodies, 1)


def _fail(hooks: LuaHooks, bodies: list[Body]) -> object:
    items = [(bytes(16), 1 + at % 5, b"HTTP 503 upstream", body) for at, body in enumerate(bodies)]
    return hooks.on_failure(QUEUE, items, 1)


def _bodies() -> list[Body]:
    payload = pack(">I", 1024) + b"x" * 1024
    return [
        b"".join(
            [pack(">H", 2)]
            + [pack(">H", len(text)) + text for text in (b"tenant", b"tenant-%d" % (at % 10))]
            + [pack(">H", len(text)) + text for text in (b"priority", b"%d" % (1 + at % 3))]
            + [payload]
        )
        for at in range(BATCH)
    ]


def _us(ns: float) -> float:
    return round(ns / 1000, 2)


def main() -> int:
    collect_little()
    met = command.main("hooks", run)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
