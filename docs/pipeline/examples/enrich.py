"""Orders, with what a table knows of their customers, into another queue: once each, in effect.

    python enrich.py --customers lake/customers --checkpoint lake/enrich-checkpoint
    python enrich.py … --once        # what is there now, and end

A message is acknowledged when the batch it came in is committed. A batch that is repeated, after a
kill at any moment, sends the same messages again: their ids are the idempotency keys, so the queue
stores each once. What is no order goes to a queue of its own; nothing is dropped.
"""

from __future__ import annotations

import argparse
import os

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.streaming import StreamingQuery

from fila.spark.payloads import unpacked
from fila.spark.session import get_spark

ORDER = "id bigint, customer string, amount double"


def enriched(orders: DataFrame, customers: DataFrame, to: str, unread: str) -> DataFrame:
    """Messages to write: a pure function, so a test needs neither broker nor stream."""
    known = unpacked(orders, ORDER).join(fn.broadcast(customers), "customer", "left")
    sound = fn.col("malformed").isNull()
    order = fn.to_json(fn.struct("id", "customer", "amount", "segment")).cast("binary")
    return known.select(
        fn.when(sound, fn.lit(to)).otherwise(fn.lit(unread)).alias("queue"),
        fn.when(sound, order).otherwise(fn.col("malformed")).alias("payload"),
        "headers",
        "fairness_key",
        fn.col("message_id").alias("idempotency_key"),  # a repeated batch stores nothing twice
    )


def start(spark: SparkSession, asked: argparse.Namespace) -> StreamingQuery:
    source = spark.readStream.format("fila").option("maxRowsPerBatch", asked.rows)
    orders = source.option("address", asked.addr).load(asked.queue)
    made = enriched(orders, spark.read.parquet(asked.customers), asked.to, asked.unread)
    # What Spark's progress shows of every batch, beside rows, rates and the messages that wait.
    unread = fn.count_if(fn.col("queue") == asked.unread).alias("unread")
    writer = (
        made.observe("orders", fn.count("*").alias("sent"), unread)
        .writeStream.format("fila")
        .option("address", asked.addr)
        .option("maxRowsPerSecond", asked.rate)
        .option("checkpointLocation", asked.checkpoint)
    )
    return (writer.trigger(availableNow=True) if asked.once else writer).start()


def command_line() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    parser.add_argument("--addr", default=os.environ.get("FILA_ADDR", "localhost:5555"))
    parser.add_argument("--queue", default="orders")
    parser.add_argument("--to", default="orders.enriched")
    parser.add_argument("--unread", default="orders.unread")
    parser.add_argument("--customers", required=True, help="Parquet: customer, segment")
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--once", action="store_true")
    parser.add_argument("--rows", type=int, default=10_000, help="most messages of a batch")
    parser.add_argument("--rate", type=int, default=0, help="most messages a second and task")
    parser.add_argument("--master", default="")
    return parser


def main() -> None:
    asked = command_line().parse_args()
    query = start(get_spark(asked.master, app="enrich"), asked)
    query.awaitTermination()
    for progress in query.recentProgress:
        if progress.observedMetrics:
            print(progress.batchId, progress.observedMetrics["orders"].asDict(), flush=True)


if __name__ == "__main__":
    main()
