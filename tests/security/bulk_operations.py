"""Operations of the matrix that only FIBP has: options, releases, lease batches, browsing."""

from __future__ import annotations

from typing import Any

from fila.wire import bulk_bodies as bulk
from tests.grpc.talkers import FibpTalker, Talker, _fibp_faults

BATCH = "held"


def asked(talker: Talker, record: tuple[Any, ...], expected: type[Any]) -> Any:
    """One request; a refusal is raised as everywhere."""
    assert isinstance(talker, FibpTalker)
    with _fibp_faults():
        return talker.peer.request(record, expected)


def enqueue_with(talker: Talker, queue: str) -> Any:
    item = bulk.EnqueueWithItem(queue, {}, b"x", delay_ms=5)
    return asked(talker, bulk.EnqueueWith((item,)), bulk.EnqueueWithResult)


def release(talker: Talker, queue: str, id: str) -> Any:
    return asked(talker, bulk.Release((bulk.ReleaseItem(queue, id),)), bulk.ReleaseResult)


def lease_batch(talker: Talker, queue: str, name: str = "new") -> Any:
    return asked(talker, bulk.LeaseBatch(queue, name, max_messages=1), bulk.LeaseBatchResult)


def ack_batch(talker: Talker, queue: str) -> Any:
    return asked(talker, bulk.AckBatch(queue, BATCH), bulk.AckBatchResult)


def extend_batch(talker: Talker, queue: str) -> Any:
    return asked(talker, bulk.ExtendBatch(queue, BATCH, 60_000), bulk.ExtendBatchResult)


def release_batch(talker: Talker, queue: str) -> Any:
    return asked(talker, bulk.ReleaseBatch(queue, BATCH), bulk.ReleaseBatchResult)


def list_batches(talker: Talker, queue: str) -> Any:
    return asked(talker, bulk.ListBatches(queue), bulk.ListBatchesResult)


def browse(talker: Talker, queue: str) -> Any:
    return asked(talker, bulk.Browse(queue), bulk.BrowseResult)


def browse_page(talker: Talker, opened: Any) -> Any:
    (one,) = opened.ranges
    record = bulk.BrowsePage(opened.snapshot, one.start, one.end)
    return asked(talker, record, bulk.BrowsePageResult)


def browse_close(talker: Talker, opened: Any) -> Any:
    return asked(talker, bulk.BrowseClose(opened.snapshot), bulk.BrowseCloseResult)
