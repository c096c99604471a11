"""The tables' commit log: which files belong to them, and what each batch has brought them to.

Owns what is in the tables. A batch writes its files first and its commit last, in one small file;
what no commit names is not there. So a reader that goes by the log sees all of a batch, in every
table, or nothing of it, and a batch that is repeated after a kill begins by removing what its first
attempt left.

    _commits/batch-0000000017.json      of one micro-batch: files added, the position reached
    _commits/change-<time>-<what>.json  of maintenance: files added and removed
    _commits/upto-0000000017.json       everything up to a batch in one file; older ones go then
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from fila.spark.tables.place import Place

FOLDER: Final = "_commits"
VERSION: Final = 2  # 2: facts tell who was in the ring
_BATCH: Final = "batch-"
_CHANGE: Final = "change-"
_UPTO: Final = "upto-"


class TablesError(Exception):
    """The tables cannot be used so; the message says what to do."""


class TableFile(NamedTuple):
    """A file of a table: its path below the root, how much it holds, and of when."""

    table: str
    path: str
    rows: int
    size: int
    first_us: int = 0  # of its rows' times; 0: not known
    last_us: int = 0


@dataclass
class Commit:
    """A batch that is done."""

    batch: int
    query: str = ""  # which Spark query: its batches are numbered by its checkpoint
    files: list[TableFile] = field(default_factory=list)
    # By run the last event: its time in us, its number. Of each broker the newest run alone.
    reached: dict[str, tuple[int, int]] = field(default_factory=dict)
    events: int = 0
    state: str = ""  # where what later batches need lies
    at_ms: int = 0  # when it was committed
    took_ms: int = 0
    details: dict[str, Any] = field(default_factory=dict)


@dataclass
class Contents:
    """The tables as the log says."""

    files: list[TableFile]
    last: Commit | None
    events: int = 0  # of all batches

    def of(self, table: str, start_us: int = 0, end_us: int = 1 << 62) -> list[TableFile]:
        """The files of a table that can hold rows with start <= time < end."""
        return [
            one
            for one in self.files
            if one.table == table
            and (not one.last_us or (one.last_us >= start_us and one.first_us < end_us))
        ]


class CommitLog:
    def __init__(self, place: Place) -> None:
        self._place = place

    def last(self) -> Commit | None:
        """The newest batch."""
        names = [name for name in self._place.names(FOLDER) if name.startswith(_BATCH)]
        return self._commit(max(names)) if names else None

    def newest(self) -> Iterator[Commit]:
        """Batches from the newest back, as far as the log has them one by one."""
        names = [name for name in self._place.names(FOLDER) if name.startswith(_BATCH)]
        for name in sorted(names, reverse=True):
            try:
                yield self._commit(name)
            except _Moved:
                return  # the log was tidied up meanwhile

    def add(self, commit: Commit) -> None:
        name = f"{_BATCH}{commit.batch:010d}.json"
        self._place.write(f"{FOLDER}/{name}", json.dumps({"version": VERSION, **asdict(commit)}))

    def change(
        self, at_ms: int, what: str, added: Iterable[TableFile], removed: Iterable[str]
    ) -> None:
        """Files in place of others, or files that are too old."""
        document = {"version": VERSION, "files": list(added), "removed": sorted(removed)}
        self._place.write(f"{FOLDER}/{_CHANGE}{at_ms:013d}-{what}.json", json.dumps(document))

    def removed(self, before_ms: int) -> set[str]:
        """Files that maintenance has taken out of the tables before a time, as far back as the log
        has its changes one by one."""
        found: set[str] = set()
        for name in self._place.names(FOLDER):
            if name.startswith(_CHANGE) and _at_ms(name) < before_ms:
                found |= set(self._document(name)["removed"])
        return found

    def contents(self) -> Contents:
        """What belongs to the tables. Looks again if the log was tidied up meanwhile."""
        while True:
            try:
                return self._contents(self._place.names(FOLDER))
            except _Moved:
                continue

    def tidy(self, before_ms: int) -> int:
        """Put what is older into one file; how many went. One maintenance at a time."""
        names = self._place.names(FOLDER)
        batches = [name for name in names if name.startswith(_BATCH)]
        upto = max((name for name in names if name.startswith(_UPTO)), default="")
        old = []
        for name in batches:
            if self._commit(name).at_ms >= before_ms:
                break
            old.append(name)
        old += [name for name in names if name.startswith(_CHANGE) and _at_ms(name) < before_ms]
        if len(old) < 2:
            return 0
        found = self._contents([*([upto] if upto else []), *old])
        if found.last is None:
            return 0
        document = {
            "version": VERSION,
            "files": found.files,
            "events": found.events,
            "last": asdict(found.last),
        }
        target = f"{_UPTO}{found.last.batch:010d}.json"
        self._place.write(f"{FOLDER}/{target}", json.dumps(document))
        # The newest batch stays: it is where the next one goes on. Changes go in their order: one
        # that is read without those after it would bring back what they have removed.
        gone = [name for name in old if name != batches[-1]]
        gone += [upto] if upto and upto != target else []
        for name in gone:
            self._place.remove(f"{FOLDER}/{name}")
        return len(gone)

    def _contents(self, names: list[str]) -> Contents:
        upto = max((name for name in names if name.startswith(_UPTO)), default="")
        files: dict[str, TableFile] = {}
        events = 0
        last: Commit | None = None
        if upto:
            whole = self._document(upto)
            files = {one[1]: TableFile(*one) for one in whole["files"]}
            events = whole["events"]
            last = _commit_of(whole["last"])
        for name in (name for name in names if name.startswith(_BATCH)):
            if last is not None and int(name[len(_BATCH) : -len(".json")]) <= last.batch:
                continue
            last = self._commit(name)
            events += last.events
            files |= {one.path: one for one in last.files}
        for name in (name for name in names if name.startswith(_CHANGE)):
            change = self._document(name)
            files |= {one[1]: TableFile(*one) for one in change["files"]}
            for path in change["removed"]:
                files.pop(path, None)
        return Contents(sorted(files.values()), last, events)

    def _commit(self, name: str) -> Commit:
        return _commit_of(self._document(name))

    def _document(self, name: str) -> dict[str, Any]:
        text = self._place.read(f"{FOLDER}/{name}")
        if text is None:
            raise _Moved
        found: dict[str, Any] = json.loads(text)
        if found["version"] > VERSION:
            raise TablesError(
                f"the tables in {self._place.root} were written by a newer Fila "
                f"(version {found['version']}, this one knows {VERSION}): use that one"
            )
        if found["version"] < VERSION:
            raise TablesError(
                f"the tables in {self._place.root} were written by an older Fila, and their facts "
                "lack what reports ask for: begin in an empty folder (`fila pipeline run --tables "
                "…`), and the journal is read again"
            )
        return found


def _at_ms(name: str) -> int:
    return int(name[len(_CHANGE) :].partition("-")[0])


class _Moved(Exception):  # noqa: N818
    """The log was tidied up while it was read."""


def _commit_of(document: dict[str, Any]) -> Commit:
    known = {name: value for name, value in document.items() if name != "version"}
    known["files"] = [TableFile(*one) for one in known["files"]]
    known["reached"] = {run: (us, seq) for run, (us, seq) in known["reached"].items()}
    return Commit(**known)
