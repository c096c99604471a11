"""A finished report: what was found, in words, tables and pictures.

Owns the shape that every output format starts from, and the forms made for programs.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Table(NamedTuple):
    """Rows under a name; `said` introduces them to a reader."""

    name: str
    columns: list[str]
    rows: list[Sequence[Any]]
    said: str = ""

    def documents(self) -> list[dict[str, Any]]:
        return [
            {name: _plain(value) for name, value in zip(self.columns, row, strict=True)}
            for row in self.rows
        ]


@dataclass
class Report:
    """`tables[0]` is the answer in short; `rows` is everything, for programs."""

    name: str
    heading: str
    said: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    pictures: list[str] = field(default_factory=list)  # HTML: a figure each
    rows: Table | None = None
    frame: DataFrame | None = None  # the same rows, where Spark has them
    failed: bool = False
    undecided: bool = False  # it should have a verdict, and there was not enough to go by

    @property
    def answer(self) -> Table:
        return self.rows or self.tables[0]


def table_of(frame: DataFrame, name: str, said: str = "") -> Table:
    """Collect a result into a table."""
    return Table(name, frame.columns, [tuple(row) for row in frame.collect()], said)


def as_document(report: Report) -> dict[str, Any]:
    found: dict[str, Any] = {
        "report": report.name,
        "failed": report.failed,
        "undecided": report.undecided,
        "said": report.said,
    }
    for one in report.tables:
        found[one.name] = one.documents()
    if report.rows is not None:
        found[report.rows.name] = report.rows.documents()
    return found


def as_csv(report: Report) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(report.answer.columns)
    for row in report.answer.rows:
        writer.writerow(["" if value is None else _plain(value) for value in row])
    return text.getvalue()


def count_of(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def cell(value: Any) -> str | int | float:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return value
    return str(_plain(value))


def _plain(value: Any) -> Any:
    """Times as text, in UTC: sessions of ours run in it."""
    if isinstance(value, datetime):
        known = value.astimezone(UTC) if value.tzinfo else value.astimezone().astimezone(UTC)
        return known.strftime("%Y-%m-%dT%H:%M:%S.%f").rstrip("0").rstrip(".") + "Z"
    return value
