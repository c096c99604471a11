"""The last minutes, from the newest facts and the cells of the open window: no Spark, no JVM.

Owns what `fila pipeline watch` and the dashboard's pipeline page show. The job exports it after
each batch, so it is as new as the tables are. Columns at a time, whatever number of tenants.

Fairness here is an estimate: of what a queue handed out in ten seconds each key is due its weighted
part, as far as it had messages at both ends of them. A key without any event keeps what it had, so
one that is starved in silence is seen. `fila pipeline fairness` gives the verdict. Blame deals the
time a key waited for its turn out to the others, by what they were handed in the same ten seconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fila.spark.products.slo import DEFAULT, Objective
from fila.spark.tables.cells import WINDOW_US
from fila.spark.tables.commits import Commit, CommitLog, TablesError
from fila.spark.tables.histogram import EACH, TIMES, bucket_number
from fila.spark.tables.place import LocalPlace
from fila.spark.tables.schemas import FACTS

EXPORTED: Final = "_live.json"  # in each journal: its broker shows it
VERSION: Final = 1
WINDOWS: Final = 30  # of ten seconds
SHOWN: Final = 12  # rows of each table
_BLAMED: Final = 3  # for one key
_COLUMNS: Final = (
    "broker", "queue", "fairness_key", "window", "delivered", "dead_lettered", "wait_turn_us",
    "pending", "eligible", "weight", "histogram",
)  # fmt: skip
_TEXTS: Final = ("broker", "queue", "fairness_key")
_SCHEMA: Final = pa.schema(
    [
        (name, pa.string() if name in _TEXTS else pa.int64())
        for name in _COLUMNS
        if name != "histogram"
    ]
    + [("histogram", pa.map_(pa.int32(), pa.int64()))]
)
_READY: Final = TIMES.index("ready") * EACH


class Grid(NamedTuple):
    """One queue: a row for each key, a column for each of the windows."""

    broker: str
    queue: str
    keys: list[str]
    delivered: Any
    turn_us: Any
    eligible: Any  # at the end of the window, also where nothing happened
    weight: Any
    pending: Any
    dead_lettered: Any
    histograms: tuple[Any, Any, Any]  # of every bucket: its row, its code, its count


def live(
    tables: str,
    now_s: float,
    objectives: Sequence[Objective] = DEFAULT,
    windows: int = WINDOWS,
    shown: int = SHOWN,
) -> dict[str, Any]:
    """What there is to say of the last minutes that are in the tables."""
    place = LocalPlace(tables)
    commits = _recent(CommitLog(place), windows)
    if not commits:
        raise TablesError(
            f"no tables in {tables}: has `fila pipeline run --tables {tables}` been started?"
        )
    last = commits[0]
    reached_us = max((us for us, _ in last.reached.values()), default=0)
    newest = reached_us // WINDOW_US
    rows = _rows(place, commits, newest - windows)
    fairness: list[dict[str, Any]] = []
    slo: list[dict[str, Any]] = []
    blame: list[dict[str, Any]] = []
    queues: list[dict[str, Any]] = []
    for grid in _grids(rows, newest - windows + 1, windows):
        where = {"broker": grid.broker, "queue": grid.queue}
        queues.append(
            {
                **where,
                "keys": len(grid.keys),
                "delivered": int(grid.delivered.sum()),
                "pending": int(grid.pending[:, -1].sum()),
                "dead_lettered": int(grid.dead_lettered.sum()),
            }
        )
        fairness += [{**where, **one} for one in _fairness(grid, shown)]
        slo += [{**where, **one} for one in _slo(grid, objectives, shown)]
        blame += [{**where, **one} for one in _blame(grid, shown)]
    fairness.sort(key=lambda one: (-one["behind"], one["key"]))
    slo.sort(key=lambda one: (-one["burn_rate"], -one["deliveries"], one["key"]))
    blame.sort(key=lambda one: (-one["waited_s"], one["key"]))
    queues.sort(key=lambda one: -one["delivered"])
    return {
        "version": VERSION,
        "at_ms": round(now_s * 1_000),
        "reached_ms": reached_us // 1_000,
        "lag_s": round(max(0.0, now_s - reached_us / 1e6), 1),
        "minutes": windows * WINDOW_US / 60e6,
        "batch": last.batch,
        "queues": queues[:shown],
        "fairness": fairness[:shown],
        "slo": slo[:shown],
        "blame": blame[:shown],
    }


def export(tables: str, journals: Sequence[str], now_s: float) -> None:
    """Leave it where the brokers of these journals find it, in one step."""
    document = json.dumps(live(tables, now_s))
    for journal in journals:
        if "://" not in journal and Path(journal).is_dir():
            LocalPlace(journal).write(EXPORTED, document)


def _recent(log: CommitLog, windows: int) -> list[Commit]:
    """The newest batches, as far as they can have facts of these windows; the newest first."""
    found: list[Commit] = []
    for commit in log.newest():
        found.append(commit)
        newest_us = max((us for us, _ in commit.reached.values()), default=0)
        first_us = max((us for us, _ in found[0].reached.values()), default=0)
        # A window's facts come up to two windows after it.
        if newest_us < first_us - (windows + 2) * WINDOW_US:
            return found
    return found


def _rows(place: LocalPlace, commits: list[Commit], after: int) -> Any:
    """Facts and open cells from this window on, one before those shown: where keys stood."""
    first_us = after * WINDOW_US
    paths = [
        place.address(one.path)
        for commit in commits
        for one in commit.files
        if one.table == FACTS and one.last_us >= first_us
    ]
    folder = Path(place.address(f"{commits[0].state}/cells")) if commits[0].state else None
    paths += [str(path) for path in sorted(folder.glob("*.parquet"))] if folder else []
    found = []
    for path in paths:
        try:
            table = pq.ParquetFile(path).read(columns=list(_COLUMNS))
        except FileNotFoundError:
            continue  # a later batch has removed this state
        found.append(table.filter(pc.greater_equal(table["window"], after)).cast(_SCHEMA))
    return pa.concat_tables(found) if found else None


def _grids(rows: Any, first: int, windows: int) -> Iterator[Grid]:
    """The rows of each queue as grids. Rows of a run before the last one are of the same key."""
    if rows is None or not rows.num_rows:
        return
    rows = rows.filter(pc.not_equal(rows["fairness_key"], ""))
    pairs = rows.group_by(["broker", "queue"]).aggregate([]).to_pylist()
    for pair in sorted(pairs, key=lambda one: (one["broker"], one["queue"])):
        own = rows.filter(
            pc.and_(
                pc.equal(rows["broker"], pair["broker"]),
                pc.equal(rows["queue"], pair["queue"]),
            )
        )
        coded = own["fairness_key"].combine_chunks().dictionary_encode()
        keys = coded.dictionary.to_pylist()
        key = coded.indices.to_numpy(zero_copy_only=False)
        # Column 0 is the window before the first that is shown.
        at = np.clip(own["window"].to_numpy() - first + 1, 0, windows)
        shape = (len(keys), windows + 1)

        def summed(name: str) -> Any:
            made = np.zeros(shape)  # noqa: B023
            np.add.at(made, (key, at), _numbers(own[name]))  # noqa: B023
            return made[:, 1:]

        def lasting(name: str, begin: float) -> Any:
            made = np.full(shape, np.nan)  # noqa: B023
            values = _numbers(own[name], np.nan)  # noqa: B023
            there = ~np.isnan(values)
            made[key[there], at[there]] = values[there]  # noqa: B023
            return _filled(made, begin)

        yield Grid(
            pair["broker"], pair["queue"], keys, summed("delivered"), summed("wait_turn_us"),
            lasting("eligible", 0.0), lasting("weight", 1.0)[:, 1:], lasting("pending", 0.0),
            summed("dead_lettered"), _buckets(key, own["histogram"].combine_chunks()),
        )  # fmt: skip


def _numbers(column: Any, null: float = 0.0) -> Any:
    found = column.to_numpy().astype(float)
    return np.nan_to_num(found, nan=null) if null == 0.0 else found


def _filled(made: Any, begin: float) -> Any:
    """What was last said holds until something else is."""
    made[:, 0] = np.where(np.isnan(made[:, 0]), begin, made[:, 0])
    for at in range(1, made.shape[1]):
        made[:, at] = np.where(np.isnan(made[:, at]), made[:, at - 1], made[:, at])
    return made


def _buckets(key: Any, histograms: Any) -> tuple[Any, Any, Any]:
    lengths = np.diff(histograms.offsets.to_numpy())
    first, last = histograms.offsets[0].as_py(), histograms.offsets[-1].as_py()
    codes, counts = (part[first:last].to_numpy() for part in (histograms.keys, histograms.items))
    return np.repeat(key, lengths), codes, counts


def _fairness(grid: Grid, shown: int) -> list[dict[str, Any]]:
    """Keys by how far they are behind their fair share."""
    stood = np.minimum(grid.eligible[:, :-1], grid.eligible[:, 1:])  # at both ends of a window
    demand = grid.delivered + stood
    fair = np.stack(
        [
            fair_shares(grid.delivered[:, at].sum(), demand[:, at], grid.weight[:, at])
            for at in range(demand.shape[1])
        ],
        axis=1,
    ).sum(axis=1)
    got = grid.delivered.sum(axis=1)
    behind = fair - got
    order = np.lexsort((-got, -np.round(behind, 1)))[:shown]
    return [
        {
            "key": grid.keys[at],
            "weight": int(grid.weight[at, -1]),
            "delivered": int(got[at]),
            "fair": round(float(fair[at]), 1),
            "ratio": round(float(got[at] / fair[at]), 3) if fair[at] >= 1 else None,
            "behind": round(max(0.0, float(behind[at])), 1),
            "pending": int(grid.pending[at, -1]),
        }
        for at in order
        if got[at] or fair[at] >= 1
    ]


def fair_shares(total: float, demand: Any, weight: Any) -> Any:
    """`total` dealt out by weight, none getting more than its demand (weighted max-min)."""
    total = min(total, float(demand.sum()))
    weight = np.maximum(weight, 1.0)
    order = np.argsort(demand / weight, kind="stable")
    need, heavy = demand[order], weight[order]
    # Filled from the smallest: what is left when all before are satisfied, by what is left of them.
    left = total - np.concatenate(([0.0], np.cumsum(need)[:-1]))
    level = left / np.cumsum(heavy[::-1])[::-1]
    full = need <= level * heavy
    cut = int(np.argmin(full)) if not full.all() else len(need)
    shares = need.copy()
    if cut < len(need):
        shares[cut:] = level[cut] * heavy[cut:]
    found = np.empty_like(shares)
    found[order] = shares
    return found


def _slo(grid: Grid, objectives: Sequence[Objective], shown: int) -> list[dict[str, Any]]:
    """Keys by how fast they burn their error budgets: the same counts as `products.slo`."""
    deliveries = grid.delivered.sum(axis=1)
    which = _chosen(grid, objectives)
    limits = np.array([bucket_number(round(one.within_ms * 1_000)) for one in objectives])
    allowed = np.array([1 - one.target for one in objectives])
    judged = (which >= 0) & (deliveries > 0)
    row, codes, counts = grid.histograms
    late = (codes > _READY + limits[which[row]]) & (codes < _READY + EACH)
    slow = np.bincount(row[late], counts[late], len(grid.keys))
    burn = np.where(judged, slow / np.maximum(deliveries, 1) / allowed[which], -1.0)
    order = [at for at in np.lexsort((-deliveries, -burn))[:shown] if judged[at]]
    own = [objectives[at] for at in which]
    return [
        {
            "key": grid.keys[row],
            "deliveries": int(deliveries[row]),
            "slow": int(slow[row]),
            "target": own[row].target,
            "within_ms": own[row].within_ms,
            "burn_rate": round(burn[row], 3),
        }
        for row in order
    ]


def _chosen(grid: Grid, objectives: Sequence[Objective]) -> Any:
    """Of each key the place of its objective: the first that fits; -1: none."""
    found = np.full(len(grid.keys), -1)
    for at, one in enumerate(objectives):
        if fnmatchcase(grid.queue, _literal(one.queue)):
            open_ones = found < 0
            if one.key != "*":
                pattern = _literal(one.key)
                open_ones &= np.array([fnmatchcase(key, pattern) for key in grid.keys], bool)
            found[open_ones] = at
    return found


def _literal(pattern: str) -> str:
    return pattern.replace("[", "[[]").replace("?", "[?]")


def _blame(grid: Grid, shown: int) -> list[dict[str, Any]]:
    """Who was served while whom waited for a turn; a key's rows add up to its wait."""
    waited = grid.turn_us.sum(axis=1)
    found = []
    for row in np.argsort(-waited, kind="stable")[:shown]:
        if waited[row] < 1_000:
            break
        others = grid.delivered.copy()
        others[row] = 0.0
        total = others.sum(axis=0)
        parts = np.divide(grid.turn_us[row], total, out=np.zeros_like(total), where=total > 0)
        by = others @ parts
        named = [at for at in np.argsort(-by, kind="stable")[:_BLAMED] if by[at] > 0]
        found.append(
            {
                "key": grid.keys[row],
                "waited_s": round(float(waited[row]) / 1e6, 3),
                "messages": int(grid.delivered[row].sum()),
                "by": [{"key": grid.keys[at], "s": round(float(by[at]) / 1e6, 3)} for at in named],
            }
        )
    return found
