"""What one seed is like: limits so small that every bound is hit, and a temper for its clients."""

from __future__ import annotations

from random import Random

from fila.core.settings import Settings

MS = 1_000_000
RATES = ("0", "0.5", "3", "20", "200", "1000", "5000", "1e6")
BURSTS = ("0", "0.9", "1", "1.5", "4", "10", "100")


class Profile:
    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.fsync = rng.random() < 0.5
        self.journal = rng.random() < 0.5
        self.turns = rng.randint(250, 550)
        self.settings = settings(rng)
        self.queues = [f"q{number}" for number in range(rng.choice((1, 1, 2, 3)))]
        if rng.random() < 0.3:
            self.queues.append("made.dlq")  # a dead-letter queue that somebody made by hand …
            self.queues.append("made")  # … before its queue
        self.keys = [b"k%d" % number for number in range(rng.choice((1, 2, 3, 5, 8, 40)))]
        self.skew = rng.choice((1.0, 1.0, 2.0, 4.0))
        self.weights = rng.choice(("one", "fixed", "fixed", "changing"))
        self.throttle_sets = throttle_sets(rng)
        self.throttled = rng.choice((0.3, 0.7, 1.0, 1.0))  # share of messages with throttle keys
        self.delayed = rng.choice((0.0, 0.0, 0.1, 0.5))
        self.delay_ms_max = rng.choice((5, 50, 2_000))
        self.body_bytes_max = rng.choice((20, 60, 600))
        self.batch_max = rng.choice((2, 6, 15, 40))
        self.backlog_max = rng.choice((40, 150, 500))
        self.consumers_max = rng.choice((1, 2, 4, 8))
        self.prefetch_max = rng.choice((1, 4, 20, 100))
        self.bytes_limited = rng.random() < 0.3
        self.crashes = rng.choice((0.0, 0.005, 0.02, 0.05))
        self.admin = rng.choice((0.0, 0.02, 0.06))
        self.stops = (0.0, 0.03, 0.15, 0.0)[self.turns % 4]  # pauses, resumptions and purges
        self.failures = rng.choice((0.05, 0.3, 0.6))  # share of settlements that are nacks
        self.dead = rng.choice((0.0, 0.2, 0.5))  # share of failures that dead-letter
        self.batches = rng.choice((0.0, 0.05, 0.3))  # how often somebody has to do with a batch
        self.keyed = rng.choice((0.0, 0.2, 0.8))  # share of enqueues with idempotency keys
        self.released = rng.choice((0.0, 0.1, 0.3))  # share of answers that are releases
        self.extended = (0.0, 0.15, 0.5)[self.turns % 3]  # how often a client asks for more time
        self.max_attempts = (0, 0, 3)[self.turns % 3]  # of queues, where they have a limit
        self.updates = (0.0, 0.1, 0.0, 0.02, 0.0)[self.turns % 5]  # how often settings change
        self.ages = (0.0, 0.0, 0.1, 0.0, 0.6)[self.turns // 2 % 5]  # share of messages that expire
        # How often an operator says something of a key.
        self.overrides = (0.0, 0.0, 0.02, 0.1)[self.turns % 4]
        self.reclassified = (0.0, 0.04, 0.0, 0.1, 0.0)[(self.turns // 2) % 5]
        self.capped = (0, 0, 1, 3)[self.turns // 7 % 4]  # of a key in flight, where there is a cap
        self.rooms = (0.0, 0.0, 0.04)[self.turns // 3 % 3]  # how often somebody sets limits
        self.step_ns_max = rng.choice((1_000, 1 * MS, 20 * MS, 300 * MS))
        names = [*self.queues, *[f"{queue}.dlq" for queue in self.queues]]
        # Queues where messages cost their bytes.
        self.by_bytes = {name for at, name in enumerate(names) if (self.turns // 3 + at) % 3 == 0}
        self.hooked = {name for name in names if rng.random() < 0.7}  # queues with hooks
        self.stepwise = rng.choice((0.2, 0.5, 0.8))  # share of redrives and purges that are jobs
        self.flushes = rng.choice((0.05, 0.3, 0.8))  # how often a sync begins, and ends
        self.limits = 0.06  # how often a rate changes
        self.rates: tuple[str, ...] = RATES
        self.bursts: tuple[str, ...] = BURSTS
        if rng.random() < 0.12:
            self._crowd_behind_one_bucket()

    def _crowd_behind_one_bucket(self) -> None:
        """Several keys that wait for the same tokens for a long time, and little else."""
        self.keys = [b"k%d" % number for number in range(self.rng.choice((3, 5, 8)))]
        self.skew = 1.0
        self.weights = "fixed"
        self.throttle_sets = [(b"t0",)]
        self.throttled = 1.0
        self.limits = 0.01
        self.rates = ("200", "500")  # several tokens per turn, fewer than are wanted
        self.bursts = ("4", "10")
        self.backlog_max = 500
        self.step_ns_max = 20 * MS
        self.crashes = self.stops = self.admin = self.batches = self.delayed = 0.0

    def fairness_key(self) -> bytes:
        keys = self.keys
        return keys[int(self.rng.random() ** self.skew * len(keys))]

    def weight(self, fairness_key: bytes) -> int:
        if self.weights == "one":
            return self.rng.choice((0, 1))
        if self.weights == "fixed" or self.rng.random() < 0.8:
            return 1 + fairness_key[-1] % 4
        return self.rng.randint(0, 7)

    def throttle_keys(self) -> tuple[bytes, ...]:
        rng = self.rng
        if not self.throttle_sets or rng.random() > self.throttled:
            return ()
        return rng.choice(self.throttle_sets)

    def throttle_names(self) -> list[bytes]:
        return sorted({name for keys in self.throttle_sets for name in keys})


def settings(rng: Random) -> Settings:
    """Small limits, each at random; now and then the ones people run with."""
    if rng.random() < 0.1:
        return Settings(quantum=rng.randint(1, 5))
    found = Settings(
        quantum=rng.choice((1, 1, 2, 3, 5)),
        visibility_ms_default=rng.choice((1_000, 3_000, 30_000)),
        window_messages=rng.choice((1, 2, 4, 4, 8, 64)),
        window_bytes_total=rng.choice((1, 1_000, 4_000, 20_000, 20_000, 1 << 20)),
        page_messages=rng.choice((1, 2, 3, 3, 8)),
        head_messages=rng.choice((1, 2, 8)),
        page_bytes=rng.choice((1, 300, 5_000, 1 << 20)),
        prefetch_default=rng.choice((1, 5, 256)),
        prefetch_bytes=rng.choice((100, 5_000, 1 << 20)),
        delivery_messages=rng.choice((1, 3, 10, 512)),
        delivery_bytes=rng.choice((50, 1_000, 1 << 20)),
        pass_messages=rng.choice((1, 4, 20, 2_048)),
        idle_lanes=rng.choice((1, 3, 20)),
        ledger_mentions=rng.choice((1, 6, 30, 1_000)),
        expire_messages=rng.choice((1, 3, 20, 2_048)),
        redrive_messages=rng.choice((1, 2, 4, 256)),
        purge_lanes=rng.choice((1, 2, 5, 2_048)),
        batch_messages_max=rng.choice((20, 1_000)),
        batch_bytes=rng.choice((100, 5_000, 1 << 20)),
        batches_max=rng.choice((1, 3, 100)),
        batch_step_messages=rng.choice((1, 5, 2_048)),
        tell_messages=rng.choice((1, 4, 2_048)),
        idempotency_keys_max=rng.choice((1, 5, 50)),
        idempotency_ms=rng.choice((50, 5_000, 10**9)),
        versions_kept=3,
        window_idle_ms=rng.choice((1, 100, 5_000)),
    )
    return found._replace(
        hand_back_messages=found.page_messages,
        bucket_lanes={1: 100}.get(found.idle_lanes, found.bucket_lanes),
        redrive_pages={1: 1, 2: 4}.get(found.head_messages, found.redrive_pages),
        reclassify_messages={1: 1, 3: 2, 10: 5}.get(found.delivery_messages, 96),
        job_work={1: 1, 4: 8}.get(found.redrive_messages, found.job_work),
        quantum_bytes={1: 20, 2: 64, 8: 300}.get(found.window_messages, 1_000),
        age_messages={1: 2, 3: 12}.get(found.expire_messages, found.age_messages),
        pass_bytes={1: 400, 300: 2_000}.get(found.page_bytes, found.pass_bytes),
        leaving_bytes={1: 500, 3: 2_000}.get(found.expire_messages, found.leaving_bytes),
    )


def throttle_sets(rng: Random) -> list[tuple[bytes, ...]]:
    """Which sets of throttle keys messages carry."""
    kind = rng.choice(("none", "none", "one", "one", "several", "mixed", "mixed"))
    if kind == "none":
        return []
    if kind == "one":
        return [(b"t0",)]
    names = [b"t%d" % number for number in range(rng.randint(2, 4))]
    if kind == "several":
        return [(name,) for name in names]
    # Sorted and without repetition, as hooks give them.
    found = [tuple(sorted(set(rng.choices(names, k=3)))) for _ in range(rng.randint(2, 5))]
    return [(), *found]
