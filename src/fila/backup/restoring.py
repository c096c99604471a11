"""From a place back into a directory, and whether what is there is sound.

A directory is restored under a mark that the broker refuses to open; the mark goes when every file
is there with its checksum. Checking a backup restores it beside, reads every row as
`fila-server --verify` does, and removes it.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from fila.backup import manifest
from fila.backup.manifest import BackupFile, Manifest
from fila.backup.places import Place, PlaceError
from fila.backup.taking import PIECE_BYTES
from fila.core import rows
from fila.security.keyring import Keyring
from fila.storage.contract import StoreError as StoreError
from fila.storage.rocks import RESTORING, RocksStore
from fila.storage.survey import Gap, pages
from fila.storage.verify import Report, verify

_LEFT_ALONE: Final = ("lost+found",)  # in the root of a file system

Progress = Callable[[str, int], None]


class Checked(NamedTuple):
    manifest: Manifest
    report: Report


def restore(
    place: Place, name: str, into: str, progress: Progress | None = None, look: bool = True
) -> Checked:
    """Copy a backup into an empty directory; `look`: read every row afterwards."""
    found = manifest.read(place, name)
    target = Path(into)
    _refuse_unless_empty(target)
    target.mkdir(parents=True, exist_ok=True, mode=0o700)
    mark = target / RESTORING
    mark.write_text(f"{found.name} of {place.address}\n")
    _fetch_all(place, found, target, progress)
    report = _look(into, progress) if look else Report({}, [], 0)
    if report.sound:
        mark.unlink()
        _sync(target)
    return Checked(found, report)


def check(
    place: Place, name: str, beside: str | None = None, progress: Progress | None = None
) -> Checked:
    """Whether a backup is whole and sound; needs as much room as it has, for a while."""
    with tempfile.TemporaryDirectory(prefix="fila-backup-", dir=beside) as directory:
        return restore(place, name, directory, progress)


def checked(store: RocksStore, progress: Progress | None = None) -> Report:
    """All that `fila-server --verify` looks at."""
    report = verify(store, progress)
    keys = [part for part in pages(store, rows.AUTH) if not isinstance(part, Gap)]
    for key, value in [row for part in keys for row in part]:
        try:
            Keyring([(key, value)])
        except Exception as error:
            report.findings.append(f"auth: row {key.hex()} does not parse: {error!r}")
    return report


def _look(directory: str, progress: Progress | None) -> Report:
    try:
        store = RocksStore(directory, to_read=True, restoring=True)
    except StoreError as error:
        return Report({}, [f"the store cannot be opened: {error}"], 0)
    try:
        return checked(store, progress)
    finally:
        store.close()


def _refuse_unless_empty(target: Path) -> None:
    if not target.exists():
        return
    if not target.is_dir():
        raise PlaceError(f"{target} is a file; name a directory to restore into")
    if (target / RESTORING).exists():
        raise PlaceError(
            f"{target} holds a restore that was not finished; remove what is in it, and restore "
            "again"
        )
    if any(one.name not in _LEFT_ALONE for one in target.iterdir()):
        raise PlaceError(f"{target} is not empty; name a new directory to restore into")


def _fetch_all(place: Place, found: Manifest, target: Path, progress: Progress | None) -> None:
    fetched = 0
    for file in found.files:
        _fetch(place, file, target / file.name)
        fetched += file.size
        if progress is not None:
            progress("bytes", fetched)
    _sync(target)


def _fetch(place: Place, file: BackupFile, target: Path) -> None:
    digest = hashlib.sha256()
    size = 0
    try:
        with place.reading(manifest.file_path(file.sha256)) as stream, _fresh(target) as copy:
            while piece := stream.read(PIECE_BYTES):
                digest.update(piece)
                size += len(piece)
                copy.write(piece)
            copy.flush()
            os.fsync(copy.fileno())
    except FileNotFoundError:
        raise PlaceError(
            f"the backup is not whole: {file.name} ({manifest.file_path(file.sha256)}) is missing "
            f"in {place.address}"
        ) from None
    if size != file.size or digest.hexdigest() != file.sha256:
        raise PlaceError(
            f"the backup is damaged: {file.name} ({manifest.file_path(file.sha256)}) in "
            f"{place.address} has another checksum than when it was made"
        )


def _fresh(target: Path) -> BinaryIO:
    return open(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "wb")


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
