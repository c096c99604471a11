"""The store on RocksDB: the only module that imports rocksdict.

Small footprint by default: one block cache for all families, two small write buffers each for the
busy ones. Deletions are compacted away when they cluster, so that a drained backlog gives its disk
space back; reads do not depend on that (see core/lane.py).

Damage is never silent. Every block has a checksum that reads verify, and every scan asks its
iterator how it ended: RocksDB's iterators stop at a damaged block as if nothing came after it. A
damaged record in the middle of the write-ahead log refuses to open instead of dropping what follows
(an incomplete one at its end is the usual mark of a lost machine and is dropped). A store that was
closed properly notes its last sequence number, so that a log which lost its end is noticed as well.
A damaged table file is left out of compactions from then on (`damaged_files.py`).
"""

from __future__ import annotations

import contextlib
import os
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from rocksdict import (
    AccessType,
    BlockBasedIndexType,
    BlockBasedOptions,
    Cache,
    DBCompressionType,
    DBRecoveryMode,
    Options,
    Rdict,
    RdictIter,
    ReadOptions,
    WriteBatch,
    WriteOptions,
)

from fila.core import rows
from fila.core.reader import WHAT_TO_DO
from fila.core.row_batch import DELETE, DELETE_RANGE, FAMILY_MASK, RowBatch
from fila.storage.contract import StoreDamagedError, StoreError
from fila.storage.damaged_files import DamagedFiles
from fila.storage.format import check_format
from fila.storage.image import Image

MiB = 1 << 20
_BROWSED = (rows.MESSAGES, rows.LEASES, rows.STATE)
CLOSED_AT: Final = "CLOSED_AT"  # the file with the last sequence number, while the store is closed
RESTORING: Final = "RESTORING"  # a file that is there while a backup is put back
_CHECKSUMS: Final = re.compile(r": stored\S*( \S+)? = \d+, computed = \d+, type = \d+ ?")
_TAKEN: Final = re.compile(r"While lock file|lock hold by current process", re.IGNORECASE)
_PAGE_ROWS: Final = 4_096  # read at once when a file is looked at again
_PAGE_BYTES: Final = 4 * MiB
_KEYS_BUFFER_BYTES = 16 * MiB  # with a MiB, a bulk writer's keys are spread over many small files


class RocksSettings(NamedTuple):
    block_cache_bytes: int = 16 * MiB
    write_buffer_bytes: int = 64 * MiB
    write_buffers: int = 2
    wal_bytes_max: int = 192 * MiB  # what a restart after a crash has to read again
    max_open_files: int = 512
    background_jobs: int = 2


