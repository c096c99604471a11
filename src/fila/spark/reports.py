"""The reports for reading: each job's result with its text and charts.

Owns what is said about a result. The numbers are the jobs'.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as fn

from fila.spark import compact as compacting
from fila.spark import delays as delaying
from fila.spark import whatif as replaying
from fila.spark.charts import Bar, Panel, percentile_dots, share_over_time, stacked_bars
from fila.spark.errors import errors
from fila.spark.fairness import fairness, summary
from fila.spark.funnel import funnel
from fila.spark.gaps import Gap
from fila.spark.latency import PERCENTILES, latency
from fila.spark.page import figure
from fila.spark.report import Report, Table, table_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from fila.spark.replay import Changes

_STEPS_S: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1_800, 3_600, 14_400, 86_400)
_WINDOWS: Final = 60  # about as many as a picture can show
_PANELS: Final = 8
_BARS: Final = 20
_MEANING: Final = {
    "retry": "not ready yet (a retry's or an enqueue's delay)",
    "throttled": "a bucket of its own was short of tokens",
    "no_consumer": "no consumer had credit",
    "own": "behind older messages of the same key",
    "turn": "other keys had their turns",
    "paused": "its queue or its key was paused",
}
_PART_COLOURS: Final = {
    "retry": "orange", "throttled": "red", "no_consumer": "grey", "own": "sky", "turn": "blue",
    "paused": "purple",
}  # fmt: skip


def fitting_window_s(events: DataFrame) -> float:
    """A round window that cuts the record into some sixty pieces, none under a second."""
    row = events.agg(
        (fn.unix_micros(fn.max("ts")) - fn.unix_micros(fn.min("ts"))).alias("span")
    ).collect()[0]
    span_s = (row["span"] or 0) / 1e6
    return float(next((step for step in _STEPS_S if span_s / step <= _WINDOWS), _STEPS_S[-1]))


def fairness_report(
    events: DataFrame,
    window_s: float,
    quantum: int,
    start: Any = None,
    gaps: list[Gap] | None = None,
) -> Report:
    """`start` hides windows that were read only to know what keys held before it."""
    shares = fairness(events, window_s, quantum, gaps)
    if start is not None:
        shares = shares.where(fn.col("window_start") >= fn.lit(start))
    shares = shares.persist()
    short = table_of(summary(shares), "queues")
    rows = table_of(shares.orderBy("queue", "window_start", "fairness_key"), "shares")
    documents = rows.documents()
    failed = [row for row in documents if row["verdict"] == "FAIL"]
    judged = sum(one["judged"] for one in short.documents())
    report = Report("fairness", "Was it fair?", rows=rows, frame=shares, failed=bool(failed))
    report.said = [
        _verdict_said(len({(row["queue"], row["window_start"]) for row in failed}), judged),
        f"Windows of {window_s:g} s. In a window, all keys that had messages ready the whole time "
        f"must have been served alike: delivered/weight may differ by at most one visit, {quantum} "
        "(the spread). A key's fair share is its part by weight of what was delivered, no more "
        "than it had ready. Jain's index is 1 when everybody got the fair share, and 1/n when one "
        "of n got all.",
    ]
    marked = {(row["queue"], row["window_start"]) for row in documents if row["incomplete"]}
    if marked:
        report.said.append(
            f"{_count_of(len(marked), 'window')} not judged: a gap of the record touches them "
            "(shaded in the picture), or not every key's counts were known again."
        )
    report.tables = [short]
    if failed:
        worst = sorted(failed, key=lambda row: (-row["spread"], row["ratio"] or 0))[:10]
        columns = ["window_start", "queue", "fairness_key", "weight", "delivered", "fair_share",
                   "spread"]  # fmt: skip
        report.tables.append(
            Table("worst", columns, [[row[name] for name in columns] for row in worst],
                  "The widest windows, those who got least first:")
        )  # fmt: skip
    report.pictures = [_share_picture(queue, own) for queue, own in _by(documents, "queue").items()]
    return report


def delays_report(events: DataFrame, top: int, key: str) -> Report:
    slow = delaying.delays(events, top, key).persist()
    short = table_of(slow, "delays")
    meanwhile = _meanwhile(table_of(delaying.served_meanwhile(events, slow), "served").documents())
    report = Report("delays", "Why did tenants wait?", frame=slow, rows=short)
    for row in short.documents()[:3]:
        if row["mostly"] == "-":
            continue
        percent = 100 * row[f"{row['mostly']}_ms"] / row["wait_ms"]
        report.said.append(
            f"{row['fairness_key']} in {row['queue']} waited {_time(row['wait_mean_ms'])} on "
            f"average over {row['deliveries']:,} deliveries, {percent:.0f} % of it: "
            f"{_MEANING[row['mostly']]}."
        )
    report.said.append(
        "The broker measured the parts of each wait; they add up to it to the microsecond."
    )
    report.tables = [short, meanwhile]
    bars = [
        Bar(
            row["fairness_key"],
            [(part, row[f"{part}_ms"] / row["deliveries"]) for part in delaying.PARTS],
            _time(row["wait_mean_ms"]),
        )
        for row in short.documents()[:_BARS]
    ]
    if bars:
        key_of = {f"{part}: {_MEANING[part]}": _PART_COLOURS[part] for part in delaying.PARTS}
        picture = stacked_bars(bars, "mean wait per delivery, by cause", "ms")
        report.pictures = [figure(picture, "Mean wait of one delivery, by cause.", key_of)]
    return report


def _meanwhile(rows: list[dict[str, Any]]) -> Table:
    """One row per key that waited, the most served first."""
    by_key: dict[tuple[str, str], list[tuple[int, str]]] = defaultdict(list)
    for row in rows:
        by_key[row["queue"], row["fairness_key"]].append((row["served"], row["served_key"]))
    told: list[Sequence[Any]] = [
        (queue, key, ", ".join(f"{name} {count:,}" for count, name in sorted(served, reverse=True)))
        for (queue, key), served in sorted(by_key.items())
    ]
    columns = ["queue", "fairness_key", "served_meanwhile"]
    return Table("served_meanwhile", columns, told, "Who was served while they waited:")


def latency_report(events: DataFrame) -> Report:
    frame = latency(events).persist()
    rows = table_of(frame, "latency")
    said = [
        "wait: from being stored, or stored again, to being handed to a consumer. age: since the "
        "message was first enqueued, earlier attempts included. Milliseconds."
    ]
    report = Report("latency", "How long did messages wait?", said, [rows], frame=frame)
    dots = [
        (row["fairness_key"], {name: row[f"wait_{name}_ms"] for name in PERCENTILES})
        for row in rows.documents()[:_BARS]
    ]
    if dots:
        colours = dict(zip(PERCENTILES, ("sky", "blue", "orange", "red"), strict=True))
        picture = percentile_dots(dots, "percentiles of the wait per key")
        report.pictures = [figure(picture, "Wait per key, on a logarithmic scale.", colours)]
    return report


def funnel_report(events: DataFrame, by_key: bool) -> Report:
    frame = funnel(events, by_key).persist()
    said = [
        "Counted where a message came from: dead_lettered with the queue that gave it up, redriven "
        "with the dead-letter queue. Percentages are of deliveries; dead_percent of messages that "
        "were delivered a first time."
    ]
    return Report("funnel", "What became of them?", said, [table_of(frame, "funnel")], frame=frame)


def errors_report(events: DataFrame, top: int) -> Report:
    frame = errors(events).limit(top).persist()
    found = table_of(frame, "errors")
    said = ["Failures with the same text, but for ids, numbers and quoted values, are one kind."]
    if not found.rows:
        said = ["Nothing failed."]
    return Report("errors", "What went wrong?", said, [found], frame=frame)


def whatif_report(events: DataFrame, settings: DataFrame, changes: Changes, quantum: int) -> Report:
    waits = replaying.whatif(events, settings, changes, quantum).persist()
    checked = table_of(replaying.calibration(waits), "calibration",
                       "Calibration: the record replayed as it was.")  # fmt: skip
    documents = checked.documents()
    doubtful = [row["queue"] for row in documents if not row["trusted"]]
    report = Report("whatif", "What if?", tables=[checked], frame=waits)
    report.said = [
        "The broker's own scheduler over the recorded arrivals; every message is held as long as "
        f"it was. A replay is trusted when its mean waits are within {replaying.TOLERANCE:.0%} of "
        f"the record, or {replaying.TOLERANCE_MS:g} ms."
    ]
    if doubtful or not documents:
        report.failed = True
        names = ", ".join(doubtful) or "an empty record"
        report.said.append(
            f"Not compared: the replay of {names} does not give the recorded waits. Did the "
            "quantum change within the record (--recorded-quantum), was part of the journal lost, "
            "does a limit span several queues?"
        )
        return report
    report.tables.append(
        table_of(waits.orderBy("queue", "fairness_key", fn.desc("scenario")), "waits",
                 "Waits per key, as recorded, replayed, and with the changes:")
    )  # fmt: skip
    return report


def compact_report(spark: SparkSession, root: str, today: date) -> Report:
    frame = compacting.compact(spark, root, today)
    made = table_of(frame, "parts")
    said = [f"{_count_of(len(made.rows), 'part')} made of days before {today.isoformat()}."]
    return Report("compact", "Compaction", said, [made], frame=frame)


def _verdict_said(failed: int, judged: int) -> str:
    if failed:
        return f"FAIL: {failed} of {_count_of(judged, 'judged window')} broke the bound."
    if judged:
        return f"PASS: all {_count_of(judged, 'judged window')} kept the bound."
    return (
        "Nothing to judge: in no window did two keys have messages ready the whole time. Try "
        "a shorter --window, or a busier time."
    )


def _share_picture(queue: str, rows: list[dict[str, Any]]) -> str:
    times = sorted({row["window_start"] for row in rows})
    by_key = _by(rows, "fairness_key")
    # The busiest keys, and those furthest below their share.
    busiest = sorted(by_key, key=lambda key: -sum(row["delivered"] for row in by_key[key]))
    short = sorted(
        by_key, key=lambda key: sum(row["delivered"] - row["fair_share"] for row in by_key[key])
    )
    chosen = list(dict.fromkeys(busiest[: _PANELS // 2] + short[: _PANELS // 2] + busiest))[
        :_PANELS
    ]
    panels = []
    for key in chosen:
        got = {row["window_start"]: row for row in by_key[key]}
        panels.append(
            Panel(
                key,
                [float(got[time]["delivered"]) if time in got else 0.0 for time in times],
                [float(got[time]["fair_share"]) if time in got else 0.0 for time in times],
            )
        )
    title = f"queue {queue}: deliveries per window against the fair share"
    doubtful = {row["window_start"] for row in rows if row["incomplete"]}
    return figure(
        share_over_time(
            panels,
            [time[11:19] for time in times],
            title,
            [at for at, time in enumerate(times) if time in doubtful],
        ),
        f"Queue {queue}, deliveries per window. The line is what the key got, the area its fair "
        "share: a line below the area is a tenant who got too little. Keys whose line follows the "
        f"area were treated fairly, however busy the others were. Shown: {len(panels)} of "
        f"{_count_of(len(by_key), 'key')}.",
        {"delivered": "blue", "fair share": "grey"},
    )


def gaps_said(gaps: list[Gap]) -> list[str]:
    """What readers of any report have to know about them."""
    if not gaps:
        return []
    first, last = min(gap.start_us for gap in gaps), max(gap.end_us for gap in gaps)
    lost = sum(gap.lost for gap in gaps)
    return [
        f"{_count_of(lost, 'event')} missing from the record, in {_count_of(len(gaps), 'gap')} "
        f"between {_moment(first)} and {_moment(last)}: counts are short by that many."
    ]


def _moment(us: int) -> str:
    return datetime.fromtimestamp(us / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _time(ms: float) -> str:
    return f"{ms / 1000:,.1f} s" if ms >= 10_000 else f"{ms:,.1f} ms"


def _by(rows: list[dict[str, Any]], column: str) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        found[row[column]].append(row)
    return dict(found)


def _count_of(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
