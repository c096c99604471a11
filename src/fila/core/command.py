"""Commands: everything that may be asked of the machine, with its ids and verdicts inside.

A command is self-contained: applying the same commands at the same times to the same rows gives
the same machine, live, after a restart, on a follower and in the simulator.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from fila.core.entry import Entry
from fila.core.verdict import Assignment, FailureVerdict

# How a batch that is open already is told: whole, as its rows stand in the store, or its size only.
TOLD_ENTRIES: Final = 0
TOLD_STORED: Final = 1
TOLD_COUNTED: Final = 2


class CreateQueue(NamedTuple):
    queue: str
    on_enqueue: str | None = None
    on_failure: str | None = None
    visibility_ms: int = 0  # 0: the default
    max_attempts: int = 0  # failures that make a dead letter, whatever the hook says; 0: no limit
    cost: str = ""  # of a message, to its key: "messages" (1; also if empty) or "bytes"
    max_in_flight_per_key: int = 0  # messages of a fairness key leased at once; 0: no limit


class UpdateQueue(NamedTuple):
    """Change the settings that are named (`versions.py`), texts that may be empty; or go back to
    an older version's, with those that are named on top."""

    queue: str
    settings: dict[str, str]
    expected_version: int = 0  # refused where it is another by now; 0: whatever it is
    from_version: int = 0
    note: str = ""
    who: str = ""


class DeleteQueue(NamedTuple):
    queue: str


class SetConfig(NamedTuple):
    key: str
    value: str  # empty: remove


class StoreAuth(NamedTuple):
    """Keep, or without a value remove, a row of the auth family; the core does not read it."""

    key: bytes
    value: bytes | None


class Enqueue(NamedTuple):
    """Messages for one queue, column by column. Ids ascend; bodies are as they came in."""

    queue: str
    ids: list[bytes]
    bodies: list[bytes]
    assignments: list[Assignment]
    delays_ms: list[int] | None = None


class EnqueueKeyed(NamedTuple):
    """Like Enqueue, with an idempotency key for each message; an empty one is none."""

    queue: str
    ids: list[bytes]
    bodies: list[bytes]
    assignments: list[Assignment]
    delays_ms: list[int]
    keys: list[bytes]


class Age(NamedTuple):
    """Give up messages whose time to live ran out: their rows in the order of time."""

    queue: str
    rows: list[tuple[bytes, bytes]]


class Consume(NamedTuple):
    queue: str
    consumer: str
    connection: int
    prefetch: int = 0  # 0: the default
    prefetch_bytes: int = 0


class Leave(NamedTuple):
    """A consumer goes. `release` hands its leases back at once, without counting an attempt."""

    queue: str
    consumer: str
    release: bool = False


class Hold(NamedTuple):
    """Hand a consumer nothing more until it is resumed."""

    queue: str
    consumer: str
    held: bool = True


class HandBack(NamedTuple):
    """Hand back everything that consumers of this connection hold, the departed ones included."""

    queue: str
    connection: int


class Ack(NamedTuple):
    queue: str
    ids: list[bytes]
    connection: int = 0


class Nack(NamedTuple):
    """Messages that failed. A caller that had to read them for the failure hook passes them on, so
    that they are not read again; so do the two that tell of leases that ran out."""

    queue: str
    ids: list[bytes]
    errors: list[str]
    verdicts: list[FailureVerdict]
    connection: int = 0
    entries: list[Entry | None] | None = None  # None: not read yet; of one: it was not found


class Release(NamedTuple):
    """Hand these leased messages back: to their old places, without counting an attempt."""

    queue: str
    ids: list[bytes]
    connection: int = 0


class Extend(NamedTuple):
    """Let the leases of these messages end so much later than now; 0: the queue's time."""

    queue: str
    ids: list[bytes]
    visibility_ms: int = 0
    connection: int = 0


class Lease(NamedTuple):
    """Lease messages under a name, or tell again what is leased under it. The answer is an effect
    with the number of this request."""

    queue: str
    name: str
    request: int
    max_messages: int  # 0: only what is open
    max_bytes: int = 0  # 0: the default
    visibility_ms: int = 0  # 0: the queue's
    wait_ms: int = 0
    count_attempt: bool = False
    told: int = TOLD_ENTRIES  # how a batch that is open already is told
    # Which part of an open batch: `opened` and `rest` of the part before it (BatchLeased).
    opened: int = 0
    after: int = 0


