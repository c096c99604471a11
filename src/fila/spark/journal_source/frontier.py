"""How far a stream may read, and in which slices: pure arithmetic over pieces.

Owns the order of reading. Of one run events are read by their numbers without a hole; of one broker
run after run. So whoever folds a broker's events sees them in the order in which they happened,
whichever files they come from. A hole (a part that was uploaded late, or is gone) holds its broker
up, until the parts behind it have been there for `late_s`; then the hole is passed, and
`slices` tells of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from fila.spark.journal_source.inventory import Piece
from fila.spark.journal_source.offsets import Position, Run


class Slice(NamedTuple):
    """Events `first` to `last` of a run, in one file; without a path they are missing."""

    broker: str
    epoch: int
    first: int
    last: int
    path: str
    hot: bool

    @property
    def events(self) -> int:
        return self.last - self.first + 1 if self.path else 1


class Stretch(NamedTuple):
    """What may be read of a run: events after `after` up to `last`."""

    run: Run
    after: int
    last: int


def advance(
    position: Position, pieces: Iterable[Piece], limit: int | None, now_s: float, late_s: float
) -> Position:
    """The position after the next batch of at most `limit` events, shared evenly by brokers."""
    by_run = _by_run(pieces)
    open_stretches: dict[str, list[Stretch]] = {}
    for broker in {broker for broker, _ in by_run}:
        runs = sorted(run for run in by_run if run[0] == broker)
        found = _stretches(position, {run: by_run[run] for run in runs}, now_s, late_s)
        if found:
            open_stretches[broker] = found
    quotas = _shared(
        {
            broker: sum(one.last - one.after for one in found)
            for broker, found in open_stretches.items()
        },
        limit,
    )
    reached: dict[Run, int] = {}
    for broker, found in open_stretches.items():
        left = quotas[broker]
        for stretch in found:
            if left <= 0:
                break
            last = min(stretch.last, stretch.after + left)
            if last < stretch.last:
                last = _whole_pieces(by_run[stretch.run], stretch.after, last)
            reached[stretch.run] = last
            left = left - (last - stretch.after) if last == stretch.last else 0
    return position.advanced(reached)


def behind(position: Position, pieces: Iterable[Piece]) -> int:
    """How many events there are that were not read."""
    count = 0
    for run, own in _by_run(pieces).items():
        if position.over(run):
            continue
        reached = position.of(run) or 0
        for piece in own:
            if piece.last > reached:
                count += piece.last - max(reached, piece.first - 1)
                reached = piece.last
    return count


def slices(start: Position, end: Position, pieces: Iterable[Piece]) -> list[Slice]:
    """Where the events between two positions lie; what no file holds is a slice without a path."""
    by_run = _by_run(pieces)
    found: list[Slice] = []
    for run in end.runs():
        last = end.of(run) or 0
        after = start.of(run)
        begun = after is not None
        if start.over(run) or last <= (after or 0):
            continue
        made = _cover(run, by_run.get(run, []), (after or 0) + 1, last)
        if not begun and len(made) > 1 and not made[0].path:
            del made[0]  # older than what there was when the stream began
        found += made
    return found


def tasks(found: Sequence[Slice], task_events: int) -> list[list[Slice]]:
    """Slices of about that many events for one task each: large ones are cut, small ones joined."""
    made: list[list[Slice]] = []
    filled = task_events
    for one in found:
        for cut in _cuts(one, task_events):
            if filled + cut.events > task_events:
                made.append([])
                filled = 0
            made[-1].append(cut)
            filled += cut.events
    return made


def _by_run(pieces: Iterable[Piece]) -> dict[Run, list[Piece]]:
    """Pieces of each run in order; where several begin, the longest first, sealed before hot."""
    found: dict[Run, list[Piece]] = defaultdict(list)
    for piece in pieces:
        found[piece.run].append(piece)
    for own in found.values():
        own.sort(key=lambda one: (one.first, -one.last, one.hot))
    return found


def _stretches(
    position: Position, runs: dict[Run, list[Piece]], now_s: float, late_s: float
) -> list[Stretch]:
    """What may be read of one broker, in order: a run only when the one before is read."""
    found = []
    for run, own in runs.items():
        if position.over(run):
            continue
        after = position.of(run)
        last = _reachable(own, after, now_s, late_s)
        if last > (after or 0):
            found.append(Stretch(run, after or 0, last))
        if max(piece.last for piece in own) > last:
            break  # something is missing before what is there: wait for it
    return found


def _reachable(own: list[Piece], after: int | None, now_s: float, late_s: float) -> int:
    """The last event of a run that may be read."""
    reached = after or 0
    for at, piece in enumerate(own):
        if piece.first > reached + 1:
            settled = [one.changed_s for one in own[at:] if not one.hot]
            if not settled or now_s - min(settled) < late_s:
                return reached
        reached = max(reached, piece.last)
    return reached


def _shared(wanted: dict[str, int], limit: int | None) -> dict[str, int]:
    """So many events of each broker: evenly, and what one does not need goes to the others."""
    if limit is None:
        return wanted
    found = {}
    left = limit
    for at, (broker, want) in enumerate(sorted(wanted.items(), key=lambda one: one[1])):
        found[broker] = min(want, max(1, left // (len(wanted) - at)))
        left -= found[broker]
    return found


def _whole_pieces(own: list[Piece], after: int, last: int) -> int:
    """Rather the end of a sealed piece than its middle, if that costs less than half a batch."""
    ends = [one.last for one in own if not one.hot and one.last <= last]
    end = max(ends, default=0)
    return end if end - after >= (last - after) / 2 else last


def _cover(run: Run, own: list[Piece], first: int, last: int) -> list[Slice]:
    """The fewest slices, from the pieces that reach furthest."""
    found = []
    at = 0
    best: Piece | None = None
    while first <= last:
        while at < len(own) and own[at].first <= first:
            if best is None or own[at].last > best.last:
                best = own[at]
            at += 1
        if best is not None and best.last >= first:
            end = min(best.last, last)
            found.append(Slice(*run, first, end, best.path, best.hot))
        else:
            end = min(last, own[at].first - 1) if at < len(own) else last
            found.append(Slice(*run, first, end, "", False))
        first = end + 1
    return found


def _cuts(one: Slice, task_events: int) -> list[Slice]:
    if not one.path or one.events <= task_events * 3 // 2:
        return [one]
    count = round(one.events / task_events)
    bounds = [one.first + one.events * at // count for at in range(count + 1)]
    return [one._replace(first=first, last=stop - 1) for first, stop in pairwise(bounds)]
