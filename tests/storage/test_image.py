"""An image of a store that is in use: whole batches, whatever is flushed or compacted meanwhile."""

from __future__ import annotations

import shutil
import threading
import time
from pathlib import Path

import pytest

from fila.core import rows
from fila.core.row_batch import DELETE, PUT, RowBatch
from fila.storage.contract import StoreError
from fila.storage.image import IMAGE, ImageFile, remove_image
from fila.storage.rocks import RESTORING, MiB, RocksSettings, RocksStore

SMALL = RocksSettings(write_buffer_bytes=MiB)
FAMILIES = (rows.MESSAGES, rows.STATE, rows.LEASES)


def write(store: RocksStore, number: int) -> None:
    """A batch that is in all families or in none; an older one goes."""
    ops = []
    for family in FAMILIES:
        ops.append((PUT | family, number.to_bytes(8, "big"), number.to_bytes(8, "big") * 50))
        if number >= 500:
            ops.append((DELETE | family, (number - 500).to_bytes(8, "big"), b""))
    store.write([RowBatch(0, 0, ops)])


def numbers(store: RocksStore, family: int) -> list[int]:
    found = store.scan(family, b"", b"\xff" * 9, 1 << 30, 1 << 40)
    return [int.from_bytes(key, "big") for key, _ in found]


def copied(files: list[ImageFile], into: Path) -> Path:
    """What of an image counts."""
    into.mkdir()
    for file in files:
        (into / file.path.name).write_bytes(file.path.read_bytes()[: file.size])
    return into


def test_every_image_of_a_busy_store_holds_whole_batches_up_to_its_moment(tmp_path: Path) -> None:
    store = RocksStore(tmp_path / "data", SMALL)
    stop = threading.Event()

    def churn() -> None:
        """Memtables are written out and table files put together beside the writer."""
        while not stop.wait(0.2):
            for family in store._families:
                family.flush()
            store._families[rows.MESSAGES].compact_range(None, None)

    churning = threading.Thread(target=churn)
    churning.start()
    taken = again = tries = number = 0
    try:
        while taken < 3:
            image = store.image()
            while True:
                image.link_tables()
                for _ in range(20):  # between the two steps the store is written to
                    write(store, number)
                    number += 1
                if again == taken:
                    store._families[rows.STATE].flush()  # a table file comes
                    assert image.finish() is None
                    again += 1
                    continue
                files = image.finish()
                if files is not None:
                    break
                tries += 1
                assert tries < 1_000
            for _ in range(40):  # what comes later is not in it
                write(store, number)
                number += 1
            place = copied(files, tmp_path / f"copy{taken}")
            found = RocksStore(place)
            for family in FAMILIES:
                upto = number - 40
                assert numbers(found, family) == list(range(max(0, upto - 500), upto))
            found.close()
            shutil.rmtree(place)
            taken += 1
    finally:
        stop.set()
        churning.join()
    remove_image(tmp_path / "data")
    store.close()


def test_table_files_of_an_image_outlive_a_compaction(tmp_path: Path) -> None:
    store = RocksStore(tmp_path / "data", SMALL)
    for number in range(300):
        write(store, number)
    store.flush()
    image = store.image()
    image.link_tables()
    files = image.finish()
    assert files is not None
    for number in range(300, 600):
        write(store, number)
    store.flush()
    gone = [one for one in files if not (tmp_path / "data" / one.path.name).exists()]
    assert any(one.lasts for one in gone)
    found = RocksStore(copied(files, tmp_path / "copy"), to_read=True)
    assert numbers(found, rows.STATE) == list(range(300))
    found.close()
    store.close()


def test_an_image_writes_nothing_and_takes_no_room_of_its_own(tmp_path: Path) -> None:
    store = RocksStore(tmp_path / "data")
    store.write([RowBatch(0, 0, [(PUT | rows.MESSAGES, b"k", b"v" * MiB)])])
    before = {one.name for one in (tmp_path / "data").iterdir()}
    image = store.image()
    image.link_tables()
    files = image.finish()
    assert files is not None
    assert {one.name for one in (tmp_path / "data").iterdir()} == before | {IMAGE}
    log = next(one for one in files if one.path.suffix == ".log")
    assert log.path.stat().st_ino == (tmp_path / "data" / log.path.name).stat().st_ino
    store.close()


def test_a_directory_that_is_being_restored_is_not_opened(tmp_path: Path) -> None:
    RocksStore(tmp_path / "data").close()
    (tmp_path / "data" / RESTORING).touch()
    with pytest.raises(StoreError, match="not restored to its end"):
        RocksStore(tmp_path / "data")


def test_the_loop_spends_next_to_nothing_on_an_image_of_many_files(tmp_path: Path) -> None:
    store = RocksStore(tmp_path / "data", SMALL)
    for family in store._families:
        family.set_options({"disable_auto_compactions": "true"})
    for number in range(150):
        store.write([RowBatch(0, 0, [(PUT | rows.STATE, number.to_bytes(8, "big"), b"v")])])
        store._families[rows.STATE].flush()
    image = store.image()
    image.link_tables()
    began_s = time.thread_time()  # of this thread's own work: other work on the machine is not it
    files = image.finish()
    took_s = time.thread_time() - began_s
    assert files is not None and len(files) > 150
    assert took_s < 0.02
    store.close()
