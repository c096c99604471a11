"""The manifest of a backup: which files it consists of, under which names and with which checksums.

Owns its form and its place. What a backup consists of lies in `files/`, each file named after its
SHA-256, so that backups share what has not changed; `backups/<name>.json` is written last: a line
of JSON that describes it, one for each file, and a checksum of them. A backup without a manifest is
none, and a file that no manifest names belongs to nobody.
"""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from fila.backup.places import Place, PlaceError

FOLDER: Final = "backups"
FILES: Final = "files"
VERSION: Final = 1
LATEST: Final = "latest"  # the newest there is
_SUFFIX: Final = ".json"
_BYTES_MAX: Final = 256 * 1024 * 1024
_HEX: Final = frozenset("0123456789abcdef")


class BackupFile(NamedTuple):
    """A file of a backup; what is known of where it came from tells if it is the same again."""

    name: str
    size: int
    sha256: str
    inode: int
    changed_ns: int


class Manifest(NamedTuple):
    name: str
    at_ms: int  # what it holds is what the broker had acknowledged by then
    release: str  # of the Fila that made it
    new_bytes: int  # what was copied; the rest lay there
    files: tuple[BackupFile, ...]

    @property
    def size(self) -> int:
        return sum(one.size for one in self.files)


def name_at(wall_ms: int) -> str:
    """A backup's name: when it was begun. Later names are greater."""
    second = datetime.fromtimestamp(wall_ms // 1_000, UTC)
    return f"{second:%Y-%m-%dT%H-%M-%S}.{wall_ms % 1_000:03d}Z"


def path_of(name: str) -> str:
    return f"{FOLDER}/{name}{_SUFFIX}"


def file_path(sha256: str) -> str:
    return f"{FILES}/{sha256}"


def names(place: Place) -> list[str]:
    """The backups there are, the oldest first."""
    found = place.files(FOLDER)
    return sorted(one.removesuffix(_SUFFIX) for one in found if one.endswith(_SUFFIX))


def write(place: Place, manifest: Manifest) -> None:
    told: dict[str, Any] = {"version": VERSION, **manifest._asdict()}
    told["files"] = len(manifest.files)
    digest = hashlib.sha256()
    with place.writing(path_of(manifest.name)) as stream:
        for line in (told, *[list(one) for one in manifest.files]):
            text = json.dumps(line).encode() + b"\n"
            digest.update(text)
            stream.write(text)
        stream.write(json.dumps({"checksum": digest.hexdigest()}).encode() + b"\n")


def read(place: Place, name: str) -> Manifest:
    """A backup's manifest, or that of the latest."""
    if name == LATEST:
        known = names(place)
        if not known:
            raise PlaceError(f"there is no backup in {place.address}")
        name = known[-1]
    if "/" in name or name.startswith("."):
        raise PlaceError(f'"{name}" is no name of a backup')
    try:
        with place.reading(path_of(name)) as stream:
            text = stream.read(_BYTES_MAX)
    except FileNotFoundError:
        raise PlaceError(f'there is no backup "{name}" in {place.address}') from None
    try:
        return _read(text)
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise PlaceError(
            f'the manifest of backup "{name}" in {place.address} is damaged: {error}'
        ) from error


def _read(text: bytes) -> Manifest:
    """A line at a time: a large manifest does not hold a running broker up."""
    first, *lines = text.splitlines(keepends=True)
    told = json.loads(first)
    if told["version"] > VERSION:
        raise PlaceError(f"the backup was made by Fila {told['release']}, which is newer: upgrade")
    digest = hashlib.sha256(first)
    files = []
    for line in lines[:-1]:
        digest.update(line)
        one = BackupFile(*json.loads(line))
        if "/" in one.name or one.name.startswith(".") or not set(one.sha256) <= _HEX:
            raise ValueError(f'"{one.name}" is no file of a store')
        files.append(one)
    if len(files) != told["files"] or json.loads(lines[-1])["checksum"] != digest.hexdigest():
        raise ValueError("its checksum is wrong")
    return Manifest(told["name"], told["at_ms"], told["release"], told["new_bytes"], tuple(files))
