"""What went wrong, most often first: failures grouped by what their texts have in common.

Owns the fingerprint: an error's text without what changes from message to message (ids, numbers,
addresses, quoted values), so that ten thousand failures of one kind are one row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as fn

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# In this order: the longer forms first, or their digits would be taken for plain numbers.
_VARYING: Final = (
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<id>"),
    (r"\b0x[0-9a-f]+\b", "<hex>"),
    (r"\b[0-9a-f]{12,}\b", "<hex>"),
    (r"\"[^\"]*\"|'[^']*'", "<text>"),
    (r"\b\d+(?:\.\d+)*\b", "<n>"),
    (r"\d+", "<n>"),
    (r"\s+", " "),
)


def errors(events: DataFrame) -> DataFrame:
    """One row per broker, queue and kind of failure, the most frequent first."""
    failures = events.where(fn.col("event").isin("nacked", "expired")).withColumn(
        "kind", fingerprint(fn.col("error"))
    )
    return (
        failures.groupBy("broker", "queue", "kind")
        .agg(
            fn.count("*").alias("failures"),
            fn.count_if(fn.col("event") == "expired").alias("expired"),
            fn.approx_count_distinct("message_id").alias("messages"),
            fn.count_distinct("fairness_key").alias("keys"),
            fn.mode("fairness_key", deterministic=True).alias("most_often"),
            fn.max("attempt").alias("attempts_max"),
            fn.min("ts").alias("first"),
            fn.max("ts").alias("last"),
            # Numbers begin again with every run: time goes before them.
            fn.max_by("error", fn.struct("ts", "epoch", "seq")).alias("latest"),
        )
        .select(fn.substring(fn.sha2("kind", 256), 1, 8).alias("fingerprint"), "*")
        .orderBy(fn.desc("failures"), "broker", "queue", "kind")
    )


def fingerprint(text: Column) -> Column:
    """The text with what varies replaced by its kind."""
    found = fn.lower(fn.trim(fn.coalesce(text, fn.lit(""))))
    for pattern, kind in _VARYING:
        found = fn.regexp_replace(found, pattern, kind)
    return fn.when(found == "", "(no text given)").otherwise(fn.substring(found, 1, 200))