class RocksStore:
    """`to_read`: change nothing, not even on opening. `rescue`: with it, read what there is before
    a damaged record of the log. `restoring`: although a backup is being put back there."""

    def __init__(
        self,
        path: str | Path,
        settings: RocksSettings | None = None,
        to_read: bool = False,
        rescue: bool = False,
        restoring: bool = False,
    ) -> None:
        self.path = str(path)
        # Where it may not be looked, opening the store says so.
        if not restoring and os.path.exists(os.path.join(self.path, RESTORING)):
            raise StoreError(
                f"{self.path} holds a backup that was not restored to its end, or is not sound; "
                "empty the directory and restore again"
            )
        self._closed_at = Path(self.path) / CLOSED_AT
        settings = settings or RocksSettings()
        cache = Cache(settings.block_cache_bytes)
        self._damaged_files = DamagedFiles(Path(self.path))
        compacts = not self._damaged_files.names
        families = {
            name: _family_options(name, settings, cache, compacts) for name in rows.FAMILIES
        }
        options = _db_options(settings, cache, compacts)
        access = AccessType.read_write()
        if rescue:
            options.set_wal_recovery_mode(DBRecoveryMode.point_in_time())
        if to_read:
            access = AccessType.read_only(False)
        try:
            if not to_read:
                Path(self.path).mkdir(parents=True, exist_ok=True)
            self._db = Rdict(self.path, options, column_families=families, access_type=access)
        except Exception as error:
            raise _open_fault(self.path, error) from error
        self._families = [
            self._db if name == "default" else self._db.get_column_family(name)
            for name in rows.FAMILIES
        ]
        self._handles = [self._db.get_column_family_handle(name) for name in rows.FAMILIES]
        self._write_options = WriteOptions()
        self._failed = ""
        self._to_read = to_read
        try:
            if not rescue:
                self._check_end()
            if not to_read:
                check_format(self)
                self._closed_at.unlink(missing_ok=True)  # from now on the end is not known
                self._look_again()
        except StoreError:
            self._close()
            raise

    def get(self, family: int, key: bytes) -> bytes | None:
        try:
            value: bytes | None = self._families[family].get(key)
        except Exception as error:
            raise self._damaged(family, key, error) from error
        return value

    def get_many(self, family: int, keys: list[bytes]) -> list[bytes | None]:
        try:
            values: list[bytes | None] = self._families[family].get(keys)  # type: ignore[assignment,arg-type]
        except Exception as error:
            raise self._damaged(family, keys[0], error) from error
        return values

    def scan(
        self, family: int, start: bytes, end: bytes, rows_max: int, bytes_max: int
    ) -> list[tuple[bytes, bytes]]:
        options = ReadOptions()
        options.set_iterate_upper_bound(end)
        found = self._families[family].iter(options)
        try:
            return _rows(found, start, end, rows_max, bytes_max)
        except Exception as error:
            raise self._damaged(family, start, error) from error

    def write(self, batches: list[RowBatch]) -> None:
        if self._failed:
            raise StoreError(self._failed)
        batch = WriteBatch(raw_mode=True)
        put, delete = batch.put, batch.delete
        handles = self._handles
        for one in batches:
            for code, key, value in one.ops:
                if code < DELETE:
                    put(key, value, handles[code])
                elif code < DELETE_RANGE:
                    delete(key, handles[code & FAMILY_MASK])
                else:
                    batch.delete_range(key, value, handles[code & FAMILY_MASK])
        try:
            self._db.write(batch, self._write_options)
        except Exception as error:
            self._failed = f"cannot write to the store in {self.path}: {error}"
            if "Corruption" in str(error) and self._damaged_files.add(str(error)):
                raise StoreDamagedError(
                    _plain(str(error)),
                    where=f"the store in {self.path} is damaged, and a compaction met it: ",
                    advice=f"The next start leaves the file alone. {WHAT_TO_DO}",
                ) from error
            raise StoreError(self._failed) from error

    def warnings(self) -> list[str]:
        """What an operator should know, a sentence each."""
        if not self._damaged_files.names:
            return []
        names = ", ".join(sorted(self._damaged_files.names))
        return [
            f"the store is damaged: {names} cannot be read in full, so automatic compaction is off "
            "and the store grows; stop the broker when you can, and copy what can be read with "
            "`fila-server --salvage DIR`"
        ]

    def snapshot(self) -> RocksSnapshot:
        # Made one after the other with no write between: one moment.
        iterators = {number: self._families[number].iter() for number in _BROWSED}
        return RocksSnapshot(self._damaged, iterators)

    def image(self) -> Image:
        """Of this store's files, to be copied while it is in use. Drop it by `remove_image`."""
        live = self._db.live_files
        return Image(
            Path(self.path), lambda: [str(one["name"]).rpartition("/")[2] for one in live()]
        )

    def sync(self) -> None:
        try:
            self._db.flush_wal(True)
        except Exception as error:
            self._failed = f"cannot sync the store in {self.path}: {error}"
            raise StoreError(self._failed) from error

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._db.flush_wal(True)
            if not self._to_read and not self._failed:
                self._closed_at.write_bytes(_end_mark(self._db.latest_sequence_number()))
        self._close()

    def _close(self) -> None:
        for family in self._families:
            if family is not self._db:
                family.close()
        self._db.close()
        self._handles = []  # they keep the database open, and its lock taken

    def _check_end(self) -> None:
        """A store that was closed properly holds all it held then."""
        if not self._closed_at.exists():
            return
        mark = self._closed_at.read_bytes()
        number = mark.partition(b" ")[0]
        # A mark that is damaged itself says nothing.
        closed_at = int(number) if number.isdigit() and mark == _end_mark(int(number)) else 0
        last = self._db.latest_sequence_number()
        if last < closed_at:
            raise StoreDamagedError(
                f"its write-ahead log lost its end (closed at change {closed_at}, found {last})",
                where=f"the store in {self.path} is damaged: ",
            )

    def _look_again(self) -> None:
        """Whether the files noted as damaged still are: one may be gone, or was put back."""
        damaged = self._damaged_files
        if not damaged.names:
            return
        live = {str(file["name"]).rpartition("/")[2]: file for file in self._db.live_files()}
        for name in sorted(damaged.names):
            file = live.get(name)
            if file is None or self._readable(file["start_key"], file["end_key"]):
                damaged.remove(name)
        if not damaged.names:
            self._compact(True)

    def _readable(self, first: bytes, last: bytes) -> bool:
        """Whether all rows from the first key to the last can be read, of whichever family."""
        for family in range(len(rows.FAMILIES)):
            start = first
            while True:
                try:
                    found = self.scan(family, start, last + b"\0", _PAGE_ROWS, _PAGE_BYTES)
                except StoreDamagedError:
                    return False
                if not found:
                    break
                start = found[-1][0] + b"\0"
        return True

    def _damaged(self, family: int, key: bytes, error: Exception) -> StoreDamagedError:
        if not self._to_read and self._damaged_files.add(str(error)):
            with contextlib.suppress(Exception):
                self._compact(False)
        return _damaged(self.path, family, key, error)

    def _compact(self, wanted: bool) -> None:
        for family in self._families:
            family.set_options({"disable_auto_compactions": "false" if wanted else "true"})

    def flush(self) -> None:
        """Write the memtables out and compact: for benchmarks and tests."""
        for family in self._families:
            family.flush()
            family.compact_range(None, None)


