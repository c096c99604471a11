"""What every operation says: one record per body, fields in wire order.

Owns names and types only; `layouts` knows how each field travels. Never touches bytes.

An optional field at the end of a record (`= None`) was added after version 1 was first spoken: old
peers leave it out. `message` in a result explains a code that is not Ok.
"""

from typing import NamedTuple

from fila.wire.bulk_bodies import AckBatch as AckBatch
from fila.wire.bulk_bodies import AckBatchResult as AckBatchResult
from fila.wire.bulk_bodies import Browse as Browse
from fila.wire.bulk_bodies import BrowseClose as BrowseClose
from fila.wire.bulk_bodies import BrowseCloseResult as BrowseCloseResult
from fila.wire.bulk_bodies import BrowsePage as BrowsePage
from fila.wire.bulk_bodies import BrowsePageResult as BrowsePageResult
from fila.wire.bulk_bodies import BrowseRange as BrowseRange
from fila.wire.bulk_bodies import BrowseResult as BrowseResult
from fila.wire.bulk_bodies import EnqueueWith as EnqueueWith
from fila.wire.bulk_bodies import EnqueueWithItem as EnqueueWithItem
from fila.wire.bulk_bodies import EnqueueWithResult as EnqueueWithResult
from fila.wire.bulk_bodies import EnqueueWithResultItem as EnqueueWithResultItem
from fila.wire.bulk_bodies import ExtendBatch as ExtendBatch
from fila.wire.bulk_bodies import ExtendBatchResult as ExtendBatchResult
from fila.wire.bulk_bodies import LeaseBatch as LeaseBatch
from fila.wire.bulk_bodies import LeaseBatchResult as LeaseBatchResult
from fila.wire.bulk_bodies import ListBatches as ListBatches
from fila.wire.bulk_bodies import ListBatchesResult as ListBatchesResult
from fila.wire.bulk_bodies import OpenBatch as OpenBatch
from fila.wire.bulk_bodies import Release as Release
from fila.wire.bulk_bodies import ReleaseBatch as ReleaseBatch
from fila.wire.bulk_bodies import ReleaseBatchResult as ReleaseBatchResult
from fila.wire.bulk_bodies import ReleaseCode as ReleaseCode
from fila.wire.bulk_bodies import ReleaseItem as ReleaseItem
from fila.wire.bulk_bodies import ReleaseResult as ReleaseResult
from fila.wire.stop_bodies import Explain as Explain
from fila.wire.stop_bodies import ExplainResult as ExplainResult
from fila.wire.stop_bodies import PauseKey as PauseKey
from fila.wire.stop_bodies import PauseKeyResult as PauseKeyResult
from fila.wire.stop_bodies import PauseQueue as PauseQueue
from fila.wire.stop_bodies import PauseQueueResult as PauseQueueResult
from fila.wire.stop_bodies import Purge as Purge
from fila.wire.stop_bodies import PurgeResult as PurgeResult
from fila.wire.stop_bodies import ResumeKey as ResumeKey
from fila.wire.stop_bodies import ResumeKeyResult as ResumeKeyResult
from fila.wire.stop_bodies import ResumeQueue as ResumeQueue
from fila.wire.stop_bodies import ResumeQueueResult as ResumeQueueResult


class Handshake(NamedTuple):
    version: int
    api_key: str | None


class HandshakeOk(NamedTuple):
    version: int
    node_id: int
    max_frame_size: int


class Ping(NamedTuple):
    pass


class Pong(NamedTuple):
    pass


class Disconnect(NamedTuple):
    pass


class EnqueueItem(NamedTuple):
    queue: str
    headers: dict[str, str]
    payload: bytes


class Enqueue(NamedTuple):
    messages: tuple[EnqueueItem, ...]


class EnqueueResultItem(NamedTuple):
    code: int
    message_id: str


class EnqueueResult(NamedTuple):
    results: tuple[EnqueueResultItem, ...]


class Consume(NamedTuple):
    queue: str
    prefetch: int | None = None


class ConsumeOk(NamedTuple):
    consumer_id: str


class DeliveryItem(NamedTuple):
    id: str
    queue: str
    headers: dict[str, str]
    payload: bytes
    fairness_key: str
    weight: int
    throttle_keys: tuple[str, ...]
    attempt_count: int
    enqueued_at_ms: int
    leased_at_ms: int


