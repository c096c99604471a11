"""Readers and writers without a JVM, against a real broker: called as Spark calls them."""

from __future__ import annotations

import pickle
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows
from pyspark.sql.types import ArrayType, MapType, StringType, StructType

from fila.client.new_message import NewMessage
from fila.client.sync import FilaClient
from fila.spark.source import offsets
from fila.spark.source.data_source import FilaDataSource
from fila.spark.source.offsets import Offset
from fila.spark.source.options import OPTIONS, SourceError
from fila.spark.source.schema import READ_SCHEMA, Shape
from fila.spark.source.writer import AT_LEAST_ONCE
from tests.e2e.process import Broker, wait_until
from tests.spark.source.conftest import address_of, fill, held

PAYLOAD = StructType().add("payload", "binary")


@pytest.fixture
def source(address: str, queue: str) -> Iterator[Any]:
    made = []

    def make(**options: str) -> FilaDataSource:
        return FilaDataSource({"address": address, "queue": queue, **options})

    def stream_reader(**options: str) -> Any:
        options.setdefault("idlewaitseconds", "0")
        reader = make(**options).streamReader(READ_SCHEMA)
        made.append(reader)
        return reader

    make.stream_reader = stream_reader  # type: ignore[attr-defined]
    yield make
    for reader in made:
        reader.stop()


def rows_of(reader: Any, partitions: list[Any]) -> list[str]:
    """As a worker reads them: from a pickled reader."""
    copy = pickle.loads(pickle.dumps(reader))
    found: list[str] = []
    for partition in partitions:
        for batch in copy.read(pickle.loads(pickle.dumps(partition))):
            found += [value.decode() for value in batch.column("payload").to_pylist()]
    return found


def test_a_batch_read_takes_nothing_and_reads_all(source, client, queue) -> None:
    fill(client, queue, 5_000)
    client.enqueue(queue, None, b"later", delay=60)
    reader = source(numpartitions="3").reader(READ_SCHEMA)
    partitions = reader.partitions()
    assert 2 <= len(partitions) <= 3
    found = rows_of(reader, partitions)
    assert sorted(found) == sorted([*map(str, range(5_000)), "later"])
    assert held(client, queue) == (5_001, 0)


def test_a_batch_read_is_narrowed_by_state_key_and_schema(source, client, queue) -> None:
    fill(client, queue, 10, fairness_key="a")
    fill(client, queue, 10, fairness_key="b")
    client.enqueue(queue, None, b"later", delay=60)
    client.lease_batch(queue, "mine", 4)
    delayed = source(states="delayed").reader(PAYLOAD)
    assert rows_of(delayed, delayed.partitions()) == ["later"]
    leased = source(states="leased").reader(PAYLOAD)
    assert len(rows_of(leased, leased.partitions())) == 4
    own = source(fairnesskey="a").reader(StructType().add("weight", "long").add("state", "string"))
    batches = [batch for part in own.partitions() for batch in own.read(part)]
    assert sum(batch.num_rows for batch in batches) == 10
    assert batches[0].schema.names == ["weight", "state"]


def test_a_snapshot_that_is_gone_says_what_to_do(source, client, queue) -> None:
    fill(client, queue, 1)
    reader = source(snapshotttlseconds="1").reader(READ_SCHEMA)
    partitions = reader.partitions()
    time.sleep(1.2)
    with pytest.raises(SourceError, match=r"snapshotTtlSeconds.*Read the queue again"):
        rows_of(reader, partitions)


def test_a_snapshot_lives_while_it_is_read_and_makes_room_when_it_was(
    source, client, queue
) -> None:
    fill(client, queue, 3_000)
    for _ in range(20):  # the broker keeps 16
        reader = source(snapshotttlseconds="1").reader(PAYLOAD)
        partitions = reader.partitions()
        rows = rows_of(reader, partitions[:1])
        for partition in partitions[1:]:
            rows += rows_of(reader, [partition])
        assert len(rows) == 3_000
    batches = reader.read(source(numpartitions="1").reader(PAYLOAD).partitions()[0])
    next(batches)
    time.sleep(2)  # twice as long as it lives unread
    assert sum(batch.num_rows for batch in batches) > 2_000


