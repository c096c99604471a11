"""Damaged files: noticed or harmless, never a row silently missing; verify and salvage."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from fila.core import rows
from fila.core.command import Lease
from fila.core.load import load
from fila.core.row_batch import PUT, RowBatch
from fila.core.settings import Settings
from fila.server.main import main
from fila.storage.contract import StoreDamagedError, StoreError
from fila.storage.damaged_files import DAMAGED
from fila.storage.rocks import RocksSettings, RocksStore
from fila.storage.verify import verify
from tests.core.turn import Turns

ALL = 1 << 62


def filled(path: Path) -> Turns:
    """A store as a busy broker leaves it: keys, delays, leases, batches, pauses, dead letters."""
    turns = Turns(store=RocksStore(path))  # type: ignore[arg-type]
    for name in ("orders", "mail"):
        turns.create(name)
        for tenant in range(5):
            turns.enqueue(name, b"tenant-%d" % tenant, 300, body_bytes=400)
    turns.enqueue("mail", b"late", 20, delay_ms=60_000)
    turns.limit("provider", 5, 5)
    turns.enqueue("orders", b"limited", 30, throttle=(b"provider",))
    turns.consume("orders", prefetch=50)
    turns.turn(Lease("mail", "s/0", 1, 40, 1 << 20, 60_000, 0, False))
    return turns


def flip(path: Path, rng: Random) -> str:
    """Damage one bit of one file that RocksDB reads; its own log tells nothing."""
    files = [
        file
        for file in sorted(path.iterdir())
        if file.is_file() and file.stat().st_size and not file.name.startswith(("LOG", "LOCK"))
    ]
    file = (
        max(files, key=lambda one: one.stat().st_size) if rng.random() < 0.5 else rng.choice(files)
    )
    content = bytearray(file.read_bytes())
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    file.write_bytes(content)
    return file.name


def contents(store: RocksStore) -> list[list[tuple[bytes, bytes]]]:
    return [store.scan(family, b"", b"\xff" * 64, ALL, ALL) for family in range(len(rows.FAMILIES))]


@pytest.mark.parametrize("stopped", ["closed", "killed"])
def test_one_flipped_bit_anywhere_is_noticed_or_harmless(tmp_path: Path, stopped: str) -> None:
    sound = tmp_path / "sound"
    turns = filled(sound)
    store: RocksStore = turns.store  # type: ignore[assignment]
    before = contents(store)
    if stopped == "killed":
        shutil.copytree(sound, tmp_path / "killed")
        store.close()
        sound = tmp_path / "killed"
    else:
        store.close()
    rng = Random(stopped)
    outcomes: Counter[str] = Counter()
    for attempt in range(100):
        copy = tmp_path / f"copy-{attempt}"
        shutil.copytree(sound, copy)
        name = flip(copy, rng)
        said = ""
        try:
            damaged = RocksStore(copy)
            assert contents(damaged) == before, f"rows are missing without a word: {name}"
        except StoreDamagedError as error:
            said = str(error)
        outcomes["noticed" if said else "harmless"] += 1
        assert not said or (str(copy) in said and "--salvage" in said)
        shutil.rmtree(copy)
    assert outcomes["noticed"] > 50


def test_a_log_that_lost_its_end_after_a_proper_stop_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "data"
    store = RocksStore(path)
    store.write([RowBatch(1, 1, [(PUT | rows.MESSAGES, b"k", b"v")])])
    shutil.copytree(path, tmp_path / "before")
    store.write([RowBatch(1, 2, [(PUT | rows.MESSAGES, b"l", b"w")])])
    store.close()
    shutil.copy(path / "CLOSED_AT", tmp_path / "before" / "CLOSED_AT")
    with pytest.raises(StoreDamagedError, match="lost its end"):
        RocksStore(tmp_path / "before")


def test_a_directory_called_lock_is_not_mistaken_for_a_lock(tmp_path: Path) -> None:
    path = tmp_path / "block-lock"
    RocksStore(path).close()
    (path / "CURRENT").write_text("MANIFEST-999999\n")
    with pytest.raises(StoreDamagedError) as caught:
        RocksStore(path)
    assert "in use" not in str(caught.value)
    taken = tmp_path / "taken"
    store = RocksStore(taken)
    with pytest.raises(StoreError, match="in use by another process"):
        RocksStore(taken)
    store.close()


def test_a_sound_store_is_found_sound_whatever_it_holds(tmp_path: Path) -> None:
    turns = filled(tmp_path)
    report = verify(turns.store)
    assert report.findings == []
    assert report.rows["messages"] == 3_050
    assert report.rows["leases"] > 0
    turns.store.close()


@pytest.mark.parametrize(
    ("family", "prefix", "said"),
    [
        (rows.MESSAGES, b"", "counts"),
        (rows.LEASES, b"", "holds no lease"),
        (rows.STATE, rows.LANE_PREFIX, "has no lane"),
        (rows.QUEUES, b"", "unknown"),
    ],
)
def test_a_row_that_is_missing_is_found_by_what_the_others_say(
    tmp_path: Path, family: int, prefix: bytes, said: str
) -> None:
    store: RocksStore = filled(tmp_path).store  # type: ignore[assignment]
    found = store.scan(family, prefix, prefix + b"\xff" * 8, ALL, ALL)
    store.write([RowBatch(0, 0, [(8 | family, key, b"") for key, _ in found])])
    report = verify(store)
    assert not report.sound
    assert any(said in finding for finding in report.findings), report.findings[:3]
    store.close()


def damage_a_block(path: Path, store: RocksStore) -> None:
    """Write everything into tables and spoil the middle of the largest."""
    store.flush()
    store.close()
    file = max(path.glob("*.sst"), key=lambda one: one.stat().st_size)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0x20
    file.write_bytes(content)


def test_salvage_copies_all_but_the_damaged_block_and_makes_a_sound_store(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, into = tmp_path / "data", tmp_path / "new"
    turns = filled(path)
    damage_a_block(path, turns.store)  # type: ignore[arg-type]
    assert main(["--verify", "--json", "--data-dir", str(path)]) == 3
    checked = json.loads(capsys.readouterr().out)
    assert not checked["sound"]
    assert any("block checksum mismatch" in finding for finding in checked["findings"])
    assert main(["--salvage", str(into), "--json", "--data-dir", str(path)]) == 3
    told = json.loads(capsys.readouterr().out)
    assert told["sound"], told
    assert 2_900 < told["rows"]["messages"] < 3_050
    lost = 3_050 - told["rows"]["messages"]
    assert any(loss.startswith("messages: ") and " of queue " in loss for loss in told["losses"])
    assert main(["--verify", "--data-dir", str(into)]) == 0
    # What was copied is served: everything that is not lost comes out.
    again = RocksStore(into)
    machine = load(again, Settings(), 0)
    waiting = sum(queue.pending for queue in machine.state.queues.values())
    leased = sum(len(queue.leased) for queue in machine.state.queues.values())
    assert waiting + leased == 3_050 - lost
    again.close()


@pytest.mark.parametrize("spoilt", ["CURRENT", "MANIFEST"])
def test_salvage_makes_a_lost_list_of_files_anew(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], spoilt: str
) -> None:
    path, into = tmp_path / "data", tmp_path / "new"
    store: RocksStore = filled(path).store  # type: ignore[assignment]
    store.close()
    (file,) = path.glob(spoilt + "*")
    file.write_bytes(b"x" * 40)
    assert main(["--verify", "--data-dir", str(path)]) == 3
    assert main(["--salvage", str(into), "--json", "--data-dir", str(path)]) == 3
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["sound"], told
    assert told["rows"]["messages"] == 3_050
    assert not (tmp_path / "new.repair").exists()


def test_salvage_gives_messages_without_queue_or_lane_a_home(tmp_path: Path) -> None:
    path, into = tmp_path / "data", tmp_path / "new"
    store: RocksStore = filled(path).store  # type: ignore[assignment]
    number = rows.read_queue(store.get(rows.QUEUES, b"mail") or b"").number
    prefix = rows.LANE_PREFIX + rows.queue_prefix(number)
    lane = store.scan(rows.STATE, prefix, rows.after(prefix), 1, ALL)[0][0]
    gone = [(8 | rows.QUEUES, b"mail", b""), (8 | rows.STATE, lane, b"")]
    store.write([RowBatch(0, 0, gone)])
    store.close()
    assert main(["--salvage", str(into), "--data-dir", str(path)]) == 3
    again = RocksStore(into)
    assert verify(again).findings == []
    machine = load(again, Settings(), 0)
    home = machine.state.queues[f"salvaged-{number}"]
    assert home.pending + len(home.leased) == 1_520
    assert any(key.startswith(b"salvaged-") for key in home.keys)
    again.close()


def test_salvage_refuses_a_directory_that_holds_something(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    filled(tmp_path / "data").store.close()
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "mine").write_text("kept")
    arguments = ["--salvage", str(tmp_path / "new"), "--data-dir", str(tmp_path / "data")]
    assert main(arguments) == 1
    assert "is not empty" in capsys.readouterr().err
    assert main(["--verify", "--data-dir", str(tmp_path / "nothing")]) == 1
    assert "holds no Fila store" in capsys.readouterr().err


def test_a_broker_refuses_to_start_on_damaged_data_and_says_what_to_do(tmp_path: Path) -> None:
    filled(tmp_path).store.close()
    (tmp_path / "CURRENT").write_text("spoilt")
    command = [sys.executable, "-m", "fila.server.main", "--listen", "127.0.0.1:0"]
    done = subprocess.run(
        [*command, "--data-dir", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert f"fila-server: the store in {tmp_path} is damaged" in done.stderr
    assert "--verify" in done.stderr
    assert "nothing acknowledged is lost" not in done.stderr


# --- damaged files and compactions


def spoilt(path: Path) -> str:
    """A store with one damaged block of messages; the name of the file it is in."""
    store = RocksStore(path, SMALL)
    write_from_0_to(store, 4_000)
    damage_a_block(path, store)
    return max(path.glob("*.sst"), key=lambda one: one.stat().st_size).name


def write_from_0_to(store: RocksStore, end: int) -> None:
    """Messages under 4,000 keys, again and again."""
    rng = Random(1)
    for start in range(0, end, 100):
        keys = [rows.MESSAGE_KEY.pack(1, 1, start % 4_000 + at, b"x" * 16) for at in range(100)]
        puts = [(PUT | rows.MESSAGES, key, rng.randbytes(400)) for key in keys]
        store.write([RowBatch(1, 1, puts)])


SMALL = RocksSettings(write_buffer_bytes=1 << 20)


def test_a_compaction_that_meets_damage_is_named_and_the_next_start_leaves_the_file_alone(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    killed = tmp_path_factory.mktemp("killed") / "data"
    name = spoilt(tmp_path)
    store = RocksStore(tmp_path, SMALL)
    with pytest.raises(StoreDamagedError, match=f"a compaction met it: .*{name}.*--salvage"):
        write_from_0_to(store, 4_000_000)
    shutil.copytree(tmp_path, killed)  # as a process finds it that comes after this one
    again = RocksStore(killed, SMALL)
    assert name in again.warnings()[0]
    assert "automatic compaction is off" in again.warnings()[0]
    write_from_0_to(again, 80_000)
    again.close()


def test_a_read_that_meets_damage_keeps_compactions_from_it(tmp_path: Path) -> None:
    name = spoilt(tmp_path)
    store = RocksStore(tmp_path, SMALL)
    assert store.warnings() == []
    with pytest.raises(StoreDamagedError) as caught:
        contents(store)
    assert caught.value.family == rows.MESSAGES
    assert name in caught.value.cause
    assert str(tmp_path) not in caught.value.cause, "clients are told it"
    assert name in store.warnings()[0]
    write_from_0_to(store, 80_000)
    store.close()
    assert (tmp_path / DAMAGED).read_text() == f"{name}\n"


@pytest.mark.parametrize("how", ["gone", "put back"])
def test_a_store_compacts_again_when_no_file_is_damaged_any_more(tmp_path: Path, how: str) -> None:
    RocksStore(tmp_path, SMALL).close()
    store = RocksStore(tmp_path, SMALL)
    write_from_0_to(store, 4_000)
    store.flush()
    store.close()
    name = max(tmp_path.glob("*.sst")).name if how == "put back" else "999999.sst"
    (tmp_path / DAMAGED).write_text(f"{name}\n")
    again = RocksStore(tmp_path, SMALL)
    assert again.warnings() == []
    assert not (tmp_path / DAMAGED).exists()
    again.close()


def test_verifying_a_damaged_store_writes_nothing_into_it(tmp_path: Path) -> None:
    spoilt(tmp_path)
    before = sorted(one.name for one in tmp_path.iterdir())
    assert main(["--verify", "--data-dir", str(tmp_path)]) == 3
    assert sorted(one.name for one in tmp_path.iterdir()) == before
