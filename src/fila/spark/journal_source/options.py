"""Every option of `format("fila-journal")`: its type, default and meaning, checked in one place."""

from __future__ import annotations

import json
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Final, NamedTuple

EARLIEST: Final = "earliest"
LATEST: Final = "latest"
# What Spark itself puts among the options.
_OF_SPARK: Final = frozenset(("checkpointlocation", "queryname"))


class JournalSourceError(Exception):
    """What was asked of `format("fila-journal")` cannot be done; the message says what to do."""


class Option(NamedTuple):
    name: str
    default: Any
    meaning: str
    lowest: float = 0
    highest: float = float("inf")


OPTIONS: Final = (
    Option("paths", "",
           "more journals than the one of `load(…)`, separated by commas: one for each node"),
    Option("startingOffsets", EARLIEST,
           "where a stream without a checkpoint begins: earliest, latest, or an offset as JSON"),
    Option("maxEventsPerBatch", 1_000_000, "most events of a micro-batch (Spark 4.2 and newer)", 1),
    Option("eventsPerTask", 131_072, "about so many events are read by one task", 1),
    Option("hotTail", True, "read what is not sealed yet, too: seconds instead of minutes late"),
    Option("lateFileSeconds", 600.0,
           "how long to wait for a part that is missing before later ones; then what it held is "
           "told by a journal_gap row", 0, 7 * 86_400),
)  # fmt: skip
_BY_LOWER: Final = {one.name.lower(): one for one in OPTIONS}


class Options(NamedTuple):
    """Checked values, safe to be pickled."""

    roots: tuple[str, ...]
    starting: str
    events_max: int
    task_events: int
    hot_tail: bool
    late_s: float


def parse(given: Mapping[str, str]) -> Options:
    """The values; JournalSourceError says what is wrong with them."""
    values = {one.name: one.default for one in OPTIONS}
    given = {name.lower(): value for name, value in given.items()}
    path = given.pop("path", "")
    for name, text in given.items():
        if name in _OF_SPARK:
            continue
        option = _BY_LOWER.get(name)
        if option is None:
            near = get_close_matches(name, _BY_LOWER, 1)
            known = ", ".join(one.name for one in OPTIONS)
            hint = f"did you mean {_BY_LOWER[near[0]].name}?" if near else f"known: {known}"
            raise JournalSourceError(
                f'option {name} is not known to format("fila-journal"); {hint}'
            )
        values[option.name] = _value(option, text)
    roots = [one.strip() for one in (path, *values["paths"].split(",")) if one.strip()]
    if not roots:
        raise JournalSourceError('which journal? Say .load("data/journal")')
    _check_start(values["startingOffsets"])
    return Options(tuple(dict.fromkeys(roots)), *(values[one.name] for one in OPTIONS[1:]))


def _value(option: Option, text: str) -> Any:
    kind = type(option.default)
    if kind is str:
        return text
    if kind is bool:
        if text.lower() not in ("true", "false"):
            raise JournalSourceError(f"option {option.name}: {text!r} is neither true nor false")
        return text.lower() == "true"
    try:
        number = kind(text)
    except ValueError:
        what = "a whole number" if kind is int else "a number of seconds"
        raise JournalSourceError(f"option {option.name}: {text!r} is not {what}") from None
    if not option.lowest <= number <= option.highest:
        bounds = f"at least {option.lowest:g}"
        if option.highest != float("inf"):
            bounds = f"from {option.lowest:g} to {option.highest:g}"
        raise JournalSourceError(f"option {option.name}: {text} is out of bounds; use {bounds}")
    return number


def _check_start(text: str) -> None:
    if text in (EARLIEST, LATEST):
        return
    try:
        if isinstance(json.loads(text), dict):
            return
    except ValueError:
        pass
    raise JournalSourceError(
        f"option startingOffsets: {text!r} is neither earliest nor latest nor an offset as JSON"
    )
