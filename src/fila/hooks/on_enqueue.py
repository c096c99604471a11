"""`on_enqueue`: how messages go into its batches and assignments come out."""

from __future__ import annotations

from collections.abc import Sequence

from fila.core.verdict import DEFAULT_ASSIGNMENT, Assignment
from fila.hooks.body import BLANK_BODY, shortened
from fila.hooks.contract import ON_ENQUEUE, HookSettings
from fila.hooks.limits import BATCH_BYTES_MAX, BATCH_MESSAGES_MAX, KEYS_KNOWN_MAX
from fila.hooks.origins import Origins, digest
from fila.hooks.script import Host, Script


class EnqueueScript(Script[bytes, Assignment]):
    """`on_enqueue`: bodies in, assignments out."""

    hook = ON_ENQUEUE

    def __init__(
        self, queue: str, source: str, settings: HookSettings, host: Host, origins: Origins
    ) -> None:
        super().__init__(queue, source, settings, host, origins)
        self._last_good: dict[bytes, Assignment] = {}

    def _default(self) -> Assignment:
        return DEFAULT_ASSIGNMENT

    def _fallback(self, item: bytes) -> Assignment:
        """In mode `last-good` what the same key, or else the same headers, were given last."""
        key = self._origins.key_of(item)
        found = self._last_good.get(key) if key is not None else None
        return found or self._last_good.get(digest(item)) or DEFAULT_ASSIGNMENT

    def _remember(self, items: Sequence[bytes], verdicts: Sequence[Assignment]) -> None:
        last_good = self._last_good
        if len(last_good) + 2 * len(items) > KEYS_KNOWN_MAX:
            last_good.clear()
        for item, verdict in zip(items, verdicts, strict=True):
            last_good[verdict.fairness_key] = verdict
            last_good[digest(item)] = verdict

    def _blank(self) -> bytes:
        return BLANK_BODY

    def _keep_witness(self, item: bytes, verdict: Assignment) -> None:
        self._origins.learn(item, verdict.fairness_key)
        self._witnesses.keep(verdict.fairness_key, shortened(item))

    def _part(self, items: Sequence[bytes], start: int) -> Sequence[bytes]:
        step = min(BATCH_MESSAGES_MAX, BATCH_BYTES_MAX // self._head_bytes)
        return items if not start and len(items) <= step else items[start : start + step]

    def _pack(self, items: Sequence[bytes], head_bytes: int) -> bytes:
        return b"".join([body[:head_bytes] for body in items])

    def _bodies(self, items: Sequence[bytes]) -> Sequence[bytes]:
        return items

    def _read(self, packed: tuple[bytes, ...]) -> list[Assignment]:
        self._origins.gave(packed)
        return self._host.assignments.read(packed)
