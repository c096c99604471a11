"""A micro-batch of the journal into all tables, in one commit.

Owns the order of things: events are stored as they came, facts are made of the windows that are
over by then, what is still open waits as cells in the state for the next batch. Everything is a
pure function of the batch and of the state the commit before left, so a batch that is repeated
after a kill comes out the same, and a day that is processed again gives the same tables.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as fn

from fila.spark.products.anomalies import HABIT, remembered
from fila.spark.products.capacity import capacity
from fila.spark.products.slo import DEFAULT, Objective
from fila.spark.tables import products
from fila.spark.tables.cells import RUN, cells
from fila.spark.tables.commits import Commit, Contents, TableFile, TablesError
from fila.spark.tables.facts import ENDS_SCHEMA, carried, closing, facts, parted
from fila.spark.tables.schemas import (
    CAPACITY,
    EVENTS,
    FACTS,
    ORDER,
    TIME,
    carry_schema,
    cells_schema,
    habit_schema,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from fila.spark.tables.store import ParquetStore

CHECKPOINT: Final = "_checkpoint"
_STATES_KEPT: Final = 2


class TableJob:
    """What Spark calls for every micro-batch."""

    def __init__(
        self,
        store: ParquetStore,
        told: Callable[[Commit], None] = lambda commit: None,
        objectives: Sequence[Objective] = DEFAULT,
    ) -> None:
        self._store = store
        self._objectives = objectives
        self._told = told  # when a batch is committed
        self._last = store.log.last()
        self._query = ""

    def __call__(self, batch: DataFrame, number: int) -> None:
        if self._done(number):
            return
        began = time.monotonic()
        store, before = self._store, self._last
        store.begin(number, self._query)
        files = store.write(EVENTS, batch, number, TIME[EVENTS], ORDER[EVENTS])
        wrote = time.monotonic()
        events = store.read(EVENTS, files)
        open_cells, carry = self._state(before)
        found = cells(events, *([open_cells] if open_cells is not None else [])).persist()
        try:
            reached = {**(before.reached if before else {}), **_reached(found)}
            commit = Commit(number, self._query, list(files), _recent(reached))
            commit.events = sum(one.rows for one in files)
            ends = closing(reached)
            self._close(commit, found, carry, ends)
        finally:
            found.unpersist()
        self._products(commit, before, ends)
        commit.details["format"] = store.form
        commit.details["events_ms"] = round((wrote - began) * 1_000)
        commit.took_ms = round((time.monotonic() - began) * 1_000)
        commit.at_ms = round(time.time() * 1_000)
        store.log.add(commit)
        self._last = commit
        self._forget(before, commit)
        self._told(commit)

    def _close(
        self, commit: Commit, found: DataFrame, carry: DataFrame, ends: dict[str, int]
    ) -> None:
        """Facts of what is over, and the state for what is not."""
        store, number = self._store, commit.batch
        runs = [(*_run(name), window) for name, window in ends.items()]
        limits = store.frame(runs, ENDS_SCHEMA)
        over, still_open = parted(found, limits)
        made = facts(over, carry).persist()
        try:
            commit.files += self._write(FACTS, made, number)
            commit.files += self._write(CAPACITY, capacity(made, carry), number)
            commit.state = f"_state/b{number:010d}"
            store.write_state("cells", still_open.coalesce(1), number)
            store.write_state("carry", carried(made, carry, limits).coalesce(1), number)
        finally:
            made.unpersist()

    def _products(self, commit: Commit, before: Commit | None, ends: dict[str, int]) -> None:
        """Products of the periods that are over by now; what is done of them is in the commit."""
        store, number = self._store, commit.batch
        done = dict(before.details.get("products", {})) if before else {}
        path = before.details.get("habits", "") if before else ""
        spans = products.due(done, ends)
        files = [*store.contents().files, *commit.files] if spans else []
        bounds = products.bounds_us(spans, _first_us(files)) if spans else (0, 0)
        done |= {one.broker: one.stop for one in spans}
        if bounds[0] < bounds[1]:  # else all of it lies before the tables begin
            began = time.monotonic()
            facts, events = (
                store.read(table, Contents(files, None).of(table, *bounds))
                for table in (FACTS, EVENTS)
            )
            known = store.read_state(path, habit_schema()) if path else store.frame([], HABIT)
            made, after = products.made_of(facts, events, known, spans, self._objectives)
            for table, rows in made.items():
                commit.files += self._write(table, rows, number)
            path = store.write_state("habits", remembered(after).coalesce(1), number)
            commit.details["products_ms"] = round((time.monotonic() - began) * 1_000)
        commit.details |= {"products": done, "habits": path}

    def _write(self, table: str, rows: DataFrame, number: int) -> list[TableFile]:
        return self._store.write(table, rows, number, TIME[table], ORDER[table])

    def _forget(self, before: Commit | None, commit: Commit) -> None:
        """Remove the state that no commit needs: of older batches, but for habits that still
        hold."""
        old = f"_state/b{commit.batch - _STATES_KEPT:010d}"
        held = commit.details["habits"].rpartition("/")[0]
        left = before.details.get("habits", "").rpartition("/")[0] if before else ""
        for path in {old, left} - {held, ""}:
            if path <= old:
                self._store.place.remove(path)

    def _state(self, before: Commit | None) -> tuple[DataFrame | None, DataFrame]:
        store = self._store
        if before is None or not before.state:
            return None, store.frame([], carry_schema())
        return (
            store.read_state(f"{before.state}/cells", cells_schema()),
            store.read_state(f"{before.state}/carry", carry_schema()),
        )

    def _done(self, number: int) -> bool:
        """Whether the batch was committed before a kill; what cannot be is refused."""
        if not self._query:
            said: Any = json.loads(self._store.place.read(f"{CHECKPOINT}/metadata") or "{}")
            self._query = said.get("id", "")
        last = self._last
        if last is None:
            if number:
                raise TablesError(
                    f"{self._store.place.root}: the checkpoint is at batch {number}, but the "
                    "tables are empty: remove _checkpoint as well, and all is read again"
                )
            return False
        if last.query != self._query:
            raise TablesError(
                f"{self._store.place.root}: the tables were written with another checkpoint than "
                "the one in _checkpoint. They belong together: restore it, or begin in an empty "
                "folder"
            )
        if number > last.batch + 1:
            raise TablesError(
                f"{self._store.place.root}: batch {last.batch} is the last in the tables, but the "
                f"checkpoint goes on with {number}: restore what is missing from _commits, or "
                "begin in an empty folder"
            )
        return number <= last.batch


def _first_us(files: list[TableFile]) -> int:
    """When the tables begin."""
    return min((one.first_us for one in files if one.table == FACTS), default=0)


def _reached(found: DataFrame) -> dict[str, tuple[int, int]]:
    """By run the time and the number of its last event here."""
    rows = found.groupBy(*RUN).agg(fn.max("last_us"), fn.max("last_seq")).collect()
    return {f"{broker}/{epoch}": (last_us, seq) for broker, epoch, last_us, seq in rows}


def _recent(reached: dict[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
    """Of each broker its newest run alone: older ones are over."""
    newest: dict[str, int] = {}
    for name in reached:
        broker, epoch = _run(name)
        newest[broker] = max(epoch, newest.get(broker, 0))
    return {f"{broker}/{epoch}": reached[f"{broker}/{epoch}"] for broker, epoch in newest.items()}


def _run(name: str) -> tuple[str, int]:
    broker, _, epoch = name.rpartition("/")
    return broker, int(epoch)
