"""Where a stream of the journal stands, as arithmetic.

Owns the form of the offset: for each broker the last number read of each of its runs (epochs), and
`done`, the newest epoch that is read to its end and forgotten, so that an offset does not grow with
every restart of a broker:

    {"fila-1": {"done": 0, "1790000000000": 48213}, "fila-2": {...}}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fila.spark.journal_source.options import JournalSourceError

EPOCHS_MAX: Final = 32  # of one broker in an offset; older ones that are read are `done`
_DONE: Final = "done"

Run = tuple[str, int]  # broker and epoch: one run of one broker


class Position:
    """How far each run was read. Never changed; `advanced` makes another one."""

    def __init__(self, reached: Mapping[Run, int], done: Mapping[str, int] | None = None) -> None:
        self._reached = dict(reached)
        self._done = {broker: epoch for broker, epoch in (done or {}).items() if epoch}

    def of(self, run: Run) -> int | None:
        """The last number read; None if nothing was."""
        return self._reached.get(run)

    def over(self, run: Run) -> bool:
        """Whether the run was read to its end long ago: what else turns up of it is not read."""
        broker, epoch = run
        return epoch <= self._done.get(broker, 0)

    def runs(self) -> Iterator[Run]:
        return iter(sorted(self._reached))

    def advanced(self, reached: Mapping[Run, int]) -> Position:
        """The position after these; of a broker with many runs the oldest are done."""
        both = {**self._reached, **reached}
        done = dict(self._done)
        by_broker: dict[str, list[int]] = {}
        for broker, epoch in both:
            by_broker.setdefault(broker, []).append(epoch)
        for broker, epochs in by_broker.items():
            for epoch in sorted(epochs)[:-EPOCHS_MAX]:
                del both[broker, epoch]
                done[broker] = max(epoch, done.get(broker, 0))
        return Position(both, done)

    def as_json(self) -> dict[str, Any]:
        """Sorted: Spark compares offsets as text."""
        found: dict[str, Any] = {}
        for broker in sorted({broker for broker, _ in self._reached} | set(self._done)):
            runs = {_DONE: self._done.get(broker, 0)}
            for (name, epoch), seq in sorted(self._reached.items()):
                if name == broker:
                    runs[str(epoch)] = seq
            found[broker] = runs
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Position) and self.as_json() == other.as_json()

    def __hash__(self) -> int:
        return hash(str(self.as_json()))

    def __repr__(self) -> str:
        return f"Position({self.as_json()})"


NOTHING: Final = Position({})


def from_json(value: Mapping[str, Any]) -> Position:
    try:
        reached, done = {}, {}
        for broker, runs in value.items():
            for epoch, seq in runs.items():
                if epoch == _DONE:
                    done[broker] = int(seq)
                else:
                    reached[broker, int(epoch)] = int(seq)
    except (AttributeError, TypeError, ValueError):
        raise JournalSourceError(
            f"the checkpoint holds {value!r}, which is no offset of a journal's stream; "
            "give this query a checkpoint of its own"
        ) from None
    return Position(reached, done)