def test_a_schema_without_bodies_moves_few_bytes(source, client, queue, monkeypatch) -> None:
    client.enqueue_messages([NewMessage(queue, b"x" * 4_000, {"a": "1"})] * 200)
    moved: Counter[int] = Counter()

    class Counted(Shape):
        def batches(self, stream: bytes) -> Iterator[Any]:
            moved[len(self._schema)] += len(stream)
            return super().batches(stream)

    monkeypatch.setattr("fila.spark.source.reader.Shape", Counted)
    two = StructType().add("fairness_key", "string").add("state", "string")
    for schema in (READ_SCHEMA, two):
        reader = source().reader(schema)
        found = [batch for part in reader.partitions() for batch in reader.read(part)]
        assert sum(batch.num_rows for batch in found) == 200
    assert moved[len(READ_SCHEMA)] > 200 * 4_000
    assert moved[len(two)] < moved[len(READ_SCHEMA)] / 20


def test_a_reader_that_stops_early_reads_little(source, client, queue) -> None:
    fill(client, queue, 3_000)
    reader = source(numpartitions="1").reader(PAYLOAD)
    (partition,) = reader.partitions()
    batches = reader.read(partition)
    assert next(batches).num_rows == 128
    batches.close()


def test_trigger_once_is_refused_with_the_name_of_what_works(source, client, queue) -> None:
    fill(client, queue, 5)
    reader = source.stream_reader()
    with pytest.raises(SourceError, match=r"trigger\(availableNow=True\)"):
        reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    assert held(client, queue) == (5, 0)


def test_a_broker_that_is_away_for_a_moment_is_waited_for(tmp_path: Path, capsys) -> None:
    with Broker(tmp_path / "data") as broker:
        address = broker.listen = address_of(broker)  # the same port after the restart
        with FilaClient(address) as client:
            client.create_queue("q")
            fill(client, "q", 3)
        given = {"address": address, "queue": "q"}
        broker.kill()
        uses: dict[str, Callable[[], Any]] = {
            "snapshot": lambda: rows_of(reader := FilaDataSource(given).reader(PAYLOAD),
                                        reader.partitions()),
            "stream": FilaDataSource(given).streamReader(PAYLOAD).initialOffset,
            "writer": lambda: FilaDataSource(given).writer(PAYLOAD, False),
        }  # fmt: skip
        with ThreadPoolExecutor(3) as pool:
            waiting = {name: pool.submit(use) for name, use in uses.items()}
            time.sleep(0.5)
            assert not any(one.done() for one in waiting.values())
            broker.start()
            assert sorted(waiting["snapshot"].result(30)) == ["0", "1", "2"]
            assert waiting["stream"].result(30)["n"] == 0
            assert waiting["writer"].result(30) is not None
    assert "tried again for" in capsys.readouterr().err


def test_a_stream_reads_the_same_rows_however_often_it_is_asked(source, client, queue) -> None:
    fill(client, queue, 100)
    reader = source.stream_reader(maxrowsperbatch="40")
    start = reader.initialOffset()
    assert reader.initialOffset() == start
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    assert end == {"s": start["s"], "n": 1}
    partitions = reader.partitions(start, end)
    first = rows_of(reader, partitions)
    assert len(first) == 40
    assert rows_of(reader, partitions) == first
    assert rows_of(reader, reader.partitions(start, end)) == first
    assert held(client, queue) == (60, 40)


def test_twins_of_a_task_read_the_same_rows_at_the_same_time(source, client, queue) -> None:
    """As speculative execution starts them; neither leases what the other does not see."""
    fill(client, queue, 500)
    reader = source.stream_reader(maxrowsperbatch="200")
    start = reader.initialOffset()
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    partitions = reader.partitions(start, end)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: rows_of(reader, partitions), range(4)))
    assert len(found[0]) == 200
    assert found.count(found[0]) == 4
    assert held(client, queue) == (300, 200)


def test_a_reader_of_the_next_run_finds_what_was_leased_before(source, client, queue) -> None:
    fill(client, queue, 50)
    reader = source.stream_reader()
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadMaxRows(20))
    first = rows_of(reader, reader.partitions(start, end))
    again = source.stream_reader(numpartitions="1")
    # Before the offset was logged: it asks for the latest once more, and gets the same.
    assert again.latestOffset(start, ReadMaxRows(20)) == end
    assert rows_of(again, again.partitions(start, end)) == first
    assert held(client, queue) == (30, 20)


