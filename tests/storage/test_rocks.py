from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fila.core import rows
from fila.core.row_batch import DELETE, DELETE_RANGE, PUT, RowBatch
from fila.core.rows import DEFAULT, LEASES, MESSAGES, STATE
from fila.storage.contract import StoreDamagedError, StoreError
from fila.storage.rocks import RocksSettings, RocksStore

ROOT = Path(__file__).resolve().parents[2]
ALL = 1 << 40


def spawn(path: Path, how: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.storage.writer", str(path), how]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)


def numbers(store: RocksStore, family: int) -> list[int]:
    found = store.scan(family, b"", b"\xff", ALL, ALL)
    return [int.from_bytes(key, "big") for key, _ in found]


# --- opening


def test_a_directory_that_does_not_exist_is_made(tmp_path: Path) -> None:
    RocksStore(tmp_path / "a" / "b").close()
    assert (tmp_path / "a" / "b" / "CURRENT").exists()


def test_a_store_in_use_is_refused_with_what_to_do(tmp_path: Path) -> None:
    store = RocksStore(tmp_path)
    with pytest.raises(StoreError) as refused:
        RocksStore(tmp_path)
    assert str(refused.value) == (
        f"the store in {tmp_path} is in use by another process; stop it or choose another"
    )
    store.close()
    RocksStore(tmp_path).close()


def test_a_store_in_use_by_a_real_other_process_is_refused(tmp_path: Path) -> None:
    process = spawn(tmp_path / "data", "loop")
    try:
        assert process.stdout is not None and process.stdout.readline() == "1\n"
        with pytest.raises(StoreError, match="in use by another process"):
            RocksStore(tmp_path / "data")
    finally:
        process.kill()
        process.communicate()


def test_a_directory_that_cannot_be_made_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(StoreError, match="cannot open the store in data: No such file") as refused:
        RocksStore(Path("data"))
    assert not isinstance(refused.value, StoreDamagedError)


def test_a_file_in_the_place_of_the_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("not a directory")
    with pytest.raises(StoreError, match=r"cannot open the store in .*data: .*exists"):
        RocksStore(tmp_path / "data")


def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"cannot open the store in .*: .*[Nn]ot a directory"):
        RocksStore(tmp_path / "file" / "data")


def test_a_directory_without_permission_is_refused(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o000)
    if os.geteuid() != 0:
        with pytest.raises(StoreError, match=r"cannot open the store in .*[Pp]ermission denied"):
            RocksStore(data)
        return
    # Root may read everything: a child gives its rights up before it tries.
    opened = (
        "import os, pickle, sys; from fila.storage.rocks import RocksStore;"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534);"
        "RocksStore(sys.argv[1])"
    )
    for folder in [tmp_path, *tmp_path.parents][:3]:
        folder.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", opened, str(data)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "StoreError: cannot open the store in" in done.stderr
    assert "ermission denied" in done.stderr


def test_a_damaged_store_is_refused_and_not_overwritten(tmp_path: Path) -> None:
    store = RocksStore(tmp_path)
    store.write([RowBatch(1, 1, [(PUT | MESSAGES, b"k", b"v")])])
    store.close()
    current = (tmp_path / "CURRENT").read_text()
    (tmp_path / "CURRENT").write_text("garbage")
    with pytest.raises(StoreDamagedError, match="is damaged: CURRENT file"):
        RocksStore(tmp_path)
    (tmp_path / "CURRENT").write_text(current)
    store = RocksStore(tmp_path)
    assert store.get(MESSAGES, b"k") == b"v"
    store.close()


def test_a_store_of_another_format_is_refused_every_time_with_the_reason(tmp_path: Path) -> None:
    store = RocksStore(tmp_path)
    store.write([RowBatch(0, 0, [(PUT | DEFAULT, rows.FORMAT_KEY, b"\0\0\0\x63")])])
    store.close()
    for _ in range(2):  # the second time shows that the first let go of the lock
        with pytest.raises(StoreError, match="the store has format 99, this Fila reads format 1"):
            RocksStore(tmp_path)


