"""The view: all that code outside of the core may see of the machine. It returns values.

Nothing here changes what the machine does next. Outside of `core/` no module reads the state
itself; `tests/core/test_closed.py` checks that.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple

from fila.core import browse, explain, figures, stats
from fila.core.browse import Range, Snapshot
from fila.core.explain import Document
from fila.core.figures import BucketFigures, ConsumerFigures, KeyFigures, OpenBatch, QueueFigures
from fila.core.lane import LANE_PARKED
from fila.core.pause import Pause
from fila.core.quarantine import Quarantined
from fila.core.rejection import Rejection, invalid_value
from fila.core.settings import Settings
from fila.core.state import State
from fila.core.stats import QueueSummary, Reading


class Scripts(NamedTuple):
    """A queue's hooks as they were given."""

    on_enqueue: str | None
    on_failure: str | None


class Browsing(NamedTuple):
    """A queue frozen for browsing: its pages, how many messages, and ranges that share them out."""

    snapshot: Snapshot
    messages: int
    ranges: list[Range]


class View:
    def __init__(self, state: State) -> None:
        self._state = state
        self.config: Mapping[str, str] = MappingProxyType(state.config)  # as it stands at any time

    @property
    def now_ns(self) -> int:
        """The time of the last advance."""
        return self._state.now

    @property
    def settings(self) -> Settings:
        return self._state.settings

    # --- queues

    def queue_numbers(self) -> dict[str, int]:
        """Of a queue that was deleted and made again the number is another."""
        return {name: queue.number for name, queue in self._state.queues.items()}

    def queue_names(self) -> list[str]:
        return list(self._state.queues)

    def has_queue(self, name: str) -> bool:
        return name in self._state.queues

    @property
    def quarantined(self) -> Mapping[str, Quarantined]:
        """The queues that are not served because their rows cannot be read."""
        return self._state.quarantined

    def no_queue(self, name: str) -> Rejection:
        """What to answer where `has_queue` says no."""
        return self._state.no_queue(name)

    def queue(self, name: str) -> QueueFigures | None:
        queue = self._state.queues.get(name)
        return figures.of_queue(queue) if queue is not None else None

    def scripts(self, name: str) -> Scripts:
        """Of a queue that exists."""
        queue = self._state.queues[name]
        return Scripts(queue.on_enqueue, queue.on_failure)

    def pause_of(self, name: str, fairness_key: bytes | None) -> Pause | None:
        """The pause of a queue, or of one of its keys."""
        queue = self._state.queues.get(name)
        if queue is None:
            return None
        return queue.pause if fairness_key is None else queue.key_pauses.get(fairness_key)

    def consumers(self, name: str, count_max: int) -> list[ConsumerFigures]:
        queue = self._state.queues.get(name)
        found = islice(queue.consumers.values(), count_max) if queue is not None else ()
        return [figures.of_consumer(one) for one in found]

    def open_batches(self, name: str, count_max: int) -> list[OpenBatch] | Rejection:
        """The lease batches somebody has, the oldest first."""
        queue = self._state.queues.get(name)
        if queue is None:
            return self._state.no_queue(name)
        found = [batch for batch in queue.lease_batches.values() if batch.leases]
        found.sort(key=lambda batch: batch.leased_ns)
        return [figures.of_batch(batch) for batch in found[:count_max]]

    def batch_bytes(self, name: str, batch: str) -> int | None:
        """About how much an open lease batch holds; None if it is not open."""
        queue = self._state.queues.get(name)
        found = queue.lease_batches.get(batch) if queue is not None else None
        return found.bytes if found is not None and found.consumer is None else None

    def stats_in_steps(self, name: str, keys_max: int) -> Reading | Rejection:
        """A queue in detail."""
        return stats.stats_in_steps(self._state, name, keys_max)

    def summaries(self) -> list[QueueSummary]:
        return stats.summaries(self._state)

    # --- fairness keys

    def key_names(self, name: str) -> list[bytes]:
        """The keys a queue remembers."""
        queue = self._state.queues.get(name)
        return list(queue.keys) if queue is not None else []

    def key(self, name: str, fairness_key: bytes) -> KeyFigures | None:
        found = self.keys(name, [fairness_key])
        return found[0] if found else None

    def keys(self, name: str, fairness_keys: list[bytes]) -> list[KeyFigures]:
        """Those of the keys that the queue still remembers."""
        queue = self._state.queues.get(name)
        if queue is None:
            return []
        keys = queue.keys
        clock = queue.ring.clock
        return [figures.of_key(keys[one], clock) for one in fairness_keys if one in keys]

    # --- buckets

    def buckets(self, names: list[bytes] | None = None) -> dict[bytes, BucketFigures]:
        """Buckets by their throttle keys: all of them, or those of these that there are."""
        now = self._state.now
        buckets = self._state.buckets
        if names is None:
            return {name: figures.of_bucket(bucket, now) for name, bucket in buckets.items()}
        return {name: figures.of_bucket(buckets[name], now) for name in names if name in buckets}

    def bucket_names(self, name: str, fairness_key: bytes | None) -> list[bytes]:
        """The buckets that a queue, or one of its keys, draws on now. Looks at every lane."""
        queue = self._state.queues.get(name)
        if queue is None or not self._state.buckets:
            return []
        if fairness_key is None:
            keys = list(queue.keys.values())
        else:
            keys = [queue.keys[fairness_key]] if fairness_key in queue.keys else []
        found: dict[bytes, None] = {}
        for key in keys:
            for lane in key.lanes.values():
                for bucket in lane.buckets:
                    found[bucket.name] = None
        return list(found)

    def throttled(self) -> dict[str, int]:
        """By queue: pending messages behind an empty bucket."""
        found: dict[str, int] = {}
        for bucket in self._state.buckets.values():
            for lane in bucket.waiters:
                if lane.state == LANE_PARKED:
                    name = lane.queue.name
                    found[name] = found.get(name, 0) + lane.pending
        return found

    # --- messages

    def messages_by_lane(self) -> dict[tuple[int, int], int]:
        """Pending and leased messages by the numbers of queue and lane."""
        return {
            (queue.number, lane.number): lane.pending + lane.leased
            for queue in self._state.queues.values()
            for key in queue.keys.values()
            for lane in key.lanes.values()
        }

    def explain(
        self, name: str, fairness_key: bytes | None, message_id: bytes | None, keys_max: int
    ) -> Document | Rejection:
        """Why a message, a key or a queue waits."""
        return explain.explain(self._state, name, fairness_key, message_id, keys_max)

    def overview(self, names: list[str]) -> list[Document]:
        return explain.overview(self._state, names)

    def browse(self, name: str, fairness_key: bytes | None, parts: int) -> Browsing | Rejection:
        """Freeze a queue's messages to be read in so many parts."""
        state = self._state
        queue = state.queues.get(name)
        if queue is None:
            return state.no_queue(name)
        ranges = browse.ranges(queue, fairness_key, parts)
        ranges_max = state.settings.browse_ranges_max
        if len(ranges) > ranges_max:
            return invalid_value(
                "fairness key",
                f"its messages lie in {len(ranges)} lanes (sets of throttle keys), more than the "
                f"{ranges_max} ranges of a browse; browse the whole queue",
            )
        snapshot = Snapshot(state.reader.snapshot(), queue, state.now)
        return Browsing(snapshot, browse.count(queue, fairness_key), ranges)