class Withdraw(NamedTuple):
    """The answer to this Lease is no longer waited for."""

    queue: str
    name: str
    request: int


class AckBatch(NamedTuple):
    """Without `below` the batch of this name; else those of the stream `name` numbered less.

    A step: so many messages and no more. The reply's rest is the `before` of the next one, for
    which only those count that were open at the first; 0 when there is none to come."""

    queue: str
    name: str
    below: int | None = None
    before: int = 0


class ExtendBatch(NamedTuple):
    queue: str
    name: str
    visibility_ms: int = 0  # 0: the queue's
    below: int | None = None


class ReleaseBatch(NamedTuple):
    """In steps, as AckBatch."""

    queue: str
    name: str
    below: int | None = None
    before: int = 0


class ExpireBatch(NamedTuple):
    """A batch that ran out; where that counts, what the failure hook said of each message."""

    queue: str
    name: str
    ids: list[bytes]
    verdicts: list[FailureVerdict]
    entries: list[Entry | None] | None = None


class Expire(NamedTuple):
    """Leases that ran out, with what the failure hook said of each message still in them."""

    queue: str
    lease: int
    ids: list[bytes]
    verdicts: list[FailureVerdict]
    entries: list[Entry | None] | None = None


class Redrive(NamedTuple):
    """Move these pending messages of a dead-letter queue back, newly assigned."""

    queue: str
    ids: list[bytes]
    assignments: list[Assignment]


class PauseQueue(NamedTuple):
    """Deliver nothing from this queue until it is resumed."""

    queue: str
    reason: str = ""
    who: str = ""


class ResumeQueue(NamedTuple):
    queue: str
    who: str = ""


class PauseKey(NamedTuple):
    """Deliver nothing of a fairness key until it is resumed, whether it has messages now or not."""

    queue: str
    fairness_key: bytes
    reason: str = ""
    who: str = ""


class ResumeKey(NamedTuple):
    queue: str
    fairness_key: bytes
    who: str = ""


class SetOverride(NamedTuple):
    """Let what is named (`override.py`) hold for a fairness key, whatever its messages say; or
    clear all of it."""

    queue: str
    fairness_key: bytes
    settings: dict[str, str]
    clear: bool = False
    note: str = ""
    who: str = ""


class BeginReclassify(NamedTuple):
    """Let what waits be judged again, so many messages per second (0: as turns allow)."""

    queue: str
    rate: int = 0
    who: str = ""


class Reclassify(NamedTuple):
    """A step: messages of some lanes, with what the hook says of each now; None: nothing. `after`
    is the place of the one that was looked at last."""

    queue: str
    parts: list[tuple[tuple[bytes, tuple[bytes, ...]], list[Entry], list[Assignment | None]]]
    after: bytes


class EndReclassify(NamedTuple):
    queue: str
    done: bool = False  # else it is cancelled
    who: str = ""


class Purge(NamedTuple):
    """Drop what is pending in these lanes, which `purgeable` named; what is leased stays."""

    queue: str
    lanes: list[tuple[bytes, tuple[bytes, ...]]]  # fairness key, throttle keys; in that order
    whole: bool  # of the whole queue: lanes in between have nothing to lose …
    who: str = ""
    next_lane: int = 0  # … up to this number; later ones were made after the lanes were named


Command = (
    CreateQueue
    | UpdateQueue
    | DeleteQueue
    | SetConfig
    | StoreAuth
    | Enqueue
    | EnqueueKeyed
    | Consume
    | Leave
    | Hold
    | HandBack
    | Ack
    | Nack
    | Release
    | Extend
    | Lease
    | Withdraw
    | AckBatch
    | ExtendBatch
    | ReleaseBatch
    | ExpireBatch
    | Expire
    | Age
    | Redrive
    | PauseQueue
    | ResumeQueue
    | PauseKey
    | ResumeKey
    | SetOverride
    | BeginReclassify
    | Reclassify
    | EndReclassify
    | Purge
)
