"""`on_failure`: how failed messages go into its batches and verdicts come out.

A message's part of a batch: u32 attempts, 36 bytes of id as text, the error as a string (u16
length), then its body, cut as for `on_enqueue`.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct

from fila.core.verdict import RETRY_NOW, FailedItem, FailureVerdict
from fila.hooks.body import BLANK_BODY, shortened
from fila.hooks.contract import ON_FAILURE
from fila.hooks.limits import BATCH_BYTES_MAX, BATCH_MESSAGES_MAX, ERROR_BYTES_MAX
from fila.hooks.script import Script

_HEAD = Struct(">I36sH")
_VERDICT = Struct(">BQ")


class FailureScript(Script[FailedItem, FailureVerdict]):
    """`on_failure`: failed messages in, verdicts out."""

    hook = ON_FAILURE

    def _default(self) -> FailureVerdict:
        return RETRY_NOW

    def _fallback(self, item: FailedItem) -> FailureVerdict:
        """Whatever the mode: a message that failed is stored already."""
        return RETRY_NOW

    def _remember(self, items: Sequence[FailedItem], verdicts: Sequence[FailureVerdict]) -> None:
        pass

    def _blank(self) -> FailedItem:
        return (bytes(16), 1, b"", BLANK_BODY)

    def _keep_witness(self, item: FailedItem, verdict: FailureVerdict) -> None:
        message_id, attempts, error, body = item
        kept = (message_id, attempts, error[:ERROR_BYTES_MAX], shortened(body))
        self._witnesses.keep(self._origins.of(body), kept)

    def _part(self, items: Sequence[FailedItem], start: int) -> Sequence[FailedItem]:
        stop, room = start, BATCH_BYTES_MAX
        for _, _, error, body in items[start : start + BATCH_MESSAGES_MAX]:
            room -= _HEAD.size + min(len(error), ERROR_BYTES_MAX) + min(len(body), self._head_bytes)
            if room < 0:
                break
            stop += 1
        return items[start : max(stop, start + 1)]

    def _pack(self, items: Sequence[FailedItem], head_bytes: int) -> bytes:
        parts = []
        for message_id, attempts, error, body in items:
            h = message_id.hex()
            text = f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}"
            shown = error[:ERROR_BYTES_MAX]
            parts.append(_HEAD.pack(attempts, text.encode(), len(shown)))
            parts.append(shown)
            parts.append(body[:head_bytes])
        return b"".join(parts)

    def _bodies(self, items: Sequence[FailedItem]) -> Sequence[bytes]:
        return [item[3] for item in items]

    def _read(self, packed: tuple[bytes, ...]) -> list[FailureVerdict]:
        verdicts = []
        for one in packed:
            dead_letter, delay_ms = _VERDICT.unpack(one)
            verdicts.append(FailureVerdict(dead_letter == 1, delay_ms))
        return verdicts
