"""An image: the files of a running store as they were at one moment, linked beside it.

What a crash at that moment would leave, which is what a store is made to be opened from. RocksDB's
own checkpoint writes its memtables out first, and holds the interpreter while the disk syncs; an
image writes nothing. It is taken in two steps: table files, which never change, are linked on any
thread; then, on the thread that writes to the store, the logs are linked and their lengths noted.
If the list of table files has changed between the two, the first is done again. Of a file that
grows, the length that was noted counts.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from fila.storage.contract import StoreError

IMAGE: Final = "image"  # the directory, in that of the store
_CURRENT: Final = "CURRENT"
_BESIDE: Final = ("OPTIONS-", "rocksdict-config.json")  # small files that are written whole


class ImageFile(NamedTuple):
    """A file of an image, of which the first `size` bytes count."""

    path: Path
    size: int

    @property
    def lasts(self) -> bool:
        """Whether it never changes: later images that have it have the same."""
        return self.path.suffix == ".sst"


class Image:
    def __init__(self, store: Path, live_tables: Callable[[], list[str]]) -> None:
        """`live_tables`: names of the table files the store consists of now."""
        self.directory = store / IMAGE
        self._store = store
        self._live_tables = live_tables
        self._tables: list[str] = []
        self._list = ("", 0)  # the file that lists the tables, and its length
        remove_image(store)
        try:
            self.directory.mkdir(parents=True)
        except OSError as error:
            raise _impossible(self.directory, error) from error

    def link_tables(self) -> None:
        """On any thread; again, if `finish` says so."""
        self._list = self._listed()
        self._tables = self._live_tables()
        for name in self._tables:
            try:
                self._link(name)
            except FileNotFoundError:
                return  # compacted away meanwhile: the list has changed

    def finish(self) -> list[ImageFile] | None:
        """On the thread that writes. None: table files came or went, link them again."""
        name, size = self._list
        if self._listed() != self._list:
            return None
        there = [one for one in self._tables if (self.directory / one).exists()]
        if len(there) < len(self._tables):
            return None
        found = [self._file(one) for one in there]
        try:
            for entry in os.scandir(self._store):
                if entry.name.endswith(".log") or _stands_beside(entry.name):
                    try:
                        self._link(entry.name)
                    except FileNotFoundError:
                        continue  # its rows are in table files
                    found.append(self._file(entry.name))
            self._link(name)
        except FileNotFoundError:
            return None
        if self._listed() != self._list:
            return None
        current = self.directory / _CURRENT
        current.write_text(f"{name}\n")
        found.append(self._file(_CURRENT))
        found.append(ImageFile(self.directory / name, size))
        return found

    def _listed(self) -> tuple[str, int]:
        """The file with the list of table files, and its length: it grows with every change."""
        name = (self._store / _CURRENT).read_text().strip()
        try:
            return name, (self._store / name).stat().st_size
        except FileNotFoundError:
            return "", 0  # replaced this moment

    def _link(self, name: str) -> None:
        try:
            os.link(self._store / name, self.directory / name)
        except FileExistsError:
            pass
        except FileNotFoundError:
            raise
        except OSError as error:
            raise _impossible(self.directory, error) from error

    def _file(self, name: str) -> ImageFile:
        path = self.directory / name
        return ImageFile(path, path.stat().st_size)


def _stands_beside(name: str) -> bool:
    return name.startswith(_BESIDE) and not name.endswith(".dbtmp")


def remove_image(store: Path) -> None:
    """Remove what an earlier image left, as when the broker died over it."""
    shutil.rmtree(store / IMAGE, ignore_errors=True)


def _impossible(directory: Path, error: OSError) -> StoreError:
    return StoreError(
        f"cannot link the store's files into {directory}: {os.strerror(error.errno or 0)}; the "
        "data directory's file system must allow hard links"
    )
