"""Where a shipped journal lies: a directory, or an object store that pyarrow knows (`s3://…`).

Owns how files are put there. An object appears whole when its upload ends, under its own name:
nothing is ever renamed in an object store. A directory gets hidden files that are renamed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from pyarrow import fs

from fila.journal.files import sync

_S3: Final = ("s3", "s3a", "s3n")  # the latter are Hadoop's names


def filesystem(address: str) -> tuple[Any, str]:
    """The file system of an address, and the path in it."""
    if "://" not in address:
        return fs.LocalFileSystem(), address
    scheme, _, path = address.partition("://")
    if scheme not in _S3:
        return fs.FileSystem.from_uri(address)  # type: ignore[no-any-return]
    named = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
    return _s3(named), path


@cache
def _s3(endpoint: str) -> Any:
    """S3 as the environment has it, at another endpoint if one is named there."""
    if not endpoint:
        return fs.S3FileSystem()
    place = urlsplit(endpoint)
    return fs.S3FileSystem(endpoint_override=place.netloc, scheme=place.scheme)


class ShippedPlace:
    """Files below one address."""

    def __init__(self, address: str) -> None:
        self.address = address.rstrip("/")
        self._system, self._root = filesystem(self.address)
        self._local = "://" not in address

    def read(self, path: str) -> str | None:
        try:
            with self.reading(path) as stream:
                return str(stream.read().decode())
        except FileNotFoundError:
            return None

    def reading(self, path: str) -> Any:
        """A context manager: a stream to read a file from; FileNotFoundError."""
        return self._system.open_input_stream(self._path(path))

    def write(self, path: str, text: str) -> None:
        with self.whole(path) as stream:
            stream.write(text.encode())

    @contextmanager
    def whole(self, path: str) -> Iterator[Any]:
        """A stream for a file that is there when the block ends, and not if it fails."""
        target = self._path(path)
        if not self._local:
            stream = self._system.open_output_stream(target)
            try:
                yield stream
            except BaseException:
                stream.close()  # which ends the upload, as forgetting the stream would
                self.remove(path)
                raise
            stream.close()
            return
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        hidden = Path(target).with_name(f".{Path(target).name}.{os.getpid()}.tmp")
        with self._system.open_output_stream(str(hidden)) as stream:
            yield stream
        sync(hidden)
        hidden.replace(target)
        sync(hidden.parent)

    def files(self, folder: str) -> dict[str, int]:
        """By path the sizes of the files in a folder and below."""
        selector = fs.FileSelector(self._path(folder), allow_not_found=True, recursive=True)
        above = len(self._root.rstrip("/")) + 1
        return {
            one.path[above:]: int(one.size)
            for one in self._system.get_file_info(selector)
            if one.is_file
        }

    def files_beside(self, folder: str) -> list[str]:
        """The files in a folder itself: a store is not listed below it."""
        selector = fs.FileSelector(self._path(folder), allow_not_found=True)
        above = len(self._root.rstrip("/")) + 1
        return [one.path[above:] for one in self._system.get_file_info(selector) if one.is_file]

    def size(self, path: str) -> int | None:
        info = self._system.get_file_info(self._path(path))
        return int(info.size) if info.is_file else None

    def remove(self, path: str) -> None:
        try:
            self._system.delete_file(self._path(path))
        except FileNotFoundError:
            pass

    def _path(self, path: str) -> str:
        return f"{self._root.rstrip('/')}/{path}"
