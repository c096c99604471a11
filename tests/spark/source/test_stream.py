"""Streams of a queue in real Spark: rows seen, distinct and acknowledged, whatever fails."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fila.client.sync import FilaClient
from tests.e2e.process import Broker, wait_until
from tests.spark.source.conftest import (
    address_of,
    fill,
    held,
    numbers,
    parquet_numbers,
    wait_for_empty,
)


class Sink:
    """What `foreachBatch` saw, and what it does besides."""

    def __init__(self, then: Callable[[int], None] = lambda batch: None) -> None:
        self.seen: list[int] = []
        self.batches: list[int] = []
        self._then = then

    def __call__(self, frame: Any, batch: int) -> None:
        self.batches.append(batch)
        self.seen += numbers(frame.select("payload").collect())
        self._then(batch)


def run(frame: Any, sink: Any, checkpoint: Path) -> BaseException | None:
    """One run to the end of what is available; what ended it early, if so."""
    query = (
        frame.writeStream.foreachBatch(sink)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    try:
        query.awaitTermination(60)
    except Exception as error:
        return error
    assert not query.isActive
    return None


def test_a_sink_that_fails_before_and_after_writing_gets_the_same_batch_again(
    read_stream, client, queue, tmp_path
) -> None:
    fill(client, queue, 30)
    frame = read_stream(queue, maxRowsPerBatch=10)

    def before(frame: Any, batch: int) -> None:
        raise RuntimeError("before anything was written")

    assert "before anything" in str(run(frame, before, tmp_path))
    assert held(client, queue) == (20, 10)

    def fail(batch: int) -> None:
        if batch == 1:
            raise RuntimeError("after it was written")

    after = Sink(fail)
    assert "after it was written" in str(run(frame, after, tmp_path))
    assert (after.batches, len(after.seen)) == ([0, 1], 20)
    assert held(client, queue) == (10, 10)
    last = Sink()
    assert run(frame, last, tmp_path) is None
    assert last.batches == [1, 2]
    assert sorted(last.seen[:10]) == sorted(after.seen[10:])  # the very same batch
    assert sorted({*after.seen, *last.seen}) == list(range(30))
    assert held(client, queue) == (0, 0)


def test_a_task_that_fails_after_yielding_is_repeated_with_the_same_rows(
    spark, read_stream, client, queue, tmp_path
) -> None:
    fill(client, queue, 40)
    mark, output = tmp_path / "failed-once", tmp_path / "out"

    def fail_once(batches: Any) -> Any:
        yield from batches
        if not mark.exists():
            mark.touch()
            raise RuntimeError("the task fails after its rows were given")

    frame = read_stream(queue, numPartitions=2)
    query = (
        frame.mapInArrow(fail_once, frame.schema)
        .writeStream.format("parquet")
        .option("path", str(output))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(60)
    assert mark.exists()
    assert parquet_numbers(spark, output) == list(range(40))
    assert held(client, queue) == (0, 0)


def test_two_actions_on_one_batch_see_the_same_rows(read_stream, client, queue, tmp_path) -> None:
    fill(client, queue, 50)
    seen = []

    def twice(frame: Any, batch: int) -> None:
        ids = [row.message_id for row in frame.select("message_id").collect()]
        fill(client, queue, 5)  # more that must not slip in
        again = [row.message_id for row in frame.select("message_id").collect()]
        seen.append((frame.count(), ids == again))

    assert run(read_stream(queue, maxRowsPerBatch=25), twice, tmp_path) is None
    assert seen == [(25, True), (25, True)]


@pytest.mark.parametrize("heartbeat", [True, False])
def test_a_sink_slower_than_the_timeout_is_carried_by_the_heart_beat(
    read_stream, client, queue, tmp_path, heartbeat: bool
) -> None:
    fill(client, queue, 20)

    def sleep(batch: int) -> None:
        if batch == 0:
            time.sleep(4)

    sink = Sink(sleep)
    frame = read_stream(queue, visibilityTimeoutSeconds=3, heartbeat=heartbeat)
    assert run(frame, sink, tmp_path) is None
    if not heartbeat:  # what ran out went back, and comes again
        assert held(client, queue) == (20, 0)
        assert run(frame, sink, tmp_path) is None
    assert Counter(sink.seen) == dict.fromkeys(range(20), 1 if heartbeat else 2)
    assert held(client, queue) == (0, 0)


def test_the_tail_of_an_idle_queue_is_acknowledged(read_stream, client, queue, tmp_path) -> None:
    sink = Sink()
    query = (
        read_stream(queue, idleWaitSeconds=0.2)
        .writeStream.foreachBatch(sink)
        .option("checkpointLocation", str(tmp_path))
        .start()
    )
    try:
        fill(client, queue, 7)
        wait_until(lambda: len(sink.seen) == 7, 30, "the rows")
        wait_for_empty(client, queue)
        assert query.lastProgress is not None
    finally:
        query.stop()
    assert sorted(sink.seen) == list(range(7))


def test_available_now_ends_after_what_was_there(read_stream, client, queue, tmp_path) -> None:
    fill(client, queue, 45)
    sink = Sink(lambda batch: fill(client, queue, 10))
    assert run(read_stream(queue, maxRowsPerBatch=20), sink, tmp_path) is None
    assert len(sink.seen) == 45
    assert sink.batches == [0, 1, 2]
    assert held(client, queue) == (30, 0)


def test_a_stopped_query_frees_its_messages_and_burns_no_attempt(
    read_stream, client, queue, tmp_path
) -> None:
    fill(client, queue, 10)
    working = tmp_path / "working"

    def hang(batches: Any) -> Any:
        yield from batches
        working.touch()
        time.sleep(30)

    frame = read_stream(queue, visibilityTimeoutSeconds=3)
    query = (
        frame.mapInArrow(hang, frame.schema)
        .writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    wait_until(working.exists, 30, "the task to work")
    time.sleep(4)
    assert held(client, queue) == (0, 10)
    query.stop()
    # Sooner than the task that hangs would end by itself.
    wait_until(lambda: held(client, queue) == (10, 0), 25, "the messages to be free")
    assert {one.attempt_count for one in client.browse(queue)} == {0}


def test_a_broker_killed_with_open_batches_gives_them_again(spark, tmp_path) -> None:
    broker = Broker(tmp_path / "data")
    output = tmp_path / "out"
    with broker.start():
        broker.listen = address_of(broker)  # the same port after the restart
        with FilaClient(address_of(broker)) as client:
            client.create_queue("q")
            fill(client, "q", 60)
        kills = []

        def kill(frame: Any, batch: int) -> None:
            first = numbers(frame.select("payload").collect())
            if batch < 2:
                broker.restart()
                kills.append(batch)
            assert numbers(frame.select("payload").collect()) == first
            frame.write.mode("append").parquet(str(output))

        frame = (
            spark.readStream.format("fila")
            .option("address", address_of(broker))
            .option("maxRowsPerBatch", 20)
            .load("q")
        )
        assert run(frame, kill, tmp_path / "checkpoint") is None
        assert kills == [0, 1]
        assert parquet_numbers(spark, output) == list(range(60))
        with FilaClient(address_of(broker)) as client:
            assert held(client, "q") == (0, 0)


def test_spark_and_a_live_consumer_share_a_queue_fairly(
    read_stream, client, queue, tmp_path
) -> None:
    """One key has a hundred times as many messages; neither Spark nor the consumer starve the
    other key, and no message goes to both."""
    fill(client, queue, 2_000, fairness_key="noisy")
    fill(client, queue, 200, first=10_000, fairness_key="quiet")
    taken: list[Any] = []
    done = threading.Event()

    def live() -> None:
        consumer = client.consume(queue, prefetch=10)
        while not done.is_set():
            for one in consumer.receive_many(10, 0.05):
                taken.append((one.fairness_key, int(one.payload)))
                one.ack()
            time.sleep(0.02)
        consumer.close()

    by_batch: list[Counter[str]] = []
    rows: list[int] = []

    def look(frame: Any, batch: int) -> None:
        found = frame.select("fairness_key", "payload").collect()
        by_batch.append(Counter(row.fairness_key for row in found))
        rows.extend(numbers(found))
        if batch == 0:
            thread.start()
        time.sleep(0.1)

    thread = threading.Thread(target=live)
    try:
        assert run(read_stream(queue, maxRowsPerBatch=100), look, tmp_path) is None
    finally:
        done.set()
        thread.join()
    assert abs(by_batch[0]["quiet"] - by_batch[0]["noisy"]) <= 2  # turn by turn
    assert taken
    mine = [number for _, number in taken]
    assert not {*mine} & {*rows}
    assert len(rows) == len({*rows})
    assert len(mine) + len(rows) + held(client, queue)[0] == 2_200


def test_throttles_hold_for_spark(read_stream, client, queue, tmp_path) -> None:
    client.set_config(f"throttle.{queue}-limit", "1,15")
    fill(client, queue, 100, throttle_keys=[f"{queue}-limit"])
    fill(client, queue, 10, first=500, fairness_key="free")
    sink = Sink()
    began = time.monotonic()
    assert run(read_stream(queue), sink, tmp_path) is None
    limited = [number for number in sink.seen if number < 500]
    assert 15 <= len(limited) <= 16 + (time.monotonic() - began)
    assert len(sink.seen) - len(limited) == 10
    client.set_config(f"throttle.{queue}-limit", None)


def test_progress_tells_the_lag(read_stream, client, queue, tmp_path) -> None:
    import json

    fill(client, queue, 30)
    query = (
        read_stream(queue, maxRowsPerBatch=10, streamName="lagging")
        .writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(60)
    found = [one for one in query.recentProgress if one["numInputRows"]]
    latest = [json.loads(one["sources"][0]["latestOffset"]) for one in found]
    assert [one["waiting"] for one in latest] == [20, 10, 0]
    assert latest[0]["s"].startswith("lagging-")
