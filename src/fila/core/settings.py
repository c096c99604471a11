"""Every limit and default the core works under, with its unit. The server's config fills it."""

from __future__ import annotations

from typing import NamedTuple

MiB = 1 << 20


class Settings(NamedTuple):
    turn_work: int = 512  # what requests may do in one turn (see work.py)
    quantum: int = 1  # messages a key of weight 1 may send per visit …
    quantum_bytes: int = 16_384  # … or bytes, in queues where a message costs these
    weight_max: int = 1_000  # of a fairness key, whatever a hook or a producer says
    visibility_ms_default: int = 30_000
    visibility_ms_min: int = 1_000
    visibility_ms_max: int = 7 * 24 * 3600 * 1000
    max_attempts_max: int = 1_000_000  # the highest delivery limit of a queue
    in_flight_max: int = 1_000_000  # the highest limit of a key's messages in flight
    versions_kept: int = 20  # of a queue's settings
    note_bytes_max: int = 1_024  # of why a queue was changed, and of who did
    age_messages: int = 256  # whose time to live ran out, given up in one turn
    overflow_messages: int = 256  # dropped for newer ones by one enqueue
    ttl_ms_max: int = 10 * 365 * 24 * 3600 * 1000  # of a queue's messages
    extend_messages: int = 128  # whose leases get more time in one step
    window_messages: int = 1_024  # messages of one lane kept in memory
    window_bytes_total: int = 48 * MiB  # of all lanes' messages kept in memory
    window_idle_ms: int = 5_000  # a queue that delivers nothing for so long gives its windows up
    page_messages: int = 512  # messages read from the store at once
    head_messages: int = 8  # messages of one lane read at once by a redrive or a restart
    page_bytes: int = 1 * MiB
    prefetch_default: int = 256
    prefetch_max: int = 65_535
    prefetch_bytes: int = 8 * MiB  # unacknowledged bytes one consumer may hold
    delivery_messages: int = 512  # messages in one delivery (one lease row)
    delivery_bytes: int = 1 * MiB
    pass_messages: int = 1_024  # messages one delivery pass hands out, of all queues together
    bucket_lanes: int = 1_024  # lanes in line for a bucket that are looked at together
    wakings: int = 1_024  # lanes, buckets and leases whose time comes with one turn
    pass_bytes: int = 8 * MiB  # of all queues' passes in one turn
    leaving_bytes: int = 32 * MiB  # handed out, not committed: beyond, nothing more goes
    idle_lanes: int = 16_384  # empty lanes remembered, so that a tenant who comes back costs no row
    ledger_mentions: int = 262_144  # lane mentions kept in ledger rows before they are folded
    hand_back_messages: int = 512  # of consumers that left, in one turn
    expire_messages: int = 512  # of leases that end in one turn, and as many of lease batches
    job_work: int = 512  # of all jobs in one turn: lanes emptied, messages moved count four times
    redrive_messages: int = 128  # messages one redrive step moves
    reclassify_messages: int = 96  # messages one step of a reclassification asks the hook about
    job_lanes: int = 4_096  # lanes a job looks at in one step, before its first
    redrive_pages: int = 32  # lanes that have to be read for one step
    name_bytes_max: int = 255
    config_key_bytes_max: int = 1_024
    config_value_bytes_max: int = 65_535  # what a string of a reply holds
    queues_max: int = 10_000
    batch_messages_max: int = 65_535  # messages in one lease batch
    batch_bytes: int = 8 * MiB  # of one lease batch, unless its request says
    batch_bytes_max: int = 16 * MiB  # a request that wishes for more gets this
    batch_bytes_asked_max: int = 64 * MiB  # and one that wishes for more than this is refused
    batch_wait_ms_max: int = 60_000
    batches_max: int = 10_000  # open lease batches of one queue
    tell_messages: int = 1_024  # of an open batch that are read and told at once …
    tell_bytes: int = 2 * MiB  # … or so much
    batch_step_messages: int = 512  # of a batch that is finished, handed back or ran out, at once
    idempotency_keys_max: int = 1_000_000  # keys one queue remembers
    idempotency_ms: int = 24 * 3600 * 1000  # and for how long
    pause_text_bytes_max: int = 1_024  # of a reason, and of who gave it
    paused_keys_max: int = 10_000  # of one queue
    overrides_max: int = 10_000  # fairness keys of one queue with an override
    override_key_bytes_max: int = 4_096  # of such a key's name
    browse_ranges_max: int = 65_535  # what a reply can count
    remains_objects: int = 4_096  # keys, lanes and leases of a deleted queue freed with one turn
    purge_lanes: int = 512  # lanes one step of a purge empties
