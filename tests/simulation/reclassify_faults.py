"""Planted faults about reclassifications: what waits is judged again."""

from __future__ import annotations

from .planting import fault

RECLASSIFY_FAULTS = [
    fault(
        "a message that moved stays in its old lane too",
        "fila.core.reclassify:_move",
        'ops.append((DELETE_MESSAGE, entry[KEY], b""))',
        "pass",
    ),
    fault(
        "a window forgets a message that moved there in this turn",
        "fila.core.lane:Lane.cut",
        " or gone[KEY] in fresh",
        "",
    ),
    fault(
        "a page brings back what a reclassification moved in the same turn",
        "fila.core.pending:take_out",
        "state.taken.update(dict.fromkeys(gone))",
        "pass",
    ),
    fault(
        "a reclassification passes over what lies behind the window",
        "fila.core.reclassify:waiting_after",
        "if not lane.horizon or lane in state.purged:",
        "if True:",
    ),
    fault(
        "another version of the hook does not judge again what was judged",
        "fila.core.reclassify_job:ReclassifyJob.step",
        "if queue.version != self.course.version:",
        "if False:",
    ),
    fault(
        "a message moves before what its new lane delivered",
        "fila.core.reclassify:_move",
        "if place <= target.delivered:",
        "if False:",
    ),
    fault(
        "a message that moved keeps its old weight",
        "fila.core.reclassify:_move",
        "again = moved_to(entry, place, stamp, weight, throttled_ns, held_ns)",
        "again = moved_to(entry, place, stamp, entry[WEIGHT], throttled_ns, held_ns)",
    ),
    fault(
        "a restart forgets what is being reclassified",
        "fila.core.reclassify:load_course",
        "queue.course = read_course(value)",
        "pass",
    ),
]
