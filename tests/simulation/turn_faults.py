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
        "more is handed back in a turn than may",
        "fila.core.turn:Turn._hand_back",
        "left -= self._cost(queue, ids)",
        "pass",
    ),
    fault(
        "what a consumer lets go of counts as failed when its time comes",
        "fila.core.turn:Turn._end_leases",
        "if returning:",
        "if False:",
    ),
    fault(
        "leases are handed back one consumer after the other",
        "fila.core.returning:Returning.first",
        "elif leases[0].number == number:",
        "elif True:",
    ),
    fault(
        "nobody wakes for the rest of a hand-back",
        "fila.core.machine:Machine.next_deadline",
        "if state.returning.heap and state.returning:",
        "if False:",
    ),
    fault(
        "a consumer that left before is passed over by the goodbye",
        "fila.core.consuming:leave",
        "elif consumer.leases:",
        "elif False:",
    ),
    fault(
        "more leases end in a turn than may",
        "fila.core.turn:Turn._end_leases",
        "left -= self._cost(queue, ids)",
        "pass",
    ),
    fault(
        "a pass is as large as it likes",
        "fila.core.delivery:deliver_queue",
        "state.pass_left <= 0 or state.pass_bytes_left <= 0",
        "state.pass_left <= 0",
    ),
    fault(
        "every queue has a pass of its own",
        "fila.core.delivery:deliver_queue",
        "    ready = queue.ready",
        "    state.pass_left = settings.pass_messages\n    ready = queue.ready",
    ),
    fault(
        "deliveries pile up behind a slow commit",
        "fila.core.turn:Turn.end",
        "self._leaving_bytes < state.settings.leaving_bytes",
        "True",
    ),
    fault(
        "deliveries stay counted when they have left",
        "fila.core.turn:Turn._let_go",
        "self._leaving_bytes -= delivered_bytes",
        "pass",
    ),
    fault(
        "the next part of a batch begins with the last lease of the one before",
        "fila.core.leasing:_leased_by",
        "if number <= after:",
        "if number < after:",
    ),
    fault(
        "a batch that filled over several turns is told in part",
        "fila.core.leasing:collect",
        "whole=before == 0",
        "whole=True",
    ),
    fault(
        "a redrive goes on beyond what was asked for",
        "fila.core.jobs:Jobs._step_redrive",
        "min(settings.redrive_messages, job.left)",
        "settings.redrive_messages",
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
        "if not job.over:",
        "if not job.over and not isinstance(job, RedriveJob):",
    ),
    fault(
        "a step of a purge passes a lane over",
        "fila.core.jobs:Jobs._step_purge",
        "lanes = found.take(settings.purge_lanes)",
        "lanes = found.take(settings.purge_lanes)[1:]",
    ),
    fault(
        "all jobs take a step however many they are",
        "fila.core.jobs:Jobs.step",
        "if left <= 0:",
        "if left <= -(1 << 62):",
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
        "fila.core.catalogue:_delete_rows",
        '(rows.MESSAGES, (b"",)),',
        "",
    ),
    # --- a log that answers late
    fault(
        "rows under way are not shown",
        "fila.storage.pending:PendingStore.propose",
        "self._rows[family][key] = _Row(at, None if kind == DELETE else value)",
        "pass",
        "self._lanes.setdefault(key[:_LANE_BYTES], {})[key] = None",
        "pass",
    ),
    fault(
        "an answer forgets what a later turn has made of the row",
        "fila.storage.pending:PendingStore._forget",
        " or found.at > upto",
        "",
    ),
    fault(
        "a turn is let go before the log has it",
        "tests.simulation.late:LateCommitter.commit",
        "if not batches and not self._under:",
        "if not self._under:\n        self._store.propose(batches)\n        committed()\n"
        "        self._under.append(([one.group for one in batches], lambda: None))\n"
        "        return\n    if not batches and not self._under:",
    ),
    # --- log groups
    fault(
        "a dead-letter queue made by hand is in another group than its queue",
        "fila.core.grouping:group_for",
        "return queue.group",
        "return Group(state.next_queue)",
    ),
    fault(
        "a nack makes the dead-letter queue anew in the catalogue",
        "fila.core.catalogue:_show",
        'state.ops(group).append((PUT_STATE, rows.shown_key(row.number), b"\\x01"))',
        "state.ops(state.groups[0]).append((PUT_QUEUE, name.encode(), rows.queue_row(row)))",
    ),
    fault(
        "a start does not know that a hidden queue is there again",
        "fila.core.catalogue:_show",
        'state.ops(group).append((PUT_STATE, rows.shown_key(row.number), b"\\x01"))',
        "pass",
    ),
    fault(
        "the catalogue's batch deletes a queue's rows",
        "fila.core.catalogue:_remove_queue",
        "_delete_rows(state.ops(queue.group), queue.number)",
        "_delete_rows(state.ops(state.groups[0]), queue.number)",
    ),
    fault(
        "a group that ends leaves its ledger behind",
        "fila.core.catalogue:_end_group",
        "group.over = True",
        "pass",
    ),
    fault(
        "a consumer is not told that its queue is unloaded",
        "fila.core.catalogue:forget_queue",
        "state.ended.append(Ended(consumer, why))",
        "state.ended.append(Ended(consumer, why)) if why.code != 0x10 else None",
    ),
    fault(
        "who waits for a batch is not told that its queue is unloaded",
        "fila.core.lease_batch:forget_batches",
        "state.batches_leased.append(gone)",
        "state.batches_leased.append(gone) if why.code != 0x10 else None",
    ),
    fault(
        "a job of an unloaded queue is answered with a count",
        "fila.core.jobs:_answer",
        "gone is None or gone.code == QUEUE_NOT_FOUND",
        "True",
    ),
    fault(
        "an unloaded queue is said not to exist",
        "fila.core.state:State.no_queue",
        "if one is None and name in self.unloaded:",
        "if False:",
    ),
    fault(
        "what a turn did to a group that leaves with it is not written",
        "fila.core.machine:Machine.take",
        "for group in state.dirty_groups]",
        "for group in state.dirty_groups if group not in state.unloading or group.ops.clear()]",
    ),
    fault(
        "a loaded group forgets its lease batches",
        "fila.core.load:_load_group",
        "_load_batches(state, queue)",
        "_load_batches(state, queue) if not queue.batches_before else None",
    ),
    # --- quarantine
    fault(
        "a queue is quarantined without its dead-letter queue",
        "fila.core.quarantining:set_apart",
        "queues = list(group.queues)",
        "queues = group.queues[:1]",
    ),
    fault(
        "a quarantined queue is said not to exist",
        "fila.core.state:State.no_queue",
        "queue_not_found(name) if one is None else refused(one)",
        "queue_not_found(name)",
    ),
    fault(
        "lanes of a quarantined queue stay among the idle ones",
        "fila.core.catalogue:_forget_lanes",
        "idle.pop(lane, None)",
        "pass",
    ),
    fault(
        "what a turn did to a queue it quarantines is not written",
        "fila.core.machine:Machine.take",
        "for group in state.dirty_groups]",
        "for group in state.dirty_groups if group not in state.damaged or group.ops.clear()]",
    ),
    fault(
        "one damaged group keeps the others from loading",
        "fila.core.load:_try_group",
        "quarantining.set_apart(state, group, cause_of(error), state.now, error)",
        "[quarantining.set_apart(state, one, cause_of(error), state.now, error)\n"
        "            for one in [*state.groups.values()] if one.number >= group.number]",
    ),
]