# --- dying


def test_a_killed_process_loses_nothing_it_committed_and_leaves_no_half_batch(
    tmp_path: Path,
) -> None:
    process = spawn(tmp_path, "loop")
    assert process.stdout is not None
    told = [int(process.stdout.readline()) for _ in range(300)]
    process.kill()
    rest, _ = process.communicate()
    # The last line may have been cut off by the kill.
    told += [int(line) for line in rest.splitlines(keepends=True) if line.endswith("\n")]
    store = RocksStore(tmp_path)
    found = numbers(store, MESSAGES)
    assert len(told) >= 300
    assert found[: len(told)] == told
    assert len(found) - len(told) <= 1  # one may have been written and not told
    state = [row[0] for row in store.scan(STATE, b"", b"\xff", ALL, ALL) if len(row[0]) == 8]
    assert [int.from_bytes(key, "big") for key in state] == found
    assert numbers(store, LEASES) == found
    store.close()


def test_a_full_disk_fails_the_write_and_every_later_one_and_loses_nothing_committed(
    tmp_path: Path,
) -> None:
    process = spawn(tmp_path, "full")
    out, _ = process.communicate(timeout=60)
    lines = out.splitlines()
    told = [int(line) for line in lines if line.isdigit()]
    said = [line for line in lines if not line.isdigit()]
    assert len(told) > 50
    assert len(said) == 2
    assert said[0].startswith(f"refused: cannot write to the store in {tmp_path}: ")
    assert said[1] == said[0].replace("refused:", "refused again:")
    store = RocksStore(tmp_path)
    assert numbers(store, MESSAGES)[: len(told)] == told
    assert len(numbers(store, LEASES)) == len(numbers(store, MESSAGES))
    store.close()


# --- what the core relies on


def test_a_flush_changes_nothing_that_can_be_read(tmp_path: Path) -> None:
    store = RocksStore(tmp_path)
    ops = [(PUT | MESSAGES, b"%04d" % at, b"v" * 100) for at in range(1_000)]
    store.write([RowBatch(1, 1, ops)])
    store.write([RowBatch(1, 2, [(DELETE | MESSAGES, b"%04d" % at, b"") for at in range(500)])])
    store.write([RowBatch(1, 3, [(DELETE_RANGE | MESSAGES, b"0600", b"0700")])])
    before = store.scan(MESSAGES, b"", b"\xff", ALL, ALL)
    store.flush()
    assert store.scan(MESSAGES, b"", b"\xff", ALL, ALL) == before
    assert len(before) == 400
    store.close()


def test_a_store_with_small_buffers_holds_more_than_they_do(tmp_path: Path) -> None:
    settings = RocksSettings(block_cache_bytes=1 << 20, write_buffer_bytes=1 << 20)
    store = RocksStore(tmp_path, settings)
    for at in range(40):
        ops = [(PUT | MESSAGES, b"%06d" % (at * 100 + n), b"x" * 2_000) for n in range(100)]
        store.write([RowBatch(1, at, ops)])
    assert len(store.scan(MESSAGES, b"", b"\xff", ALL, ALL)) == 4_000
    store.close()
    store = RocksStore(tmp_path, settings)
    assert len(store.scan(MESSAGES, b"", b"\xff", ALL, ALL)) == 4_000
    store.close()


def test_reads_go_on_after_a_failed_write_so_that_the_broker_can_say_why(tmp_path: Path) -> None:
    store = RocksStore(tmp_path)
    store.write([RowBatch(1, 1, [(PUT | MESSAGES, b"k", b"v")])])
    store._failed = "cannot write"
    with pytest.raises(StoreError, match="cannot write"):
        store.write([RowBatch(1, 2, [(PUT | MESSAGES, b"x", b"v")])])
    assert store.get(MESSAGES, b"k") == b"v"
    store.close()
