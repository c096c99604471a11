"""Where backups lie: a directory, or an object store that pyarrow knows (`s3://…`).

Owns how files are put there: whole, under their own name, or not at all. A directory gets hidden
files that are renamed; an object appears when its upload ends.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol

from fila.distribution import install

HIDDEN: Final = ".tmp"  # how the name ends of a file that is not whole


class PlaceError(Exception):
    """The place cannot be used so; the message says what to do."""


class Place(Protocol):
    address: str

    def size(self, path: str) -> int | None:
        """Of a file; None if it is not there."""

    def files(self, folder: str) -> list[str]:
        """Names of the files in a folder, in no order."""

    def reading(self, path: str) -> Any:
        """A context manager: a stream to read a file from; FileNotFoundError."""

    def writing(self, path: str) -> Any:
        """A context manager: a stream for a file that is there when the block ends, and not if it
        fails."""

    def remove(self, path: str) -> None: ...


def place_of(address: str) -> Place:
    """By its address: a path, or `s3://bucket/prefix`."""
    if "://" not in address:
        return _Directory(address)
    try:
        return _ObjectStore(address)
    except ImportError as error:
        raise PlaceError(
            f"{address}: {error.name} is missing; object stores need {install('journal')}"
        ) from error
    except Exception as error:
        raise PlaceError(f"{address} is no address of an object store: {error}") from error


class _Directory:
    def __init__(self, address: str) -> None:
        self.address = address
        self._root = Path(address)

    def size(self, path: str) -> int | None:
        try:
            return (self._root / path).stat().st_size
        except FileNotFoundError:
            return None

    def files(self, folder: str) -> list[str]:
        try:
            with os.scandir(self._root / folder) as found:
                return [one.name for one in found if not one.name.endswith(HIDDEN)]
        except FileNotFoundError:
            return []

    @contextmanager
    def reading(self, path: str) -> Iterator[BinaryIO]:
        with (self._root / path).open("rb") as stream:
            yield stream

    @contextmanager
    def writing(self, path: str) -> Iterator[BinaryIO]:
        target = self._root / path
        # Keys and payloads are in it as they are: nobody else reads them.
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        hidden = target.with_name(f"{target.name}{HIDDEN}")
        try:
            with open(
                os.open(hidden, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "wb"
            ) as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
        except BaseException:
            hidden.unlink(missing_ok=True)
            raise
        hidden.replace(target)
        _sync(target.parent)

    def remove(self, path: str) -> None:
        (self._root / path).unlink(missing_ok=True)


class _ObjectStore:
    def __init__(self, address: str) -> None:
        from fila.journal.places import ShippedPlace

        self.address = address
        self._place = ShippedPlace(address)

    def size(self, path: str) -> int | None:
        return self._place.size(path)

    def files(self, folder: str) -> list[str]:
        return [one.rpartition("/")[2] for one in self._place.files_beside(folder)]

    def reading(self, path: str) -> Any:
        return self._place.reading(path)

    def writing(self, path: str) -> Any:
        return self._place.whole(path)

    def remove(self, path: str) -> None:
        self._place.remove(path)


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
