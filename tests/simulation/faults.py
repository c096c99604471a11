"""The planted faults: one wrong line in the core at a time, and whether the auditor notices it.

How they are planted is in planting.py; those in the turn and the commit path are in turn_faults.py,
those of messages that cost their bytes in cost_faults.py, of busy consumers in busy_faults.py, of
overrides in override_faults.py, of caps in cap_faults.py.
"""

from __future__ import annotations

from .age_faults import AGE_FAULTS
from .busy_faults import BUSY_FAULTS
from .cap_faults import CAP_FAULTS
from .cost_faults import COST_FAULTS
from .override_faults import OVERRIDE_FAULTS
from .planting import COMPILED, Fault, fault, planted
from .reclassify_faults import RECLASSIFY_FAULTS
from .room_faults import ROOM_FAULTS
from .run import Outcome, run_seed
from .turn_faults import TURN_FAULTS

__all__ = ["COMPILED", "FAULTS", "SEEDS_MAX", "Fault", "fault", "first_caught", "planted"]

SEEDS_MAX = 400  # within so many seeds every fault is noticed


def first_caught(one: Fault, seeds: int, look_inside: bool = True) -> Outcome | None:
    """The first seed that notices the fault; None if none of them does."""
    with planted(one):
        for seed in range(one.first, one.first + seeds):
            outcome = run_seed(seed, look_inside)
            if outcome.promise:
                return outcome
    return None


