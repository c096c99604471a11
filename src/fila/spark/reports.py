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
from fila.spark.charts import Bar, percentile_dots, stacked_bars
from fila.spark.errors import errors
from fila.spark.gaps import Gap
from fila.spark.latency import PERCENTILES
from fila.spark.page import figure
from fila.spark.report import Report, Table, count_of, table_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from fila.spark.replay import Changes

_BARS: Final = 20
_ROWS: Final = 1_000
_MEANING: Final = {
    "retry": "not ready yet (a retry's or an enqueue's delay)",
    "throttled": "a bucket of its own was short of tokens",
    "no_consumer": "no consumer was connected, or all were held",
    "own": "behind older messages of the same key",
    "turn": "other keys had their turns",
    "paused": "its queue or its key was paused",
    "capped": "as many of its key as may be were in flight",
    "busy_own": "consumers were busy with its own key's messages",
    "busy_others": "consumers were busy with other keys' messages",
}
_PART_COLOURS: Final = {
    "retry": "orange", "throttled": "red", "no_consumer": "grey", "own": "sky", "turn": "blue",
    "paused": "purple", "busy_own": "green", "busy_others": "yellow", "capped": "brown",
}  # fmt: skip


def delays_report(events: DataFrame, top: int, key: str, cells: DataFrame | None = None) -> Report:
    """Waits from `cells` where there are any; who was served meanwhile, events alone can tell."""
    slow = (
        delaying.delays(events, top, key)
        if cells is None
        else delaying.delays_of_cells(cells, top, key)
    ).persist()
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
            _label(row, short),
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
    by_key: dict[tuple[str, str, str], list[tuple[int, str]]] = defaultdict(list)
    for row in rows:
        place = (row["broker"], row["queue"], row["fairness_key"])
        by_key[place].append((row["served"], row["served_key"]))
    told: list[Sequence[Any]] = [
        (*place, ", ".join(f"{name} {count:,}" for count, name in sorted(served, reverse=True)))
        for place, served in sorted(by_key.items())
    ]
    columns = ["broker", "queue", "fairness_key", "served_meanwhile"]
    return Table("served_meanwhile", columns, told, "Who was served while they waited for a turn:")


def latency_report(found: DataFrame, exact: bool = True) -> Report:
    """Of `latency`, or of what cells tell."""
    frame = found.persist()
    rows, cut = _shown(frame, "latency")
    if not exact:
        cut = ["Percentiles are of the tables' histograms: within 1.6 %.", *cut]
    said = [
        "wait: from being stored, or stored again, to being handed to a consumer. age: since the "
        "message was first enqueued, earlier attempts included. Milliseconds.",
        *cut,
    ]
    report = Report("latency", "How long did messages wait?", said, [rows], frame=frame)
    dots = [
        (_label(row, rows), {name: row[f"wait_{name}_ms"] for name in PERCENTILES})
        for row in rows.documents()[:_BARS]
    ]
    if dots:
        colours = dict(zip(PERCENTILES, ("sky", "blue", "orange", "red"), strict=True))
        picture = percentile_dots(dots, "percentiles of the wait per key")
        report.pictures = [figure(picture, "Wait per key, on a logarithmic scale.", colours)]
    return report


def funnel_report(found: DataFrame) -> Report:
    frame = found.persist()
    rows, cut = _shown(frame, "funnel")
    said = [
        "Counted where a message came from: dead_lettered with the queue that gave it up, redriven "
        "with the dead-letter queue. Percentages are of deliveries; dead_percent of messages that "
        "were delivered a first time.",
        *cut,
    ]
    return Report("funnel", "What became of them?", said, [rows], frame=frame)


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
    doubtful = [f"{row['queue']} of {row['broker']}" for row in documents if not row["trusted"]]
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
    ordered = waits.orderBy("broker", "queue", "fairness_key", fn.desc("scenario"))
    found, cut = _shown(ordered, "waits")
    said = "Waits per key, as recorded, replayed, and with the changes:"
    report.tables.append(found._replace(said=said))
    report.said += cut
    return report


def compact_report(spark: SparkSession, root: str, today: date, grace_s: float) -> Report:
    frame = compacting.compact(spark, root, today, grace_s=grace_s)
    made = table_of(frame, "parts")
    said = [f"{count_of(len(made.rows), 'part')} made of days before {today.isoformat()}."]
    return Report("compact", "Compaction", said, [made], frame=frame)


def gaps_said(gaps: list[Gap]) -> list[str]:
    """What readers of any report have to know about them."""
    if not gaps:
        return []
    first, last = min(gap.start_us for gap in gaps), max(gap.end_us for gap in gaps)
    lost = sum(gap.lost for gap in gaps)
    return [
        f"{count_of(lost, 'event')} missing from the record, in {count_of(len(gaps), 'gap')} "
        f"between {_moment(first)} and {_moment(last)}: counts are short by that many."
    ]


def _shown(frame: DataFrame, name: str) -> tuple[Table, list[str]]:
    """The first rows, and a word if there are more: what a reader can read, and a driver hold."""
    found = table_of(frame.limit(_ROWS + 1), name)
    if len(found.rows) <= _ROWS:
        return found, []
    said = f"The first {_ROWS:,} of {frame.count():,} rows; --output parquet:PATH has them all."
    return found._replace(rows=found.rows[:_ROWS]), [said]


def _label(row: dict[str, Any], table: Table) -> str:
    """The key, with its broker where there are several."""
    at = table.columns.index("broker")
    several = len({one[at] for one in table.rows}) > 1
    return f"{row['fairness_key']} ({row['broker']})" if several else row["fairness_key"]


def _moment(us: int) -> str:
    return datetime.fromtimestamp(us / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _time(ms: float) -> str:
    return f"{ms / 1000:,.1f} s" if ms >= 10_000 else f"{ms:,.1f} ms"