def repair(path: str | Path) -> None:
    """Rebuild a store's list of files from the files there are. Changes the directory."""
    try:
        Rdict.repair(str(path), Options(raw_mode=True))
    except Exception as error:
        raise StoreError(f"the store in {path} cannot be repaired: {error}") from error


class RocksSnapshot:
    """The rows of some families as they were when it was made.

    An iterator keeps the view of the moment it was made, and may be sent to and fro; rocksdict's
    own snapshots do not: theirs read the present when they are iterated.
    """

    def __init__(
        self,
        damaged: Callable[[int, bytes, Exception], StoreDamagedError],
        iterators: dict[int, RdictIter],
    ) -> None:
        self._damaged = damaged
        self._iterators = iterators

    def snapshot(self) -> RocksSnapshot:
        return self

    def get(self, family: int, key: bytes) -> bytes | None:
        found = self._iterators[family]
        try:
            found.seek(key)
            if found.valid():
                return bytes(found.value()) if found.key() == key else None
            found.status()
        except Exception as error:
            raise self._damaged(family, key, error) from error
        return None

    def get_many(self, family: int, keys: list[bytes]) -> list[bytes | None]:
        return [self.get(family, key) for key in keys]

    def scan(
        self, family: int, start: bytes, end: bytes, rows_max: int, bytes_max: int
    ) -> list[tuple[bytes, bytes]]:
        try:
            return _rows(self._iterators[family], start, end, rows_max, bytes_max)
        except Exception as error:
            raise self._damaged(family, start, error) from error