FAULTS = [
    # --- fairness
    fault(
        "an emptied key keeps its deficit",
        "fila.core.readiness:make_unready",
        "elif key.deficit:\n                queue.ring.let_go(key)",
        "",
        "if key.deficit and key.pending == 0:\n        queue.ring.let_go(key)",
        "pass",
    ),
    fault(
        "a newcomer jumps the ring",
        "fila.core.fairness:Ring.join",
        "head.before = key",
        "head.before = key\n        self.head = key",
    ),
    fault(
        "a visit is one message too long",
        "fila.core.delivery:fill",
        "key.granted = deficit = key.weight * quantum",
        "key.granted = deficit = key.weight * quantum + 1",
    ),
    fault(
        "a finished visit does not pass the turn on",
        "fila.core.delivery:fill",
        "        if deficit <= 0:\n                ring.head = key.after",
        "        pass",
    ),
    fault(
        "the weight goes to another key",
        "fila.core.enqueuing:_store",
        "state.set_weight(queue, key, weight)",
        "state.set_weight(queue, next(iter(keys.values())), weight)",
    ),
    fault(
        "the newest lane of a key goes first",
        "fila.core.fairness:FairnessKey.add_lane",
        "elif stamp < current.head_stamp():",
        "elif stamp > current.head_stamp():",
    ),
    # --- throttles
    fault(
        "the level of a bucket is not stored",
        "fila.core.state:State.write_buckets",
        "self.ops(self.groups[bucket.group]).append((PUT_STATE, bucket.row, value))",
        "pass",
    ),
    fault(
        "a restart grants a fresh burst",
        "fila.core.bucket:Bucket.restore",
        "self.tokens = min(tokens, self.burst)",
        "self.tokens = self.burst",
    ),
    fault(
        "only the first bucket pays",
        "fila.core.delivery:fill",
        "for bucket in buckets:",
        "for bucket in buckets[:1]:",
    ),
    fault(
        "a waiter is never woken",
        "fila.core.readiness:park",
        "arm_bucket(state, gate)",
        "pass",
    ),
    fault(
        "leftover tokens wait for the next deadline",
        "fila.core.delivery:deliver",
        "if not state.waiting and not state.freed:\n            return False",
        "return False",
    ),
    fault(
        "the first in line takes every token",
        "fila.core.readiness:wake_waiters",
        "if tokens < TOKEN or left == 0:",
        "if tokens < bucket.tokens or left == 0:",
    ),
    fault(
        "a visit that an empty bucket cuts off is forgotten",
        "fila.core.readiness:make_unready",
        "if to == LANE_PARKED:\n                if key.deficit == key.granted:",
        "if to == LANE_PARKED:\n                if True:",
    ),
    # --- leases and settlement
    fault(
        "an ack does not end the lease",
        "fila.core.settlement:ack",
        "del leased[id]",
        "pass",
    ),
    fault(
        "an acknowledged row stays on the disk",
        "fila.core.settlement:ack",
        'ops.append((DELETE_MESSAGE, key, b""))',
        "pass",
    ),
    fault(
        "a consumer may ack another's lease",
        "fila.core.settlement:ack",
        "if found is None or (consumes and found[0].belongs_to_other(connection)):",
        "if found is None:",
    ),
    fault(
        "a retry loses its delay",
        "fila.core.settlement:_fail",
        "delay_ms = verdict.delay_ms",
        "delay_ms = 0",
    ),
    fault(
        "a failure counts no attempt",
        "fila.core.settlement:_fail",
        "attempts = entry[ATTEMPTS] + 1",
        "attempts = entry[ATTEMPTS]",
    ),
    fault(
        "a dead letter is left behind",
        "fila.core.settlement:_fail",
        'state.ops(queue.group).append((DELETE_MESSAGE, key, b""))',
        'verdict.dead_letter or state.ops(queue.group).append((DELETE_MESSAGE, key, b""))',
    ),
    fault(
        "a released lease counts an attempt",
        "fila.core.settlement:_hand_back",
        "entry = waiting_anew(\n",
        "entry = (*entry[:2], entry[2] + 1, *entry[3:])\n    entry = waiting_anew(\n",
    ),
    fault(
        "an expiry is ignored",
        "fila.core.extending:due_lease",
        "if lease is not None and lease.expires_ns <= state.now:",
        "if False:",
    ),
    # --- more time, and a limit of attempts
    fault(
        "more time for one message is more time for its whole lease",
        "fila.core.extending:extend",
        "if len(ids) == lease.remaining:",
        "if True:",
    ),
    fault(
        "more time is not stored",
        "fila.core.extending:extend",
        "state.parted[lease] = queue  # its row is written when the turn ends",
        "pass",
    ),
    fault(
        "a message that got more time stays in the row of its old lease",
        "fila.core.extending:_part",
        "state.parted[lease] = queue",
        "pass",
    ),
    fault(
        "a lease of another time than the queue's stands in their order",
        "fila.core.extending:keep",
        "if not in_order:",
        "if False:",
    ),
    fault(
        "a lease that got more time never runs out",
        "fila.core.extending:fall_due",
        "state.due_queues[queue] = None",
        "pass",
    ),
    fault(
        "who consumes may extend another's lease",
        "fila.core.extending:_may_extend",
        "return connection is None or not lease.belongs_to_other(connection)",
        "return True",
    ),
    fault(
        "more time outlives what is handed back",
        "fila.core.extending:_may_extend",
        "if consumer is not None and consumer.returning:",
        "if False:",
    ),
    fault(
        "the delivery limit allows one attempt more",
        "fila.core.policy:judge",
        "entry[ATTEMPTS] + 1 >= attempts_max",
        "entry[ATTEMPTS] >= attempts_max",
    ),
    fault(
        "a restart forgets the delivery limit",
        "fila.core.rows:read_queue",
        "settings.get(_MAX_ATTEMPTS, 0)",
        "0",
    ),
    fault(
        "a redrive keeps the attempts",
        "fila.core.redrive:redrive",
        "store(state, target, id, 0, weight",
        "store(state, target, id, entry[2], weight",
    ),
    fault(
        "a redriven message keeps the reason of its death",
        "fila.core.redrive:redrive",
        "original(entry[BODY])",
        "entry[BODY]",
    ),
    fault(
        "a dead letter does not tell the error",
        "fila.core.obituary:explained",
        '"error": _cut(error),',
        '"error": "",',
    ),
    fault(
        "the limit's dead letters blame the hook",
        "fila.core.obituary:explained",
        '"reason": reason or BY_HOOK,',
        '"reason": BY_HOOK,',
    ),
    # --- lease batches, releases and idempotency keys
    fault(
        "a restart loses which messages a batch has",
        "fila.core.load:_load_batches",
        "if batch.leases:",
        "if False:",
    ),
    fault(
        "a batch asked for again gives other messages",
        "fila.core.leasing:lease",
        "batch = queue.lease_batches.get(command.name)",
        "batch = None",
    ),
    fault(
        "a batch that runs out burns an attempt",
        "fila.core.leasing:expire",
        "return settlement.hand_back_leases(state, queue, leases)",
        "from fila.core.verdict import RETRY_NOW\n"
        "        for one in leases:\n"
        "            ids = settlement.ids_of(queue, one)\n"
        "            verdicts = [RETRY_NOW] * len(ids)\n"
        "            ended = Expire(queue.name, one.number, ids, verdicts)\n"
        "            settlement.expire(state, queue, ended)\n"
        "        return len(ids)",
    ),
    fault(
        "a batch that counts attempts runs out without one",
        "fila.core.leasing:expire",
        "if not batch.count_attempt:",
        "if True:",
    ),
    fault(
        "a batch does not run out",
        "fila.core.leasing:due_batch",
        "if batch.expires_ns <= state.now:",
        "if False:",
    ),
    fault(
        "an extension is not stored",
        "fila.core.leasing:extend",
        "lease_batch.put_row(state, batch)",
        "pass",
    ),
    fault(
        "an ack of a stream goes one batch too far",
        "fila.core.lease_batch:chosen",
        "numbered[1] < below",
        "numbered[1] <= below",
    ),
    fault(
        "a later step of an ack takes batches that were leased meanwhile",
        "fila.core.lease_batch:chosen",
        "if batch.opened < before",
        "if True",
    ),
    fault(
        "batches end at once, however large they are",
        "fila.core.leasing:_end",
        "left = state.settings.batch_step_messages",
        "left = 1 << 62",
    ),
    fault(
        "the row of a finished batch stays",
        "fila.core.lease_batch:delete_row",
        "if batch.leased_ns:",
        "if False:",
    ),
    fault(
        "a request that waits is answered before its time",
        "fila.core.leasing:collect",
        "if not batch.leases and state.now < batch.wait_until_ns:",
        "if False:",
    ),
    fault(
        "a released message stays in the row of its lease",
        "fila.core.settlement:_write_rest",
        "state.ops(queue.group).append((PUT_LEASE, key, row))",
        "pass",
    ),
    fault(
        "a known idempotency key is stored again",
        "fila.core.idempotency:sort_out",
        "if known is not None and _counts(state, window, known):",
        "if False:",
    ),
    fault(
        "a key twice in one turn is stored twice",
        "fila.core.idempotency:_known",
        "if fresh is not None:",
        "if False:",
    ),
    fault(
        "a restart counts idempotency keys from the beginning",
        "fila.core.idempotency:_read_window",
        "return KnownKeys(*key_rows.read_key_window(value)) if value is not None"
        " else KnownKeys(0, 0)",
        "return KnownKeys(0, 0)",
    ),
    fault(
        "an idempotency key counts for ever",
        "fila.core.idempotency:_counts",
        "return state.now - known[1] < settings.idempotency_ms * MS",
        "return True",
    ),
    fault(
        "an enqueue with keys loses its delays",
        "fila.core.enqueuing:enqueue_keyed",
        "[command.delays_ms[at] for at in kept],",
        "[0 for place in kept],",
    ),
    # --- consumers
    fault(
        "credit is not returned",
        "fila.core.settlement:_settle",
        "consumer.credit_messages += 1",
        "pass",
    ),
    fault(
        "the credit in bytes is not looked at",
        "fila.core.delivery:fill",
        "bytes_left = min(consumer.credit_bytes, state.settings.delivery_bytes)",
        "bytes_left = state.settings.delivery_bytes",
    ),
    fault(
        "the first consumer is always the next",
        "fila.core.delivery:deliver_queue",
        "ready.move_to_end(consumer)",
        "pass",
    ),
    # --- lanes and windows
    fault(
        "a page stands in the wrong order",
        "fila.core.lane:Lane.page",
        "entries = sorted(entries + own)",
        "entries = own + entries",
    ),
    fault(
        "a page drops what is not committed yet",
        "fila.core.lane:Lane.page",
        "if self.unflushed:",
        "if False:",
    ),
    fault(
        "a page brings back what is leased",
        "fila.core.lane:Lane.page",
        "if key[ID_AT:] not in leased",
        "",
    ),
    fault(
        "a cut window forgets the horizon",
        "fila.core.lane:Lane._end_window",
        "self.horizon = max(self.window[-1][KEY], self.delivered)",
        "self.horizon = self.horizon",
    ),
    fault(
        "a cut reaches below a delivered message",
        "fila.core.lane:Lane.cut",
        "if entry[KEY] <= self.delivered:",
        "if False:",
    ),
    fault(
        "a cut drops what is not committed yet",
        "fila.core.lane:Lane.cut",
        "if gone[SINCE_NS] >= fresh_ns or gone[KEY] in fresh:",
        "if False:",
    ),
    fault(
        "a lane cut to nothing forgets that its head has a delay",
        "fila.core.lane:Lane._end_window",
        "self.unread_delay = following[STALL_NS] < 0",
        "self.unread_delay = False",
    ),
    fault(
        "a lane cut to nothing forgets when its head came",
        "fila.core.lane:Lane._end_window",
        "self.horizon = max(self.place_of(following[STAMP]), self.delivered)",
        "self.horizon = max(self.place_of(0), self.delivered)",
    ),
    fault(
        "a page keeps more than there is room for",
        "fila.core.lane:Lane.page",
        "if grown > room:",
        "if False:",
    ),
    fault(
        "messages are kept in memory beyond the limit",
        "fila.core.pending:add_pending",
        "and windows.bytes + grown <= windows.mark",
        "",
    ),
    fault(
        "queues that deliver nothing keep their windows",
        "fila.core.windows:Windows._take_from_resting",
        "while self.bytes > goal and resting:",
        "while False:",
    ),
    fault(
        "lanes keep more than they may claim",
        "fila.core.windows:Windows._take_excess",
        "claim = self.claim(other) if other.state == LANE_READY else 0",
        "claim = other.window_bytes",
    ),
    fault(
        "a queue that stopped delivering counts as one that does",
        "fila.core.windows:Windows._roll",
        "if queue.notes_ns + self._idle_ns <= now",
        "if False",
    ),
    fault(
        "a delayed message goes a millisecond early",
        "fila.core.readiness:new_head",
        "lane.head_stamp() > now",
        "lane.head_stamp() > now + MS",
    ),
    fault(
        "the count of a key drifts",
        "fila.core.delivery:fill",
        "key.pending -= taken",
        "key.pending -= 1",
    ),
    # --- clocks
    fault(
        "the stall clock stands still",
        "fila.core.queue:Queue.stall_at",
        "self.stall_ns + now - self.stalled_since",
        "self.stall_ns",
    ),
    fault(
        "time on a bucket is not counted as throttled",
        "fila.core.readiness:make_ready",
        "lane.unpark(active_ns)",
        "pass",
    ),
    fault(
        "time runs back over a restart",
        "fila.core.load:load",
        "state.now = max([now, *seen])",
        "state.now = now",
    ),
    # --- pauses and purges
    fault(
        "a paused queue still hands out",
        "fila.core.pausing:pause_queue",
        "queue.ready = OrderedDict()",
        "pass",
    ),
    fault(
        "a paused key keeps its turns",
        "fila.core.pausing:pause_key",
        "pause_lanes(state, queue, key)",
        "pass",
    ),
    fault(
        "a message for a paused key gets it turns",
        "fila.core.readiness:make_ready",
        "if key.pause is not None:",
        "if False:",
    ),
    fault(
        "a resumed key stays out of the ring",
        "fila.core.pausing:resume_key",
        "resume_lanes(state, key)",
        "pass",
    ),
    fault(
        "a restart forgets what was paused",
        "fila.core.pausing:load_pauses",
        "queue.key_pauses[fairness_key] = pause",
        "pass",
    ),
    fault(
        "paused time counts as time without a consumer",
        "fila.core.pause:without_pauses",
        "of_queue = min(of_queue, waits.no_consumer)",
        "of_queue = 0",
    ),
    fault(
        "a purge leaves its messages on the disk",
        "fila.core.purging:_delete",
        "state.ops(queue.group).append((DELETE_RANGE | rows.MESSAGES, begin, end))",
        "pass",
    ),
    fault(
        "a purge takes leased messages along",
        "fila.core.purging:_delete_rows",
        'start = lane.delivered + b"\\0"',
        "start = lane.prefix",
    ),
    fault(
        "a purge of one key reaches into the next lane",
        "fila.core.purging:_delete_rows",
        "lane.number < next_lane or end == lane.prefix",
        "True",
    ),
    fault(
        "a page brings back what was purged in the same turn",
        "fila.core.pending:fill_window",
        "if lane not in state.purged:",
        "if True:",
        first=1_000,  # one seed in a thousand shows it
    ),
    fault(
        "an explanation forgets the time without consumers",
        "fila.core.waiting:parts_of",
        "own = now - since_ns - retry - no_consumer - throttled - turn",
        "own = now - since_ns - retry - throttled - turn",
    ),
    # --- settings that change
    fault(
        "an update changes what it did not name",
        "fila.core.versions:settings_after",
        "{**settings, **command.settings}",
        "{**dict.fromkeys(NAMES, ''), **command.settings}",
    ),
    fault(
        "an update overwrites another that came first",
        "fila.core.versions:settings_after",
        "if expected and expected != queue.version:",
        "if False:",
    ),
    fault(
        "a version that is brought back is the present one",
        "fila.core.versions:settings_after",
        "settings = found.settings",
        "pass",
    ),
    fault(
        "an update is gone after a restart",
        "fila.core.versions:_follow",
        "ops.append((PUT_QUEUE, queue.name.encode(), rows.queue_row(row)))",
        "pass",
    ),
    fault(
        "the limits of hooks are gone after a restart",
        "fila.core.versions:_follow",
        "ops.append((PUT_STATE, stored, text.encode()))",
        "pass",
    ),
    fault(
        "versions are kept for ever",
        "fila.core.versions:update_queue",
        "if gone > 0:",
        "if False:",
    ),
    fault(
        "the first version is not kept",
        "fila.core.versions:update_queue",
        "if queue.version == 1:",
        "if False:",
    ),
    fault(
        "a new timeout changes the leases that are held",
        "fila.core.versions:_follow",
        "queue.visibility_ms = int(settings[VISIBILITY])",
        "queue.visibility_ms = int(settings[VISIBILITY])\n"
        "    for lease in queue.leases.values():\n"
        "        lease.expires_ns = state.now + queue.visibility_ms * 1_000_000",
    ),
    fault(
        "the versions of a deleted queue stay",
        "fila.core.catalogue:_delete_rows",
        "rows.QUEUE_PREFIXES",
        "rows.QUEUE_PREFIXES[:3]",
    ),
    # --- the journal
    fault(
        "a message that waits for its time counts as one that may go",
        "fila.core.eligible:eligible_in",
        "lane.pending - waiting",
        "lane.pending",
    ),
    fault(
        "messages behind the horizon are not looked at for their time",
        "fila.core.eligible:_look",
        "if lane.horizon:",
        "if False:",
    ),
    fault(
        "nobody hears that a delayed key joined the ring",
        "fila.core.readiness:fall_due",
        "if state.journal and lane.state == LANE_READY:",
        "if False:",
    ),
    fault(
        "nobody hears that a parked key left the ring",
        "fila.core.readiness:park",
        "ring_delta = lane.key.active - was_active",
        "ring_delta = 0",
    ),
    *TURN_FAULTS,
    *COST_FAULTS,
    *AGE_FAULTS,
    *BUSY_FAULTS,
    *OVERRIDE_FAULTS,
    *RECLASSIFY_FAULTS,
    *CAP_FAULTS,
    *ROOM_FAULTS,
]
