"""Planted faults of times to live, for faults.py."""

from __future__ import annotations

from .planting import fault

AGE_FAULTS = [
    fault(
        "delivery does not look whether a message is expired",
        "fila.core.ttl:is_expired",
        "at_ms * _MS <= now_ns",
        "at_ms * _MS < 0",
    ),
    fault(
        "a message expires a millisecond early",
        "fila.core.aging:due",
        "later = aging_rows.from_ms(queue.number, state.now // MS + 1)",
        "later = aging_rows.from_ms(queue.number, state.now // MS + 2)",
    ),
    fault(
        "nobody wakes for the next message that expires",
        "fila.core.aging:due",
        "if following:",
        "if False:",
    ),
    fault(
        "a redriven message keeps no time to live",
        "fila.core.redrive:redrive",
        "aging.stamped(state, parent, original(entry[BODY]))",
        "original(entry[BODY])",
    ),
    fault(
        "a dead letter expires like the message it was",
        "fila.core.settlement:_fail",
        "body = ttl.without_expiry(body)",
        "pass",
        "body = aging.in_dlq(state, dlq, body)",
        "pass",
    ),
    fault(
        "the time of a leased message is kept",
        "fila.core.delivery:fill",
        "expiries.waits_no_more(state, queue, entry)",
        "pass",
    ),
    fault(
        "a leased message that expires is forgotten by a restart",
        "fila.core.load:_load_leases",
        "queue.aging = Aging(queue)",
        "pass",
    ),
    fault(
        "as many messages expire in a turn as there are",
        "fila.core.turn:Turn._age",
        "machine.due_messages(queue, left)",
        "machine.due_messages(queue, 1 << 30)",
    ),
]
