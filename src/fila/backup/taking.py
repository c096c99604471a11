"""Copies an image into a place: what lies there already is not copied again.

Runs on a thread of its own, in pieces, no faster than it may. Owns which files are new, and which
go when old backups do.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from fila import __version__
from fila.backup import manifest
from fila.backup.manifest import BackupFile, Manifest
from fila.backup.places import Place
from fila.storage.image import ImageFile

PIECE_BYTES: Final = 1 << 20


class BackupError(Exception):
    """The broker stops, or the file changed under the copy."""


class Taking:
    """One backup on its way."""

    def __init__(
        self,
        place: Place,
        name: str,
        at_ms: int,
        files: list[ImageFile],
        bytes_per_second: int,
        wanted: Callable[[], bool],
    ) -> None:
        """`wanted`: whether to go on."""
        self._place = place
        self._name = name
        self.at_ms = at_ms
        self.files = files
        self._bytes_per_second = bytes_per_second
        self._wanted = wanted
        self.bytes_total = sum(one.size for one in files)
        self.bytes_done = 0
        self.new_bytes = 0

    def run(self) -> Manifest:
        """Copy what is not there, then write the manifest."""
        before = self._before()
        known = {one.sha256 for one in before}
        unchanged = {_likeness(one): one for one in before}
        done: list[BackupFile] = []
        for file in sorted(self.files):
            found = self._looked_at(file)
            same = unchanged.get(_likeness(found)) if file.lasts else None
            if same is not None and self._lies_there(same.sha256, same.size):
                self.bytes_done += same.size
                done.append(same)
                continue
            whole = found._replace(sha256=self._hash(file))
            if whole.sha256 not in known and not self._lies_there(whole.sha256, whole.size):
                self._copy(file, whole.sha256)
                self.new_bytes += whole.size
            known.add(whole.sha256)
            self.bytes_done += whole.size
            done.append(whole)
        made = Manifest(self._name, self.at_ms, __version__, self.new_bytes, tuple(done))
        manifest.write(self._place, made)
        return made

    def _before(self) -> list[BackupFile]:
        """The files of the latest backup that can be read."""
        for name in reversed(manifest.names(self._place)[-3:]):
            try:
                return list(manifest.read(self._place, name).files)
            except Exception:
                continue
        return []

    def _looked_at(self, file: ImageFile) -> BackupFile:
        status = file.path.stat()
        return BackupFile(file.path.name, file.size, "", status.st_ino, status.st_mtime_ns)

    def _lies_there(self, sha256: str, size: int) -> bool:
        return self._place.size(manifest.file_path(sha256)) == size

    def _hash(self, file: ImageFile) -> str:
        found = hashlib.sha256()
        for piece in self._pieces(file.path, file.size):
            found.update(piece)
        return found.hexdigest()

    def _copy(self, file: ImageFile, sha256: str) -> None:
        found = hashlib.sha256()
        with self._place.writing(manifest.file_path(sha256)) as stream:
            for piece in self._pieces(file.path, file.size):
                stream.write(piece)
                found.update(piece)
            if found.hexdigest() != sha256:
                raise BackupError(f"{file.path.name} reads differently each time: a bad disk?")

    def _pieces(self, path: Path, size: int) -> Iterator[bytes]:
        """So many bytes of a file, no faster than they may be read."""
        began_s = time.monotonic()
        read = 0
        with path.open("rb") as stream:
            while read < size:
                if not self._wanted():
                    raise BackupError("the broker stopped")
                piece = stream.read(min(PIECE_BYTES, size - read))
                if not piece:
                    raise BackupError(f"{path.name} became shorter")
                read += len(piece)
                yield piece
                if self._bytes_per_second:
                    ahead_s = read / self._bytes_per_second - (time.monotonic() - began_s)
                    if ahead_s > 0:
                        time.sleep(min(ahead_s, 1.0))


def retire(place: Place, keep: int) -> list[str]:
    """Remove all backups but the newest so many, and the files that none of those left has."""
    known = manifest.names(place)
    gone = known[:-keep] if keep else []
    for name in gone:
        place.remove(manifest.path_of(name))
    if gone:
        needed = {one.sha256 for name in known[-keep:] for one in manifest.read(place, name).files}
        for file in place.files(manifest.FILES):
            if file not in needed:
                place.remove(manifest.file_path(file))
    return gone


def _likeness(file: BackupFile) -> tuple[str, int, int, int]:
    return file.name, file.size, file.inode, file.changed_ns