def _rows(
    at: RdictIter, start: bytes, end: bytes, rows_max: int, bytes_max: int
) -> list[tuple[bytes, bytes]]:
    """The rows from start to before end, up to the limits; raises what the iterator met."""
    at.seek(start)
    found: list[tuple[bytes, bytes]] = []
    size = 0
    key_of, value_of, following = at.key, at.value, at.next
    while True:
        key: bytes | None = key_of()
        if key is None:
            at.status()  # the end, or a block that cannot be read
            break
        if key >= end:
            break
        value: bytes = value_of()
        found.append((key, value))
        size += len(key) + len(value)
        if len(found) >= rows_max or size >= bytes_max:
            break
        following()
    return found


def _db_options(settings: RocksSettings, cache: Cache, compacts: bool) -> Options:
    options = _family_options("default", settings, cache, compacts)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    options.set_max_open_files(settings.max_open_files)
    options.set_max_background_jobs(settings.background_jobs)
    options.set_max_total_wal_size(settings.wal_bytes_max)
    options.set_wal_recovery_mode(DBRecoveryMode.tolerate_corrupted_tail_records())
    options.set_keep_log_file_num(4)
    options.set_max_log_file_size(4 * MiB)
    options.set_max_manifest_file_size(16 * MiB)
    options.set_stats_dump_period_sec(0)
    options.set_is_fd_close_on_exec(True)
    return options


def _family_options(name: str, settings: RocksSettings, cache: Cache, compacts: bool) -> Options:
    options = Options(raw_mode=True)
    options.set_disable_auto_compactions(not compacts)
    table = BlockBasedOptions()
    table.set_block_cache(cache)
    table.set_cache_index_and_filter_blocks(True)
    table.set_pin_l0_filter_and_index_blocks_in_cache(True)
    table.set_bloom_filter(10, False)
    # Index and filter in small pieces. Whole, those of a large file are half as big as a shard of
    # the cache, push one another out, and every read of a single row loads them again: 60 to 120 µs
    # instead of 3.
    table.set_index_type(BlockBasedIndexType.two_level_index_search())
    table.set_partition_filters(True)
    table.set_metadata_block_size(4 * 1024)
    table.set_pin_top_level_index_and_filter(True)
    table.set_block_size(16 * 1024)
    options.set_block_based_table_factory(table)
    options.set_compression_type(DBCompressionType.lz4())
    busy = name in ("messages", "state", "leases")
    small = _KEYS_BUFFER_BYTES if name == "idempotency" else MiB
    options.set_write_buffer_size(settings.write_buffer_bytes if busy else small)
    options.set_max_write_buffer_number(settings.write_buffers)
    options.set_arena_block_size(256 * 1024)
    if busy:
        options.add_compact_on_deletion_collector_factory(4096, 2048, 0.5)
    return options


def _end_mark(sequence: int) -> bytes:
    number = b"%d" % sequence
    return number + b" %08x" % zlib.crc32(number)


def _open_fault(path: str, error: Exception) -> StoreError:
    if isinstance(error, OSError):  # not RocksDB's: there is no directory, and none can be made
        return StoreError(f"cannot open the store in {path}: {error.strerror or error}")
    text = str(error)
    if _TAKEN.search(text):
        return StoreError(
            f"the store in {path} is in use by another process; stop it or choose another"
        )
    if "Corruption" in text or "No such file" in text:
        return StoreDamagedError(_plain(text), where=f"the store in {path} is damaged: ")
    return StoreError(f"cannot open the store in {path}: {text}")


def _damaged(path: str, family: int, key: bytes, error: Exception) -> StoreDamagedError:
    cause = f"cannot read {rows.FAMILIES[family]}: {_plain(str(error)).replace(f'{path}/', '')}"
    return StoreDamagedError(cause, family, key, where=f"the store in {path} is damaged: ")


def _plain(text: str) -> str:
    """What RocksDB says, without the two checksums."""
    return _CHECKSUMS.sub("", text.removeprefix("Corruption: ")).strip()
