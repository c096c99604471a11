"""`fila-server --verify`, `--salvage`, `--set-clock-back`: for data that no broker uses.

All only read the directory. Exit codes: 0 sound, 1 the command could not be carried out, 3 damage
was found (verify) or something could not be copied (salvage).
"""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from fila.backup.restoring import checked
from fila.core.reader import WHAT_TO_DO
from fila.storage.clock_back import set_back
from fila.storage.contract import StoreDamagedError, StoreError
from fila.storage.rocks import CLOSED_AT, RocksStore, repair
from fila.storage.salvage import salvage
from fila.storage.verify import Report
from fila.text import shown

DAMAGED: Final = 3
_TELL_S: Final = 2.0  # between two lines of progress


def run_verify(data_dir: str, as_json: bool) -> int:
    """Check every row and say what is wrong."""
    try:
        store, log_fault = _open_to_read(data_dir)
    except StoreDamagedError as error:  # not even its list of files
        report, log_fault = Report({}, [], 0), str(error).removesuffix(f". {WHAT_TO_DO}")
    else:
        report = _checked(store)
        store.close()
    findings = [log_fault, *report.findings] if log_fault else report.findings
    if as_json:
        print(json.dumps({"sound": not findings, "rows": report.rows, "findings": findings}))
        return DAMAGED if findings else 0
    _print_rows(report.rows)
    for finding in findings:
        print(f"damaged: {shown(finding)}")
    if report.more:
        print(f"damaged: and {report.more} more")
    if findings:
        print(f"{data_dir} is damaged; `fila-server --salvage DIR` copies what can be read")
        return DAMAGED
    print(f"{data_dir} is sound")
    return 0


def run_salvage(data_dir: str, into: str, as_json: bool) -> int:
    """Copy what can be read into a new directory, and check that one."""
    _refuse_unless_new(into)
    with _repaired(data_dir, into) as (damaged, fault):
        fresh = RocksStore(into)
        found = salvage(damaged, fresh, _progress("copied"))
    report = _checked(fresh)
    fresh.close()
    losses = [fault, *found.losses] if fault else found.losses
    if as_json:
        answer = {"rows": found.rows, "losses": losses, "sound": report.sound}
        print(json.dumps(answer | ({"findings": report.findings} if report.findings else {})))
    else:
        _print_rows(found.rows)
        for loss in losses:
            print(f"not copied: {shown(loss)}")
        for finding in report.findings:
            print(f"still wrong in {into}: {shown(finding)}")
        if report.sound:
            print(f"{into} is sound; start the broker with --data-dir {into}")
    return DAMAGED if losses or not report.sound else 0


def run_set_clock_back(data_dir: str, into: str, wall_ns: int) -> int:
    """Copy a store whose clock was once ahead, with its times set back to the real ones."""
    _refuse_unless_new(into)
    store, fault = _open_to_read(data_dir)
    if fault:
        raise StoreError(f"{data_dir}: {fault}; salvage it first")
    fresh = RocksStore(into)
    by_ns = set_back(store, fresh, wall_ns, _progress("copied"))
    store.close()
    report = _checked(fresh)
    fresh.close()
    for finding in report.findings:
        print(f"wrong in {into}: {shown(finding)}")
    print(f"times were set back by {by_ns / 1e9:,.0f} s; start the broker with --data-dir {into}")
    return 0 if report.sound else DAMAGED


def _refuse_unless_new(into: str) -> None:
    target = Path(into)
    if target.exists() and any(target.iterdir()):
        raise StoreError(f"{into} is not empty; name a new directory to copy into")


@contextlib.contextmanager
def _repaired(data_dir: str, into: str) -> Iterator[tuple[RocksStore, str]]:
    """The store to copy from, and what is wrong with it as a whole. If its list of files cannot be
    read, RocksDB makes a new one, in a copy beside the new directory."""
    try:
        store, fault = _open_to_read(data_dir)
        beside = None
    except StoreDamagedError as error:
        beside = Path(into + ".repair")
        ignored = shutil.ignore_patterns("journal", "LOCK", CLOSED_AT)
        shutil.copytree(data_dir, beside, ignore=ignored)
        repair(beside)
        store = RocksStore(beside)  # its empty families are made anew, too
        fault = f"the list of files was made anew ({error.__cause__})"
    try:
        yield store, fault
    finally:
        store.close()
        if beside is not None:
            shutil.rmtree(beside)


def _open_to_read(data_dir: str) -> tuple[RocksStore, str]:
    """The store, and what is wrong with its log: then it is read up to there."""
    if not (Path(data_dir) / "CURRENT").exists():
        raise StoreError(f"{data_dir} holds no Fila store; name it with --data-dir or --config")
    try:
        return RocksStore(data_dir, to_read=True), ""
    except StoreDamagedError as error:
        store = RocksStore(data_dir, to_read=True, rescue=True)
        return store, f"write-ahead log: what follows a damaged record is lost ({error.__cause__})"


def _checked(store: RocksStore) -> Report:
    return checked(store, _progress("checked"))


def _progress(what: str) -> Callable[[str, int], None]:
    """A line on stderr every two seconds: a large store takes minutes."""
    told = time.monotonic()

    def tell(family: str, count: int) -> None:
        nonlocal told
        now = time.monotonic()
        if now - told >= _TELL_S:
            told = now
            print(f"{what} {count:,} rows of {family} …", file=sys.stderr, flush=True)

    return tell


def _print_rows(counts: dict[str, int]) -> None:
    for family, count in counts.items():
        if count:
            print(f"{family:12} {count:>12,} rows")