def test_what_is_committed_is_acknowledged_also_when_nothing_comes_after(
    source, client, queue
) -> None:
    fill(client, queue, 10)
    reader = source.stream_reader()
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadMaxRows(100))
    reader.commit(end)
    assert held(client, queue) == (0, 10)
    assert reader.latestOffset(end, ReadMaxRows(100)) == end
    assert held(client, queue) == (0, 0)


def test_limits_hold_for_rows_and_bytes(source, client, queue) -> None:
    client.enqueue_messages([NewMessage(queue, b"x" * 1_000)] * 300)
    reader = source.stream_reader()
    zero = offsets.from_json(reader.initialOffset())
    one, two = zero.after(), zero.after().after()
    assert reader.latestOffset(zero.as_json(), ReadMaxRows(7)) == one.as_json()
    assert len(rows_of(reader, reader.partitions(zero.as_json(), one.as_json()))) == 7
    assert reader.latestOffset(one.as_json(), ReadMaxBytes(50_000)) == two.as_json()
    assert 30 <= len(rows_of(reader, reader.partitions(one.as_json(), two.as_json()))) <= 52


def test_a_query_that_is_to_end_reads_as_many_as_there_were(source, client, queue) -> None:
    fill(client, queue, 25)
    reader = source.stream_reader(maxrowsperbatch="10")
    start = reader.initialOffset()
    reader.prepareForTriggerAvailableNow()
    sizes = []
    while True:
        fill(client, queue, 5)  # comes too late for this run
        end = reader.latestOffset(start, reader.getDefaultReadLimit())
        if end == start:
            break
        sizes.append(len(rows_of(reader, reader.partitions(start, end))))
        start = end
    assert sizes == [10, 10, 5]
    assert held(client, queue) == (20, 0)


def test_a_run_that_is_to_end_reads_what_the_one_before_had_leased(source, client, queue) -> None:
    fill(client, queue, 10)
    reader = source.stream_reader()
    start = reader.initialOffset()
    reader.latestOffset(start, ReadMaxRows(6))  # and it crashes before the offset is logged
    again = source.stream_reader()
    again.prepareForTriggerAvailableNow()
    fill(client, queue, 3)
    found: list[str] = []
    while (end := again.latestOffset(start, ReadMaxRows(100))) != start:
        found += rows_of(again, again.partitions(start, end))
        start = end
    assert len(found) == 10
    assert held(client, queue) == (3, 0)


def test_the_broker_waits_for_an_idle_stream(source, client, queue) -> None:
    reader = source.stream_reader(idlewaitseconds="0.5")
    start = reader.initialOffset()
    began = time.monotonic()
    assert reader.latestOffset(start, ReadMaxRows(10)) == start
    assert time.monotonic() - began >= 0.4


def test_the_heart_beat_keeps_a_batch_and_its_end_frees_it(source, client, queue) -> None:
    fill(client, queue, 5)
    reader = source.stream_reader(visibilitytimeoutseconds="3")
    reader.latestOffset(reader.initialOffset(), ReadMaxRows(10))
    time.sleep(4)  # longer than the timeout, and beats have room to be late
    assert held(client, queue) == (0, 5)
    reader.stop()
    wait_until(lambda: held(client, queue) == (5, 0), 30, "the batch to run out")
    (attempts,) = {one.attempt_count for one in client.browse(queue)}
    assert attempts == 0


def test_a_batch_that_ran_out_is_empty_and_its_messages_come_again(
    source, client, queue, capsys
) -> None:
    fill(client, queue, 5)
    reader = source.stream_reader(visibilitytimeoutseconds="1", heartbeat="false")
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadMaxRows(10))
    partitions = reader.partitions(start, end)
    wait_until(lambda: held(client, queue) == (5, 0), 30, "the batch to run out")
    assert rows_of(reader, partitions) == []
    assert "they come again in a later batch" in capsys.readouterr().err
    assert reader.partitions(start, end) == []
    later = reader.latestOffset(end, ReadMaxRows(10))
    assert len(rows_of(reader, reader.partitions(end, later))) == 5


def test_lag_and_the_name_of_the_stream_can_be_seen(source, client, queue) -> None:
    fill(client, queue, 9)
    reader = source.stream_reader(streamname="nightly")
    assert reader.reportLatestOffset() is None
    start = reader.initialOffset()
    reader.latestOffset(start, ReadMaxRows(4))
    assert reader.reportLatestOffset() == {"s": start["s"], "n": 1, "waiting": 5}
    assert {one.name.partition("-")[0] for one in client.list_batches(queue)} == {"nightly"}


