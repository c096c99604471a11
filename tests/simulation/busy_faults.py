"""Planted faults in how busy consumers are told from absent ones (`core/busy.py`)."""

from __future__ import annotations

from .planting import fault

BUSY_FAULTS = [
    fault(
        "what a key's messages in flight cost the others is not counted as its own",
        "fila.core.fairness:FairnessKey.count_held",
        "self.held_clock += self.leased * (integral - self.held_then)",
        "self.held_clock += integral - self.held_then",
    ),
    fault(
        "a message that is finished goes on holding a part",
        "fila.core.settlement:_settle",
        "fairness_key.leased -= 1",
        "pass",
    ),
    fault(
        "consumers that are held count as busy",
        "fila.core.consuming:hold",
        "queue.attending += -1 if command.held else 1",
        "pass",
    ),
    fault(
        "consumers that left count as busy",
        "fila.core.consuming:leave",
        "queue.attending -= 1",
        "pass",
    ),
    fault(
        "a paused queue's consumers count as busy",
        "fila.core.queue:Queue.watch",
        "and not self.ready and self.pause is None",
        "and not self.ready",
    ),
    fault(
        "the busy clock goes on when somebody has credit again",
        "fila.core.queue:Queue.add_ready",
        "self.busy.count(0, now)",
        "pass",
    ),
    fault(
        "the readings of an earlier process are trusted",
        "fila.core.delivery:fill",
        "if since > loaded_ns:",
        "if True:",
    ),
]
