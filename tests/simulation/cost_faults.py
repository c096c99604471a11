"""Planted faults where messages cost their bytes (`core/byte_cost.py`)."""

from __future__ import annotations

from .planting import fault

COST_FAULTS = [
    fault(
        "what a visit cost beyond its quantum is forgotten",
        "fila.core.byte_cost:begin_visit",
        "carried = key.deficit",
        "carried = 0",
    ),
    fault(
        "a message costs 1 where it costs its bytes",
        "fila.core.delivery:fill",
        "charge(ring, key, bytes_before - bytes_left)",
        "charge(ring, key, taken)",
    ),
    fault(
        "the quantum of bytes has no weight",
        "fila.core.byte_cost:begin_visit",
        "granted = carried + key.weight * state.settings.quantum_bytes",
        "granted = carried + state.settings.quantum_bytes",
    ),
    fault(
        "a visit that only pays does not pass the turn on",
        "fila.core.byte_cost:begin_visit",
        "ring.head = key.after",
        "pass",
    ),
    fault(
        "a visit goes on when its bytes are used up",
        "fila.core.delivery:fill",
        "bytes_keep = bytes_left - deficit if deficit < bytes_left else 0",
        "bytes_keep = 0",
    ),
    fault(
        "who is not alone is let off as if it were",
        "fila.core.byte_cost:begin_visit",
        "if ring.keys > 1 or wanted is not None:",
        "if wanted is not None:",
    ),
    fault(
        "a restart forgets that messages cost their bytes",
        "fila.core.rows:read_queue",
        "settings.get(_COST, 0) == 1",
        "False",
    ),
    fault(
        "a dead-letter queue does not cost as its queue does",
        "fila.core.catalogue:_wanted_for_dead_letters",
        "cost=cost_of(queue.ring)",
        'cost="messages"',
    ),
    fault(
        "a queue with new settings forgets that messages cost their bytes",
        "fila.core.versions:_follow",
        "queue.ring.by_bytes,",
        "False,",
    ),
    fault(
        "an update that names another cost is taken",
        "fila.core.versions:_checked",
        'if settings[COST] not in ("", cost):',
        "if False:",
    ),
]
