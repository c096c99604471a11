"""Planted faults of the turn, its jobs and the commit path, for faults.py."""

from __future__ import annotations

from .planting import fault

TURN_FAULTS = [
    # --- durability
    fault(
        "a folded ledger record is dropped",
        "fila.core.ledger:_fold",
        "ops.append(put_lane(lane, now))",
        "pass",
    ),
    fault(
        "effects are let go before the write",
        "fila.storage.committer:OsCommitter.commit",
        "if batches:\n        self._store.write(batches)\n    committed()",
        "committed()\n    if batches:\n        self._store.write(batches)",
    ),
    fault(
        "effects are let go before the flush",
        "fila.storage.committer:FsyncCommitter.commit",
        "self._store.write(batches)\n        self._waiting.append(committed)",
        "self._store.write(batches)\n        committed()",
    ),
    fault(
        "a turn is written in pieces",
        "fila.storage.committer:FsyncCommitter.commit",
        "self._store.write(batches)",
        "[self._store.write([one]) for one in batches]",
    ),
    # --- the turn and its flusher
    fault(
        "leases run out before the commands of their turn",
        "fila.core.turn:Turn.begin",
        "self.machine.advance(now)",
        "self.machine.advance(now)\n    self._end_leases()",
    ),
    fault(
        "more leases end in a turn than may",
        "fila.core.turn:Turn._end_leases",
        "left -= max(len(ids), 1)",
        "pass",
    ),
    fault(
        "a redrive goes on beyond what was asked for",
        "fila.core.jobs:Jobs._step_redrive",
        "min(step, job.left)",
        "step",
    ),
    fault(
        "a redrive is answered with its last step",
        "fila.core.jobs:Jobs._step_redrive",
        "job.moved += moved",
        "job.moved = moved",
    ),
    fault(
        "a job is answered before its last step",
        "fila.core.jobs:Jobs.step",
        "if self._step_redrive(redrive):",
        "if self._step_redrive(redrive) or True:",
    ),
    fault(
        "a step of a purge passes a lane over",
        "fila.core.jobs:Jobs._step_purge",
        "job.at += lanes_max",
        "job.at += lanes_max + 1",
    ),
    fault(
        "nobody wakes for the rest of a job",
        "fila.core.turn:Turn.due_ns",
        "if self._jobs.under_way:",
        "if False:",
    ),
    fault(
        "a sync counts for what was written after it began",
        "fila.storage.committer:FsyncCommitter.commit",
        "self._store.write(batches)\n        self._waiting.append(committed)",
        "self._store.write(batches)\n"
        "        (self._covered if self.syncing else self._waiting).append(committed)",
    ),
    fault(
        "a turn without changes overtakes the sync",
        "fila.storage.committer:FsyncCommitter.commit",
        "self._covered.append(committed)",
        "committed()",
    ),
    fault(
        "a deleted queue leaves its messages on the disk",
        "fila.core.catalogue:_remove_queue",
        "ops.append((DELETE_RANGE | rows.MESSAGES, prefix, end))",
        "pass",
    ),
]