def test_an_offset_of_another_source_is_told(source) -> None:
    with pytest.raises(SourceError, match="a checkpoint of its own"):
        source.stream_reader().latestOffset({"offset": 3}, ReadMaxRows(1))


def test_names_of_pieces_are_read_back() -> None:
    name = offsets.piece_name(Offset("s-1", 12), 3)
    assert name == "s-1/12/3"
    assert (offsets.number_of(name, "s-1"), offsets.piece_of(name)) == (12, 3)
    assert offsets.number_of(name, "s") is None


TEXTS = MapType(StringType(), StringType())
WRITE = (
    StructType().add("payload", "string").add("headers", TEXTS)
    .add("fairness_key", "string").add("weight", "integer")
    .add("throttle_keys", ArrayType(StringType())).add("delay_ms", "long")
    .add("idempotency_key", "string")
)  # fmt: skip


def batch_of(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    schema = pa.schema(
        [("payload", pa.string()), ("headers", pa.map_(pa.string(), pa.string())),
         ("fairness_key", pa.string()), ("weight", pa.int32()),
         ("throttle_keys", pa.list_(pa.string())), ("delay_ms", pa.int64()),
         ("idempotency_key", pa.string())]
    )  # fmt: skip
    return pa.RecordBatch.from_pylist(rows, schema)


def test_every_column_reaches_the_message(source, client, queue, capsys) -> None:
    writer = source().writer(WRITE, overwrite=False)
    assert capsys.readouterr().err == ""
    full = {"payload": "x", "headers": [("a", "1")], "fairness_key": "k", "weight": 3,
            "throttle_keys": ["t"], "delay_ms": 60_000, "idempotency_key": "one"}  # fmt: skip
    written = writer.write(iter([batch_of([full, {"payload": "y"}])]))
    assert (written.rows, written.duplicates) == (2, 0)
    assert writer.write(iter([batch_of([full])])).duplicates == 1
    found = {one.payload: one for one in client.browse(queue)}
    assert len(found) == 2
    one = found[b"x"]
    assert (one.headers, one.fairness_key, one.weight) == ({"a": "1"}, "k", 3)
    assert (list(one.throttle_keys), one.state) == (["t"], "delayed")
    assert found[b"y"].state == "ready"


def test_a_column_of_queues_sends_rows_to_each(source, client, queue) -> None:
    client.create_queue(f"{queue}.other")
    schema = StructType().add("payload", "binary").add("queue", "string")
    rows = pa.RecordBatch.from_pydict({"payload": [b"1", b"2"], "queue": [f"{queue}.other", None]})
    source().writer(schema, overwrite=False).write(iter([rows]))
    assert held(client, queue) == (1, 0)
    assert held(client, f"{queue}.other") == (1, 0)
    nowhere = pa.RecordBatch.from_pydict({"payload": [b"1"], "queue": ["nowhere"]})
    with pytest.raises(SourceError, match=r'row 0 of this task.*"nowhere" does not exist'):
        source().writer(schema, overwrite=False).write(iter([nowhere]))


def test_a_row_without_payload_is_named(source, client, queue) -> None:
    rows = pa.RecordBatch.from_pydict({"payload": [b"1", None]})
    with pytest.raises(SourceError, match="row 1 of this task has no payload"):
        source().writer(PAYLOAD, overwrite=False).write(iter([rows]))
    assert held(client, queue) == (0, 0)


def test_without_idempotency_keys_the_driver_warns(source, capsys) -> None:
    source().writer(PAYLOAD, overwrite=False)
    assert capsys.readouterr().err == AT_LEAST_ONCE


def test_a_writer_keeps_to_its_rate(source, client, queue) -> None:
    rows = pa.RecordBatch.from_pydict({"payload": [b"1"] * 50})
    began = time.monotonic()
    source(maxrowspersecond="100").writer(PAYLOAD, overwrite=False).write(iter([rows]))
    assert time.monotonic() - began >= 0.4
    assert held(client, queue) == (50, 0)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"que": "x"}, "did you mean queue"),
        ({"maxRowPerBatch": "1"}, "did you mean maxRowsPerBatch"),
        ({"apiKey": "secret"}, "set the environment variable FILA_API_KEY"),
        ({"numPartitions": "many"}, "numPartitions: 'many' is not a whole number"),
        ({"numPartitions": "0"}, "from 1 to 1024"),
        ({"heartbeat": "yes"}, "neither true nor false"),
        ({"states": "ready"}, "option states is for read"),
        ({"streamName": "a/b"}, "must not hold a stroke"),
        ({"tlsCert": "a.pem"}, "belong together"),
        ({"path": "other"}, "named twice"),
    ],
)
def test_a_wrong_option_is_named_before_anything_happens(options, said) -> None:
    given = {name.lower(): value for name, value in {"queue": "q", **options}.items()}
    with pytest.raises(SourceError, match=said) as caught:
        FilaDataSource(given).streamReader(READ_SCHEMA)
    assert "secret" not in str(caught.value)