class Delivery(NamedTuple):
    messages: tuple[DeliveryItem, ...]


class CancelConsume(NamedTuple):
    pass


class AckItem(NamedTuple):
    queue: str
    id: str


class Ack(NamedTuple):
    messages: tuple[AckItem, ...]


class CodeItem(NamedTuple):
    code: int


class AckResult(NamedTuple):
    results: tuple[CodeItem, ...]


class NackItem(NamedTuple):
    queue: str
    id: str
    error: str


class Nack(NamedTuple):
    messages: tuple[NackItem, ...]


class NackResult(NamedTuple):
    results: tuple[CodeItem, ...]


class CreateQueue(NamedTuple):
    name: str
    on_enqueue: str | None = None
    on_failure: str | None = None
    visibility_timeout_ms: int = 0


class CreateQueueResult(NamedTuple):
    code: int
    queue_id: str = ""
    message: str | None = None


class DeleteQueue(NamedTuple):
    queue: str


class DeleteQueueResult(NamedTuple):
    code: int
    message: str | None = None


class GetStats(NamedTuple):
    queue: str


class FairnessKeyStats(NamedTuple):
    key: str
    pending: int
    deficit: int
    weight: int


class ThrottleKeyStats(NamedTuple):
    key: str
    tokens: float
    rate_per_second: float
    burst: float


class GetStatsResult(NamedTuple):
    code: int
    depth: int = 0
    in_flight: int = 0
    active_fairness_keys: int = 0
    active_consumers: int = 0
    quantum: int = 0
    leader_node_id: int = 0
    replication_count: int = 0
    fairness_keys: tuple[FairnessKeyStats, ...] = ()
    throttle_keys: tuple[ThrottleKeyStats, ...] = ()


class ListQueues(NamedTuple):
    pass


class QueueSummary(NamedTuple):
    name: str
    depth: int
    in_flight: int
    active_consumers: int
    leader_node_id: int


class ListQueuesResult(NamedTuple):
    code: int
    cluster_node_count: int = 0
    queues: tuple[QueueSummary, ...] = ()
    message: str | None = None


class SetConfig(NamedTuple):
    key: str
    value: str


class SetConfigResult(NamedTuple):
    code: int
    message: str | None = None


class GetConfig(NamedTuple):
    key: str


class GetConfigResult(NamedTuple):
    code: int
    value: str = ""
    message: str | None = None


class ListConfig(NamedTuple):
    prefix: str


class ConfigEntry(NamedTuple):
    key: str
    value: str


class ListConfigResult(NamedTuple):
    code: int
    entries: tuple[ConfigEntry, ...] = ()
    message: str | None = None


class Redrive(NamedTuple):
    dlq_queue: str
    limit: int = 0  # 0 moves all


class RedriveResult(NamedTuple):
    code: int
    redriven: int = 0


class CreateApiKey(NamedTuple):
    name: str
    expires_at_ms: int = 0
    is_superadmin: bool = False


class CreateApiKeyResult(NamedTuple):
    code: int
    key_id: str = ""
    key: str = ""
    is_superadmin: bool = False
    message: str | None = None


class RevokeApiKey(NamedTuple):
    key_id: str


class RevokeApiKeyResult(NamedTuple):
    code: int
    message: str | None = None


class ListApiKeys(NamedTuple):
    pass


class ApiKeySummary(NamedTuple):
    key_id: str
    name: str
    created_at_ms: int
    expires_at_ms: int
    is_superadmin: bool


class ListApiKeysResult(NamedTuple):
    code: int
    keys: tuple[ApiKeySummary, ...] = ()
    message: str | None = None


class Permission(NamedTuple):
    kind: str
    pattern: str


class SetAcl(NamedTuple):
    key_id: str
    permissions: tuple[Permission, ...]


class SetAclResult(NamedTuple):
    code: int
    message: str | None = None


class GetAcl(NamedTuple):
    key_id: str


class GetAclResult(NamedTuple):
    code: int
    key_id: str = ""
    is_superadmin: bool = False
    permissions: tuple[Permission, ...] = ()
    message: str | None = None


class Error(NamedTuple):
    code: int
    message: str
    metadata: dict[str, str]
