"""What the bulk operations say: enqueues with options, releases, lease batches and browsing.

Owns names and types only, like `bodies`, which shows these records beside its own. Never touches
bytes.

`form` says how messages travel inside a result: MESSAGES is a list as in a Delivery (a browse has
its own item), ARROW one Arrow IPC stream. COUNT leaves them out: a lease batch that others read.
"""

from typing import Final, NamedTuple

MESSAGES: Final = 0
ARROW: Final = 1
COUNT: Final = 2

# Bits of the states a browse shows; one of them stands with every message it returns.
READY: Final = 1
DELAYED: Final = 2
LEASED: Final = 4
ALL_STATES: Final = READY | DELAYED | LEASED


class EnqueueWithItem(NamedTuple):
    """Zero or empty means: not given."""

    queue: str
    headers: dict[str, str]
    payload: bytes
    delay_ms: int = 0
    idempotency_key: str = ""
    fairness_key: str = ""
    weight: int = 0
    throttle_keys: tuple[str, ...] = ()


class EnqueueWith(NamedTuple):
    messages: tuple[EnqueueWithItem, ...]


class EnqueueWithResultItem(NamedTuple):
    code: int
    message_id: str
    duplicate: bool


class EnqueueWithResult(NamedTuple):
    results: tuple[EnqueueWithResultItem, ...]


class ReleaseItem(NamedTuple):
    queue: str
    id: str


class Release(NamedTuple):
    messages: tuple[ReleaseItem, ...]


class ReleaseCode(NamedTuple):
    code: int


class ReleaseResult(NamedTuple):
    results: tuple[ReleaseCode, ...]


class LeaseBatch(NamedTuple):
    queue: str
    name: str
    max_messages: int = 0  # 0: only a batch that is open already
    max_bytes: int = 0  # 0: the broker's default
    visibility_ms: int = 0  # 0: the queue's
    wait_ms: int = 0
    count_attempt: bool = False
    form: int = MESSAGES


class LeaseBatchResult(NamedTuple):
    code: int
    again: bool = False
    messages: int = 0
    expires_at_ms: int = 0
    form: int = MESSAGES
    body: bytes = b""


class AckBatch(NamedTuple):
    queue: str
    name: str
    below: int | None = None


class AckBatchResult(NamedTuple):
    code: int
    batches: int = 0
    messages: int = 0


class ExtendBatch(NamedTuple):
    queue: str
    name: str
    visibility_ms: int = 0
    below: int | None = None


class ExtendBatchResult(NamedTuple):
    code: int
    batches: int = 0
    messages: int = 0


class ReleaseBatch(NamedTuple):
    queue: str
    name: str
    below: int | None = None


class ReleaseBatchResult(NamedTuple):
    code: int
    batches: int = 0
    messages: int = 0


class ListBatches(NamedTuple):
    queue: str


class OpenBatch(NamedTuple):
    name: str
    messages: int
    leased_at_ms: int
    expires_at_ms: int


class ListBatchesResult(NamedTuple):
    code: int
    batches: tuple[OpenBatch, ...] = ()


class Browse(NamedTuple):
    queue: str
    fairness_key: str | None = None
    parts: int = 1
    ttl_ms: int = 0  # 0: the broker's default


class BrowseRange(NamedTuple):
    start: bytes
    end: bytes


class BrowseResult(NamedTuple):
    code: int
    snapshot: str = ""
    expires_at_ms: int = 0
    messages: int = 0
    ranges: tuple[BrowseRange, ...] = ()


class BrowsePage(NamedTuple):
    snapshot: str
    start: bytes
    end: bytes
    states: int = ALL_STATES
    max_messages: int = 0
    max_bytes: int = 0
    form: int = MESSAGES


class BrowsePageResult(NamedTuple):
    code: int
    messages: int = 0
    next: bytes = b""  # where the next page starts; empty: the range is read
    form: int = MESSAGES
    body: bytes = b""


class BrowseClose(NamedTuple):
    snapshot: str


class BrowseCloseResult(NamedTuple):
    code: int