def test_no_queue_no_broker_no_such_queue_are_told(address) -> None:
    with pytest.raises(SourceError, match="which queue"):
        FilaDataSource({"address": address}).reader(READ_SCHEMA)
    given = {"address": "127.0.0.1:1", "queue": "q", "timeoutseconds": "1"}
    with pytest.raises(SourceError, match=r"no broker answers.*connection refused"):
        FilaDataSource(given).reader(READ_SCHEMA).partitions()
    nowhere = FilaDataSource({"address": address, "queue": "nowhere"})
    with pytest.raises(SourceError, match='queue "nowhere" does not exist'):
        nowhere.reader(PAYLOAD).partitions()
    with pytest.raises(SourceError, match='queue "nowhere" does not exist'):
        nowhere.streamReader(PAYLOAD).initialOffset()
    with pytest.raises(SourceError, match='queue "nowhere" does not exist'):
        nowhere.writer(PAYLOAD, False)


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"payload": "integer"}, "column payload must be binary or string, not int"),
        ({"body": "binary"}, "column body is no column of a message to write"),
        ({"payload": "binary", "header": TEXTS}, "did you mean headers"),
        ({"weight": "string"}, "weight must be tinyint or smallint or int or bigint"),
        ({"queue": "string"}, "column payload is missing"),
    ],
)
def test_columns_that_make_no_message_are_named(source, schema, said) -> None:
    columns = StructType()
    for name, kind in schema.items():
        columns = columns.add(name, kind)
    with pytest.raises(SourceError, match=said):
        source().writer(columns, overwrite=False)


def test_overwrite_and_foreign_columns_are_refused(source) -> None:
    with pytest.raises(SourceError, match="cannot be overwritten"):
        source().writer(PAYLOAD, overwrite=True)
    with pytest.raises(SourceError, match="did you mean message_id"):
        source().reader(StructType().add("messageid", "string"))
    with pytest.raises(SourceError, match="payload is binary, not string; read it so and cast"):
        source().streamReader(StructType().add("payload", "string"))


def test_keys_come_from_the_environment_alone(tmp_path: Path, monkeypatch) -> None:
    with Broker(tmp_path / "data", {"bootstrap_apikey": "the-key-of-keys"}) as broker:
        given = {"address": address_of(broker), "queue": "q", "apikeyenv": "MY_KEY"}
        with FilaClient(address_of(broker), api_key="the-key-of-keys") as client:
            client.create_queue("q")
            fill(client, "q", 3)
            key = client.create_api_key("reader")
            client.set_acl(key.key_id, [("consume", "q")])
        with pytest.raises(SourceError, match="MY_KEY is not set here"):
            FilaDataSource(given).reader(PAYLOAD).partitions()
        monkeypatch.setenv("MY_KEY", "wrong")
        with pytest.raises(SourceError, match="MY_KEY is not accepted"):
            FilaDataSource(given).reader(PAYLOAD).partitions()
        monkeypatch.setenv("MY_KEY", key.key)
        reader = FilaDataSource(given).reader(PAYLOAD)
        assert len(rows_of(reader, reader.partitions())) == 3
        stream = FilaDataSource(given).streamReader(PAYLOAD)
        stream.prepareForTriggerAvailableNow()  # a key that may consume suffices
        start = stream.initialOffset()
        end = stream.latestOffset(start, ReadMaxRows(10))
        assert len(rows_of(stream, stream.partitions(start, end))) == 3
        assert key.key.encode() not in pickle.dumps(stream)
        stream.stop()


def test_the_reference_names_every_option() -> None:
    page = Path(__file__).resolve().parents[3] / "docs" / "pipeline" / "source.md"
    text = page.read_text()
    for option in OPTIONS:
        assert f"| `{option.name}` |" in text
    for field in READ_SCHEMA:
        assert f"| `{field.name}` |" in text
