"""How the pipeline is doing, from the commit log and the journal: no Spark, no JVM."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from fila.spark.journal_source.frontier import behind
from fila.spark.journal_source.inventory import pieces
from fila.spark.journal_source.offsets import Position
from fila.spark.tables.commits import Commit, CommitLog, TablesError
from fila.spark.tables.place import LocalPlace


class BrokerStatus(NamedTuple):
    broker: str
    reached_ms: int  # time of the last event that is in the tables
    behind: int  # events of the journal that are not
    lag_s: float  # how old the last event is, while there are newer ones; else 0


class TableStatus(NamedTuple):
    table: str
    rows: int
    files: int
    size: int
    first_ms: int
    last_ms: int


class Status(NamedTuple):
    tables: str
    batch: int
    events: int
    batch_events: int
    batch_took_ms: int
    committed_ms: int
    brokers: list[BrokerStatus]
    stored: list[TableStatus]

    def document(self) -> dict[str, Any]:
        found = self._asdict()
        found["brokers"] = [one._asdict() for one in self.brokers]
        found["stored"] = [one._asdict() for one in self.stored]
        return found


def status(tables: str, journals: tuple[str, ...]) -> Status:
    """What the tables hold, and how far behind the journals they are."""
    contents = CommitLog(LocalPlace(tables)).contents()
    last = contents.last
    if last is None:
        raise TablesError(
            f"no tables in {tables}: has `fila pipeline run --tables {tables}` been started?"
        )
    stored = []
    for name in sorted({one.table for one in contents.files}):
        own = contents.of(name)
        stored.append(
            TableStatus(
                name,
                sum(one.rows for one in own),
                len(own),
                sum(one.size for one in own),
                min(one.first_us for one in own) // 1_000,
                max(one.last_us for one in own) // 1_000,
            )
        )
    return Status(
        tables,
        last.batch,
        contents.events,
        last.events,
        last.took_ms,
        last.at_ms,
        brokers(last, journals, time.time()),
        stored,
    )


def brokers(last: Commit, journals: tuple[str, ...], now_s: float) -> list[BrokerStatus]:
    """By broker how far the tables are behind."""
    position = position_of(last)
    found = pieces(journals)
    names = {broker for broker, _ in position.runs()} | {piece.broker for piece in found}
    told = []
    for broker in sorted(names):
        reached_us = max((us for run, (us, _) in last.reached.items()
                          if run.rpartition("/")[0] == broker), default=0)  # fmt: skip
        count = behind(position, [piece for piece in found if piece.broker == broker])
        lag_s = max(0.0, now_s - reached_us / 1e6) if count and reached_us else 0.0
        told.append(BrokerStatus(broker, reached_us // 1_000, count, round(lag_s, 3)))
    return told


def position_of(last: Commit) -> Position:
    """Where the stream stands, as far as its rows tell."""
    reached, done = {}, {}
    for run, (_, seq) in last.reached.items():
        broker, _, epoch = run.rpartition("/")
        reached[broker, int(epoch)] = seq
        done[broker] = int(epoch) - 1
    return Position(reached, done)
