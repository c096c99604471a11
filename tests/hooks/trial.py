"""A queue with hooks and nothing around it: messages in, verdicts out, on a clock set by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from struct import pack

from fila.core.verdict import Assignment, FailureVerdict
from fila.hooks.contract import HookSettings, HookStats
from fila.hooks.policy import LuaHooks

MS = 1_000_000
QUEUE = "orders"
MESSAGE_ID = bytes.fromhex("0190b5e4f3a87c1d9e2f001122334455")
MESSAGE_ID_TEXT = "0190b5e4-f3a8-7c1d-9e2f-001122334455"


def body(headers: Mapping[str, str] | None = None, payload: bytes = b"") -> bytes:
    """Headers and payload as they stand in an Enqueue frame."""
    headers = headers or {}
    parts = [pack(">H", len(headers))]
    for text in (text for pair in headers.items() for text in pair):
        encoded = text.encode()
        parts.append(pack(">H", len(encoded)) + encoded)
    parts.append(pack(">I", len(payload)) + payload)
    return b"".join(parts)


class Trial:
    """`LuaHooks` with a config that is a dict and a `now_ns` that tests move by hand."""

    def __init__(self, settings: HookSettings | None = None, seed: int = 1) -> None:
        self.config: dict[bytes, bytes] = {}
        self.asked: list[bytes] = []
        self.now_ns = 1_000 * MS
        self.hooks = LuaHooks(
            self._get, clock=lambda: self.now_ns, seed=lambda: seed, settings=settings
        )

    def _get(self, key: bytes) -> bytes | None:
        self.asked.append(key)
        return self.config.get(key)

    def set_config(self, key: str, value: str) -> None:
        self.config[key.encode()] = value.encode()
        self.hooks.config_changed()

    # --- on_enqueue

    def on_enqueue(self, source: str, queue: str = QUEUE) -> Trial:
        self.hooks.install(queue, source, None)
        return self

    def assign(self, headers: Mapping[str, str] | None = None, payload: bytes = b"") -> Assignment:
        return self.assign_all([body(headers, payload)])[0]

    def assign_all(self, bodies: Sequence[bytes], queue: str = QUEUE) -> list[Assignment]:
        verdicts = self.hooks.on_enqueue(queue, bodies, self.now_ns)
        assert len(verdicts) == len(bodies)
        return verdicts

    @property
    def enqueue_stats(self) -> HookStats:
        stats = self.hooks.stats(QUEUE).on_enqueue
        assert stats is not None
        return stats

    # --- on_failure

    def on_failure(self, source: str) -> Trial:
        self.hooks.install(QUEUE, None, source)
        return self

    def fail(
        self,
        attempts: int = 1,
        error: str = "it broke",
        headers: Mapping[str, str] | None = None,
    ) -> FailureVerdict:
        items = [(MESSAGE_ID, attempts, error.encode(), body(headers))]
        return self.hooks.on_failure(QUEUE, items, self.now_ns)[0]

    @property
    def failure_stats(self) -> HookStats:
        stats = self.hooks.stats(QUEUE).on_failure
        assert stats is not None
        return stats


def hook(statements: str) -> str:
    """An `on_enqueue` script with these statements in its function."""
    return f"function on_enqueue(msg)\n{statements}\nend"


def assigned(expression: str, headers: Mapping[str, str] | None = None) -> Assignment:
    """What a new queue assigns whose hook returns this."""
    return Trial().on_enqueue(hook(f"return {expression}")).assign(headers)


def evaluated(statements: str) -> str:
    """What these statements, ending in a return, give as text inside the sandbox."""
    trial = Trial()
    trial.on_enqueue(
        f"local function run()\n{statements}\nend\n"
        "function on_enqueue(msg)\n"
        "  local ok, value = pcall(run)\n"
        "  return { fairness_key = (ok and '' or 'error: ') .. tostring(value) }\n"
        "end"
    )
    key = trial.assign().fairness_key.decode()
    assert trial.enqueue_stats.last_problem == ""
    return key
