"""The view: all that code outside of the core may see of the machine. It returns values.

Nothing here changes what the machine does next. Outside of `core/` no module reads the state
itself; `tests/core/test_closed.py` checks that.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple

from fila.core import browse, explain, figures, stats, versions
from fila.core.browse import Range, Snapshot
from fila.core.command import UpdateQueue
from fila.core.entry import id_of
from fila.core.explain import Document, Explaining
from fila.core.figures import BucketFigures, ConsumerFigures, KeyFigures, OpenBatch, QueueFigures
from fila.core.lane import LANE_PARKED
from fila.core.override import Terms
from fila.core.pause import Pause
from fila.core.quarantine import Quarantined
from fila.core.queue import Queue
from fila.core.rejection import Rejection, invalid_value
from fila.core.settings import Settings
from fila.core.state import State
from fila.core.stats import QueueSummary, Reading
from fila.core.versions import Version


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

    def max_attempts(self, queue: str) -> int:
        """After how many failures a message of the queue is dead; 0: no limit, or no queue."""
        found = self._state.queues.get(queue)
        return found.max_attempts if found is not None else 0

    def visibility_ms(self, queue: str) -> int:
        """How long a lease of the queue lasts; 0: there is no such queue."""
        found = self._state.queues.get(queue)
        return found.visibility_ms if found is not None else 0

    def queue_number(self, queue: str) -> int:
        """0: there is no such queue."""
        found = self._state.queues.get(queue)
        return found.number if found is not None else 0

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

    def settings_after(self, command: UpdateQueue) -> dict[str, str] | Rejection:
        """What its settings would be after the command, or why it is refused."""
        queue = self._state.queues.get(command.queue)
        if queue is None:
            return self._state.no_queue(command.queue)
        return versions.settings_after(self._state, queue, command)

    def settings_of(self, name: str) -> dict[str, str]:
        """Of a queue that exists."""
        return versions.settings_of(self._state, self._state.queues[name])

    def version(self, name: str, number: int) -> Version | Rejection:
        """A version of a queue's settings; 0: the one that holds."""
        queue = self._state.queues.get(name)
        if queue is None:
            return self._state.no_queue(name)
        return versions.version_of(self._state, queue, number)

    def versions(self, name: str) -> list[Version] | Rejection:
        """Those that are kept, the newest first."""
        queue = self._state.queues.get(name)
        if queue is None:
            return self._state.no_queue(name)
        return versions.versions_of(self._state, queue)

    def pause_of(self, name: str, fairness_key: bytes | None) -> Pause | None:
        """The pause of a queue, or of one of its keys."""
        queue = self._state.queues.get(name)
        if queue is None:
            return None
        return queue.pause if fairness_key is None else queue.key_pauses.get(fairness_key)

    def overrides(self, name: str) -> list[tuple[bytes, Terms]] | Rejection:
        """What operators say of keys of a queue, by key."""
        queue = self._state.queues.get(name)
        if queue is None:
            return self._state.no_queue(name)
        return sorted([(key, one.terms) for key, one in queue.overrides.items()])

    def override_of(self, name: str, fairness_key: bytes) -> Terms | None:
        queue = self._state.queues.get(name)
        one = queue.overrides.get(fairness_key) if queue is not None else None
        return one.terms if one is not None else None

    def consumers(self, name: str, count_max: int) -> list[ConsumerFigures]:
        queue = self._state.queues.get(name)
        found = islice(queue.consumers.values(), count_max) if queue is not None else ()
        return [figures.of_consumer(one) for one in found]

    def open_batches(
        self, name: str, count_max: int, step: int
    ) -> Iterator[list[OpenBatch]] | Rejection:
        """The lease batches somebody has, the oldest first, so many at a time."""
        queue = self._state.queues.get(name)
        if queue is None:
            return self._state.no_queue(name)
        found = [batch for batch in queue.lease_batches.values() if batch.leases]
        found.sort(key=lambda batch: batch.leased_ns)
        return (
            [figures.of_batch(batch) for batch in found[start : start + step]]
            for start in range(0, min(len(found), count_max), step)
        )

    def batch_bytes(self, name: str, batch: str) -> int | None:
        """About how much an open lease batch holds; None if it is not open."""
        queue = self._state.queues.get(name)
        found = queue.lease_batches.get(batch) if queue is not None else None
        return found.bytes if found is not None and found.consumer is None else None

    def leased_bytes(self, name: str, ids: list[bytes]) -> list[int]:
        """How large each of these leased messages is: 0 where it is not leased, or was before a
        restart."""
        queue = self._state.queues.get(name)
        if queue is None:
            return [0] * len(ids)
        leased = queue.leased
        return [leased[id][3] if id in leased else 0 for id in ids]

    def leased_under(self, name: str, keys: list[bytes]) -> list[bool]:
        """Whether each of these message keys is leased. A message that failed gets another key, so
        a key names one delivery, and those that were handed back without one."""
        queue = self._state.queues.get(name)
        if queue is None:
            return [False] * len(keys)
        found = [queue.leased.get(id_of(key)) for key in keys]
        return [one is not None and one[2] == key for key, one in zip(keys, found, strict=True)]

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
        return [figures.of_key(keys[one], queue) for one in fairness_keys if one in keys]

    # --- buckets

    def buckets(self, names: list[bytes] | None = None) -> dict[bytes, BucketFigures]:
        """Buckets by their throttle keys: all of them, or those of these that there are."""
        now = self._state.now
        buckets = self._state.buckets
        if names is None:
            return {name: figures.of_bucket(bucket, now) for name, bucket in buckets.items()}
        return {name: figures.of_bucket(buckets[name], now) for name in names if name in buckets}

    def all_bucket_names(self) -> list[bytes]:
        return list(self._state.buckets)

    def bucket_names(self, name: str, fairness_keys: list[bytes]) -> list[bytes]:
        """The buckets that these keys of a queue draw on now. Looks at all their lanes."""
        queue = self._state.queues.get(name)
        if queue is None or not self._state.buckets:
            return []
        found: dict[bytes, None] = {}
        for one in fairness_keys:
            key = queue.keys.get(one)
            for lane in key.lanes.values() if key is not None else ():
                for bucket in lane.buckets:
                    if bucket.group == 0:
                        found[bucket.name] = None
        return list(found)

    def throttled(self, names: list[bytes]) -> dict[str, int]:
        """By queue: pending messages behind these buckets, when they are empty."""
        found: dict[str, int] = {}
        for one in names:
            bucket = self._state.buckets.get(one)
            for lane in bucket.waiters if bucket is not None else ():
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

    def explain_in_steps(
        self, name: str, fairness_key: bytes | None, message_id: bytes | None, keys_max: int
    ) -> Explaining:
        """The same in steps."""
        return explain.explain_in_steps(self._state, name, fairness_key, message_id, keys_max)

    def overview(self, names: list[str]) -> list[Document]:
        return explain.overview(self._state, names)

    def browse(
        self, name: str, fairness_key: bytes | None, parts: int
    ) -> Generator[int, None, Browsing | Rejection] | Rejection:
        """Freeze a queue's messages to be read in so many parts. The snapshot is taken at once; the
        parts are found in steps, each of which yields how much it looked at."""
        state = self._state
        queue = state.queues.get(name)
        if queue is None:
            return state.no_queue(name)
        ranges_max = state.settings.browse_ranges_max
        lanes = browse.lanes_of(queue, fairness_key) if fairness_key is not None else []
        if len(lanes) > ranges_max:
            return invalid_value(
                "fairness key",
                f"its messages lie in {len(lanes)} lanes (sets of throttle keys), more than the "
                f"{ranges_max} ranges of a browse; browse the whole queue",
            )
        return self._browse(queue, fairness_key, parts)

    def _browse(
        self, queue: Queue, fairness_key: bytes | None, parts: int
    ) -> Generator[int, None, Browsing | Rejection]:
        state = self._state
        snapshot = Snapshot(state.reader.snapshot(), queue, state.now)
        count = browse.count(queue, fairness_key)
        ranges = yield from browse.ranges_in_steps(queue, fairness_key, parts)
        ranges_max = state.settings.browse_ranges_max
        if state.queues.get(queue.name) is not queue:
            return state.no_queue(queue.name)  # it was deleted meanwhile
        if len(ranges) > ranges_max:
            return invalid_value(
                "parts", f"they would be {len(ranges)}, more than {ranges_max}; ask for fewer"
            )
        return Browsing(snapshot, count, ranges)
