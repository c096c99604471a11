"""Planted faults about overrides: what an operator says of single keys."""

from __future__ import annotations

from .planting import fault

OVERRIDE_FAULTS = [
    fault(
        "an override's rate leaves out what waits",
        "fila.core.overriding:_apply",
        "add_bucket(lane, bucket)",
        "pass",
    ),
    fault(
        "a new lane escapes the rate of its key's override",
        "fila.core.state:State.add_lane",
        "lane.buckets = [*lane.buckets, bucket]",
        "pass",
    ),
    fault(
        "the newest message's weight beats the override's",
        "fila.core.state:State.weigh",
        "weight or key.told_weight",
        "key.told_weight",
    ),
    fault(
        "an override holds on when its time is over",
        "fila.core.overriding:fall_due",
        '_end(state, queue, one, EXPIRED, "")',
        "pass",
    ),
    fault(
        "a restart forgets overrides",
        "fila.core.overriding:load_overrides",
        "for row, value in found:",
        "for row, value in []:",
    ),
    fault(
        "a restart fills the bucket of an override",
        "fila.core.overriding:load_overrides",
        "bucket.restore(tokens, at_ns, state.now)",
        "pass",
    ),
    fault(
        "the overridden weight is stored as the messages' own",
        "fila.core.ledger:close_batch",
        "lane.key.told_weight",
        "lane.key.weight",
    ),
    fault(
        "the row of an override that ended stays",
        "fila.core.overriding:_end",
        'DELETE_STATE, override.row_key(queue.number, name), b""',
        "PUT_STATE, override.row_key(queue.number, name), override.override_row(one.terms)",
    ),
]
