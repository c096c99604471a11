"""Snapshots and writes in real Spark, and what is refused before any task starts."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.process import Broker
from tests.spark.source.conftest import address_of, fill, held, numbers, wait_for_empty


def read(spark: Any, address: str, queue: str, **options: object) -> Any:
    return spark.read.format("fila").option("address", address).options(**options).load(queue)


def test_a_queue_is_a_table(spark, address, client, queue) -> None:
    fill(client, queue, 300, fairness_key="a", headers={"tenant": "a"})
    fill(client, queue, 100, first=300, fairness_key="b", delay_ms=3_600_000)
    read(spark, address, queue).createOrReplaceTempView("queue")
    found = spark.sql(
        "select fairness_key, state, count(*) as n, max(headers['tenant']) as tenant "
        "from queue group by 1, 2 order by 1"
    ).collect()
    assert [tuple(row) for row in found] == [("a", "ready", 300, "a"), ("b", "delayed", 100, None)]
    assert held(client, queue) == (400, 0)


def test_the_sql_of_the_page_runs_as_it_stands(spark, address, client) -> None:
    page = Path(__file__).resolve().parents[3] / "docs" / "pipeline" / "source.md"
    (block,) = re.findall(r"^```sql\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    create, select, insert = block.replace("localhost:5555", address).split(";")[:-1]
    client.create_queue("orders")
    fill(client, "orders", 3, fairness_key="b")
    try:
        spark.sql(create)
        assert [tuple(row) for row in spark.sql(select).collect()] == [("b", 3)]
        spark.sql(insert)
        assert {tuple(row) for row in spark.sql(select).collect()} == {("b", 3), ("acme", 1)}
    finally:
        spark.sql("DROP TABLE IF EXISTS orders")


def test_all_actions_on_a_dataframe_see_one_moment(spark, address, client, queue) -> None:
    """Canary: Spark plans the partitions of a Python source once per DataFrame."""
    fill(client, queue, 10)
    frame = read(spark, address, queue)
    assert frame.count() == 10
    fill(client, queue, 5)
    assert frame.count() == 10
    assert read(spark, address, queue).count() == 15


def test_fewer_columns_may_be_asked_for(spark, address, client, queue) -> None:
    fill(client, queue, 3)
    reader = spark.read.format("fila").option("address", address)
    frame = reader.schema("payload binary, state string").load(queue)
    assert frame.columns == ["payload", "state"]
    assert numbers(frame.collect()) == [0, 1, 2]


def test_rows_become_messages_and_come_back(spark, address, client, queue) -> None:
    rows = spark.range(1_000).selectExpr(
        "cast(id as string) as payload",
        "concat('k', id % 3) as fairness_key",
        "map('n', cast(id as string)) as headers",
        "array('t') as throttle_keys",
        "cast(id % 2 + 1 as int) as weight",
        "concat('row-', id) as idempotency_key",
    )
    for _ in range(2):  # the second time nothing is new
        rows.write.format("fila").option("address", address).mode("append").save(queue)
    back = read(spark, address, queue)
    assert numbers(back.collect()) == list(range(1_000))
    wrong = back.where(
        "headers['n'] != cast(payload as string) or throttle_keys != array('t') or "
        "fairness_key != concat('k', cast(cast(payload as string) as int) % 3)"
    )
    assert wrong.count() == 0


def test_a_table_of_the_catalog_is_read_and_inserted_into(spark, address, client, queue) -> None:
    table = f"table_{queue}"
    spark.sql(
        f"create table {table} using fila options "
        f"(address '{address}', queue '{queue}', states 'ready') comment 'orders' "
        "tblproperties ('team' = 'shop')"
    )
    try:
        for _ in range(2):  # the second time nothing is new
            spark.sql(
                f"insert into {table} (payload, fairness_key, idempotency_key) values "
                "(cast('1' as binary), 'a', 'one'), (cast('2' as binary), 'b', 'two')"
            )
        client.enqueue(queue, None, b"3", delay=60)
        found = spark.sql(f"select fairness_key, payload, delay_ms from {table} order by 1")
        assert [tuple(row) for row in found.collect()] == [("a", b"1", None), ("b", b"2", None)]
        with pytest.raises(Exception, match="rows with a message_id cannot be written"):
            spark.sql(f"insert into {table} select * from {table}")
        assert held(client, queue) == (3, 0)
    finally:
        spark.sql(f"drop table {table}")


@pytest.mark.parametrize("keyed", [True, False])
def test_a_failing_task_stores_twice_only_without_keys(
    spark, address, client, queue, tmp_path: Path, keyed: bool
) -> None:
    mark = tmp_path / "failed-once"

    def fail_once(batches: Any) -> Any:
        yield from batches
        if not mark.exists():
            mark.touch()
            time.sleep(1)
            raise RuntimeError("after everything was sent")

    # Long enough that the first rows are under way when the last ones fail.
    columns = ["rpad(cast(id as string), 4000, ' ') as payload"]
    columns += ["cast(id as string) as idempotency_key"] if keyed else []
    rows = spark.range(500, numPartitions=1).selectExpr(*columns)
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", 100)
    try:
        rows.mapInArrow(fail_once, rows.schema).write.format("fila").option(
            "address", address
        ).mode("append").save(queue)
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    assert mark.exists()
    found = numbers(client.browse(queue))
    assert sorted({*found}) == list(range(500))
    assert (len(found) == 500) is keyed


def test_a_stream_moves_messages_from_queue_to_queue_once(
    spark, read_stream, address, client, queue, tmp_path
) -> None:
    target = f"{queue}.to"
    client.create_queue(target)
    fill(client, queue, 60)
    mark = tmp_path / "failed-once"

    def fail_once(batches: Any) -> Any:
        yield from batches
        if not mark.exists():
            mark.touch()
            raise RuntimeError("after it was sent")

    moved = read_stream(queue, maxRowsPerBatch=25).selectExpr(
        "payload", "headers", "message_id as idempotency_key"
    )
    query = (
        moved.mapInArrow(fail_once, moved.schema)
        .writeStream.format("fila")
        .option("address", address)
        .option("queue", target)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(60)
    assert mark.exists()
    assert numbers(client.browse(target)) == list(range(60))
    wait_for_empty(client, queue)


def _refusals() -> dict[str, tuple[str, Any]]:
    def reading(**options: str) -> Any:
        return lambda spark, address, queue: read(spark, address, queue, **options).collect()

    def writing(select: str, mode: str = "append", queue: str = "") -> Any:
        def write(spark: Any, address: str, own: str) -> None:
            rows = spark.range(5).selectExpr(*select.split("; "))
            writer = rows.write.format("fila").option("address", address).mode(mode)
            writer.save(queue or own)

        return write

    def streaming(**options: str) -> Any:
        def start(spark: Any, address: str, queue: str) -> None:
            given = {"address": address, "queue": queue, **options}
            frame = spark.readStream.format("fila").options(**given).load()
            query = frame.writeStream.format("noop").trigger(availableNow=True).start()
            query.awaitTermination(30)

        return start

    text = "cast(id as string) as payload"
    return {
        "an unknown option": ("did you mean numPartitions", reading(numPartition="1")),
        "a secret": ("environment variable FILA_API_KEY", reading(apiKey="x")),
        "no such queue to read": ('"nowhere" does not exist',
                                  lambda s, a, q: read(s, a, "nowhere").collect()),
        "no such queue to follow": ('"nowhere" does not exist', streaming(queue="nowhere")),
        "an unknown option of a stream": ("maxRowsPerBatch", streaming(maxRowPerBatch="1")),
        "no such queue to write": ('"nowhere" does not exist', writing(text, queue="nowhere")),
        "no broker": ("no broker answers", lambda s, a, q: read(
            s, "127.0.0.1:1", q, timeoutSeconds=1).collect()),
        "a wrong type": ("payload must be binary or string", writing("id as payload")),
        "a column too many": ("column id is no column", writing(f"{text}; id")),
        "no payload": ("column payload is missing", writing("'x' as fairness_key")),
        "overwrite": ("cannot be overwritten", writing(text, "overwrite")),
        "no mode": ("ErrorIfExists", writing(text, "errorifexists")),
    }  # fmt: skip


@pytest.mark.parametrize("what", list(_refusals()))
def test_what_cannot_work_is_told_before_any_task_starts(spark, address, queue, what: str) -> None:
    said, attempt = _refusals()[what]
    group = f"refused {what}"
    spark.sparkContext.setJobGroup(group, what)
    try:
        with pytest.raises(Exception, match=said):
            attempt(spark, address, queue)
        assert not spark.sparkContext.statusTracker().getJobIdsForGroup(group)
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)


def test_a_broker_that_wants_a_key_is_told_by_the_name_of_the_variable(
    spark, tmp_path: Path
) -> None:
    with Broker(tmp_path / "data", {"bootstrap_apikey": "the-key-of-keys"}) as broker:
        frame = read(spark, address_of(broker), "q", apiKeyEnv="NOT_SET_ANYWHERE")
        with pytest.raises(Exception, match="NOT_SET_ANYWHERE is not set here"):
            frame.count()
