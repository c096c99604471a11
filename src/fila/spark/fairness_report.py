"""The report on fairness for reading: its verdict in words, the keys that matter, pictures.

Owns what is said and shown about the verdict. The numbers are `fairness.py`'s; all of them stay in
Spark, and only what is shown comes here: a queue may have hundreds of thousands of keys.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as fn

from fila.spark.charts import Panel, share_over_time
from fila.spark.fairness import by_key, summary
from fila.spark.page import figure
from fila.spark.report import Report, count_of, table_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_STEPS: Final = 60  # about as many as a picture can show
_PANELS: Final = 8
_PICTURES: Final = 6
_WORST: Final = 10
_KEYS: Final = 1_000
_QUEUE: Final = ("broker", "queue")


def fairness_report(
    shares: DataFrame, window_s: float, quantum: int, start: Any = None, top: int = 20
) -> Report:
    """Of what `fairness` found. `start` hides windows that were read only to know what keys held
    before it."""
    if start is not None:
        shares = shares.where(fn.col("window_start") >= fn.lit(start))
    shares = shares.persist()
    queues = table_of(summary(shares), "queues")
    told = queues.documents()
    # Once, and enough for all that is shown of single keys.
    important = fn.col("delivered") + fn.greatest("short", fn.lit(0))
    keys = table_of(
        by_key(shares)
        .orderBy(fn.desc("failed"), fn.desc(important), *_QUEUE, "fairness_key")
        .limit(_KEYS),
        "keys",
        "Per key, those that failed or could be judged least first:",
    )
    report = Report("fairness", "Was it fair?", frame=shares)
    report.failed = any(one["failed"] for one in told)
    report.undecided = not report.failed and all(one["verdict"] == "-" for one in told)
    report.said = [
        _verdict_said(told),
        f"Windows of {window_s:g} s. In each, a key is held against the one that got most while "
        "both had messages ready, and against its own part by weight of what was handed out: it "
        f"may be behind by one visit, {quantum} per unit of weight, for each time it came and "
        "went. Jain's index is 1 when everybody got the fair share, and 1/n when one of n got all. "
        "All of it counts messages: whether a queue made with the cost `bytes` was fair, where "
        "keys share bytes, is not judged here.",
        *_judged_said(told),
    ]
    order = [keys.columns.index(name) for name in ("failed", "unjudged_s", "short")]
    worst_first = sorted(keys.rows, key=lambda row: tuple(-(row[at] or 0) for at in order))
    report.tables = [queues, keys._replace(rows=worst_first[:top])]
    if report.failed:
        excess = fn.col("behind") - fn.col("allowed")
        worst = (
            shares.where("verdict = 'FAIL'")
            .orderBy(fn.desc(excess), "window_start", *_QUEUE, "fairness_key")
            .limit(_WORST)
            .select("window_start", *_QUEUE, "fairness_key", "weight", "delivered", "fair_share",
                    "behind", "allowed")
        )  # fmt: skip
        report.tables.append(table_of(worst, "worst", "The widest windows:"))
    report.pictures = _pictures(shares, told, keys.documents(), window_s)
    return report


def _verdict_said(queues: list[dict[str, Any]]) -> str:
    judged = sum(one["judged"] for one in queues)
    failed = sum(one["failed"] for one in queues)
    if failed:
        return f"FAIL: {failed} of {count_of(judged, 'judged window')} broke the bound."
    if not judged:
        return (
            "Nothing to judge: in no window did two keys have enough messages ready to compare "
            "them. Try a busier time, or a longer --window."
        )
    if all(one["verdict"] == "-" for one in queues):
        return (
            f"Not judged: {count_of(judged, 'window')} kept the bound, but most of the time that "
            "keys had messages ready could not be judged."
        )
    return f"PASS: all {count_of(judged, 'judged window')} kept the bound."


def _judged_said(queues: list[dict[str, Any]]) -> list[str]:
    """For how much of the time there is a verdict, and why not for the rest."""
    judged, unjudged, gap = (
        sum(one[name] for one in queues) for name in ("judged_s", "unjudged_s", "gap_s")
    )
    if not unjudged:
        return []
    reasons = []
    if unjudged > gap:
        reasons.append(f"{unjudged - gap:,.1f} s because too little was handed out to tell")
    if gap:
        reasons.append(f"{gap:,.1f} s because a gap of the record touches them")
    percent = 100 * judged / (judged + unjudged)
    return [
        f"Judged: {percent:.1f} % of the time keys had messages ready beside others; not judged: "
        f"{' and '.join(reasons)}."
    ]


def _pictures(
    shares: DataFrame,
    queues: list[dict[str, Any]],
    keys: list[dict[str, Any]],
    window_s: float,
) -> list[str]:
    """For the busiest queues: the busiest keys, and those furthest below their share."""
    busiest = sorted(queues, key=lambda one: -one["delivered"])[:_PICTURES]
    chosen = _chosen({(one["broker"], one["queue"]) for one in busiest}, keys)
    if not chosen:
        return []
    columns = "broker string, queue string, fairness_key string, place int, keys_of_queue long"
    wanted = shares.sparkSession.createDataFrame(chosen, columns)
    first = min(datetime.fromisoformat(one["first"]) for one in queues)
    last = max(datetime.fromisoformat(one["last"]) for one in queues)
    windows = round((last - first).total_seconds() / window_s) + 1
    step_us = round(window_s * 1e6) * -(-windows // _STEPS)
    step = fn.floor(fn.unix_micros("window_start") / step_us) * step_us
    rows = (
        shares.join(fn.broadcast(wanted), [*_QUEUE, "fairness_key"])
        .groupBy(*_QUEUE, "fairness_key", "place", "keys_of_queue", step.alias("at"))
        .agg(
            fn.sum("delivered").alias("delivered"),
            fn.sum("fair_share").alias("fair_share"),
            fn.max(fn.col("unjudged") == "gap").alias("doubtful"),
        )
        .withColumn("at", fn.date_format(fn.timestamp_micros("at"), "HH:mm:ss"))
        .orderBy(*_QUEUE, "place", "at")
        .collect()
    )
    by_queue: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for row in rows:
        by_queue[row["broker"], row["queue"]].append(row)
    brokers = len({broker for broker, _ in by_queue})
    return [
        _picture(queue if brokers == 1 else f"{queue} of {broker}", own)
        for (broker, queue), own in by_queue.items()
    ]


def _chosen(
    queues: set[tuple[str, str]], keys: list[dict[str, Any]]
) -> list[tuple[str, str, str, int, int]]:
    """As many keys of each queue as a picture has panels: half the busiest, half the short ones."""
    by_queue: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in keys:
        if (row["broker"], row["queue"]) in queues:
            by_queue[row["broker"], row["queue"]].append(row)
    found = []
    for (broker, queue), own in by_queue.items():
        busiest = sorted(own, key=lambda row: -row["delivered"])
        shortest = sorted(own, key=lambda row: -row["short"])
        half = _PANELS // 2
        names = [row["fairness_key"] for row in busiest[:half] + shortest[:half] + busiest]
        for place, name in enumerate(list(dict.fromkeys(names))[:_PANELS]):
            found.append((broker, queue, name, place, own[0]["keys_of_queue"]))
    return found


def _picture(queue: str, rows: list[Any]) -> str:
    times = sorted({row["at"] for row in rows})
    by_name: dict[str, dict[str, Any]] = defaultdict(dict)
    for row in rows:
        by_name[row["fairness_key"]][row["at"]] = row
    panels = [
        Panel(
            name,
            [float(got[at]["delivered"]) if at in got else 0.0 for at in times],
            [float(got[at]["fair_share"]) if at in got else 0.0 for at in times],
        )
        for name, got in by_name.items()
    ]
    doubtful = {row["at"] for row in rows if row["doubtful"]}
    title = f"queue {queue}: deliveries against the fair share"
    return figure(
        share_over_time(
            panels, times, title, [number for number, at in enumerate(times) if at in doubtful]
        ),
        f"Queue {queue}, deliveries over time. The line is what the key got, the area its fair "
        "share: a line below the area is a tenant who got too little. Keys whose line follows the "
        f"area were treated fairly, however busy the others were. Shown: {len(panels)} of "
        f"{count_of(rows[0]['keys_of_queue'], 'key')}.",
        {"delivered": "blue", "fair share": "grey"},
    )
