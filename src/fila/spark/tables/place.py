"""Where tables lie: a directory of this machine, or any file system Spark can write.

Owns moving, listing and the writing of small files in one step. A file that is written or moved
here appears whole or not at all, where the file system can promise that.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from fila.journal.files import sync
from fila.spark.tables.commits import TablesError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Stored(NamedTuple):
    path: str  # below the root
    size: int


class Place(Protocol):
    root: str

    def address(self, path: str) -> str:
        """As Spark names it."""

    def read(self, path: str) -> str | None: ...

    def write(self, path: str, text: str) -> None: ...

    def names(self, folder: str) -> list[str]: ...

    def files(self, folder: str) -> list[Stored]: ...

    def move(self, source: str, target: str) -> None: ...

    def remove(self, path: str) -> None: ...


class LocalPlace:
    def __init__(self, root: str | Path) -> None:
        self.root = str(Path(root).absolute())
        self._root = Path(self.root)

    def address(self, path: str) -> str:
        return str(self._root / path)

    def read(self, path: str) -> str | None:
        try:
            return (self._root / path).read_text("utf-8")
        except FileNotFoundError:
            return None

    def write(self, path: str, text: str) -> None:
        target = self._root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        hidden = target.with_name(f".{target.name}.{os.getpid()}")
        with hidden.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        hidden.replace(target)
        sync(target.parent)

    def names(self, folder: str) -> list[str]:
        try:
            return sorted(os.listdir(self._root / folder))
        except FileNotFoundError:
            return []

    def files(self, folder: str) -> list[Stored]:
        return [
            Stored(str(path.relative_to(self._root)), path.stat().st_size)
            for path in sorted((self._root / folder).rglob("*"))
            if path.is_file() and not path.name.startswith((".", "_"))
        ]

    def move(self, source: str, target: str) -> None:
        to = self._root / target
        if not to.parent.exists():
            to.parent.mkdir(parents=True)
        (self._root / source).replace(to)

    def remove(self, path: str) -> None:
        target = self._root / path
        if target.is_dir():
            shutil.rmtree(target, ignore_errors=True)
        else:
            target.unlink(missing_ok=True)


class RemotePlace:
    """A file system of Hadoop's: `s3a://`, `hdfs://`, … through the session's own driver."""

    def __init__(self, root: str, spark: SparkSession) -> None:
        self.root = root.rstrip("/")
        gateway: Any = spark.sparkContext._jvm
        self._path = gateway.org.apache.hadoop.fs.Path
        self._io = gateway.org.apache.commons.io.IOUtils
        conf = spark.sparkContext._jsc.hadoopConfiguration()
        self._system: Any = self._path(self.root).getFileSystem(conf)

    def address(self, path: str) -> str:
        return f"{self.root}/{path}"

    def read(self, path: str) -> str | None:
        place = self._path(self.address(path))
        if not self._system.exists(place):
            return None
        stream = self._system.open(place)
        try:
            return str(self._io.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def write(self, path: str, text: str) -> None:
        hidden = self._path(self.address(f"_staging/{path.replace('/', '-')}"))
        stream = self._system.create(hidden, True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()
        self._rename(hidden, self._path(self.address(path)))

    def names(self, folder: str) -> list[str]:
        place = self._path(self.address(folder))
        if not self._system.exists(place):
            return []
        return sorted(one.getPath().getName() for one in self._system.listStatus(place))

    def files(self, folder: str) -> list[Stored]:
        place = self._path(self.address(folder))
        if not self._system.exists(place):
            return []
        found = []
        above = len(self._path(self.root).toUri().getPath().rstrip("/")) + 1
        listed = self._system.listFiles(place, True)
        while listed.hasNext():
            one = listed.next()
            if not one.getPath().getName().startswith((".", "_")):
                path = one.getPath().toUri().getPath()[above:]
                found.append(Stored(str(path), int(one.getLen())))
        return sorted(found)

    def move(self, source: str, target: str) -> None:
        to = self._path(self.address(target))
        self._system.mkdirs(to.getParent())
        self._rename(self._path(self.address(source)), to)

    def remove(self, path: str) -> None:
        self._system.delete(self._path(self.address(path)), True)

    def _rename(self, source: Any, target: Any) -> None:
        self._system.delete(target, False)
        self._system.mkdirs(target.getParent())
        if not self._system.rename(source, target):
            raise OSError(f"{source} could not be renamed to {target}")


@contextmanager
def alone(root: str, name: str, refused: str = "") -> Iterator[None]:
    """One process of this machine at a time; others wait, or with `refused` are told so."""
    Path(root).mkdir(parents=True, exist_ok=True)
    with (Path(root) / name).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (fcntl.LOCK_NB if refused else 0))
        except BlockingIOError:
            raise TablesError(refused) from None
        yield


def place_of(root: str, spark: SparkSession | None = None) -> Place:
    if "://" not in root:
        return LocalPlace(root)
    if spark is None:
        raise ValueError(f"{root}: only a Spark session can look there")
    return RemotePlace(root, spark)
