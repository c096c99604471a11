"""Planted faults of limits on what waits, for faults.py."""

from __future__ import annotations

from .planting import fault

ROOM_FAULTS = [
    fault(
        "one message more than may goes in",
        "fila.core.room:admit",
        "if limit and used + more > limit]",
        "if limit and used + more > limit + 1]",
    ),
    fault(
        "a batch is let in as if each of it came alone",
        "fila.core.room:admit",
        "of_key[name] = (key_messages + 1, key_bytes + bytes_more)",
        "pass",
    ),
    fault(
        "a key's newer lane makes room",
        "fila.core.room:_drop_oldest",
        "one.head_stamp() < lane.head_stamp()",
        "one.head_stamp() > lane.head_stamp()",
    ),
    fault(
        "what makes room stays on the disk",
        "fila.core.room:_drop_oldest",
        'state.ops(queue.group).append((DELETE_MESSAGE, entry[KEY], b""))',
        "pass",
    ),
    fault(
        "the bytes of what is delivered wait on",
        "fila.core.delivery:fill",
        "lane.lighten(entry)",
        "pass",
    ),
    fault(
        "a restart forgets the bytes that wait",
        "fila.core.load:_load_weights",
        'weigh(int.from_bytes(value, "big"))',
        "weigh(0)",
    ),
]
