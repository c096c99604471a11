"""What every store must do. The same tests run on the store in memory and on RocksDB."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from fila.core.row_batch import DELETE, DELETE_RANGE, PUT, Op, RowBatch
from fila.core.rows import AUTH, FAMILIES, LEASES, MESSAGES, STATE
from fila.storage.contract import Store
from fila.storage.memory import MemoryStore
from fila.storage.rocks import RocksStore

ALL = 1 << 40


class Opened:
    """A store that can be closed and opened again."""

    def __init__(self, store: Store, again: Callable[[], Store]) -> None:
        self.store = store
        self._again = again

    def write(self, *ops: Op, group: int = 1) -> None:
        self.store.write([RowBatch(group, 1, list(ops))])

    def reopen(self) -> None:
        self.store.close()
        self.store = self._again()

    def keys(self, family: int = MESSAGES, start: bytes = b"", end: bytes = b"\xff") -> list[bytes]:
        return [key for key, _ in self.store.scan(family, start, end, ALL, ALL)]


def open_store(kind: str, path: Path) -> Iterator[Opened]:
    if kind == "rocks":
        one = Opened(RocksStore(path / "data"), lambda: RocksStore(path / "data"))
        yield one
        one.store.close()
    else:
        one = Opened(MemoryStore(), lambda: one.store.crash())  # type: ignore[attr-defined]
        yield one


@pytest.fixture(params=["memory", "rocks"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    yield from open_store(request.param, tmp_path)


@pytest.fixture(params=["memory", "rocks"])
def reopened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    yield from open_store(request.param, tmp_path)


def put(key: bytes, value: bytes = b"v", family: int = MESSAGES) -> Op:
    return (PUT | family, key, value)


def delete(key: bytes, family: int = MESSAGES) -> Op:
    return (DELETE | family, key, b"")


def delete_range(start: bytes, end: bytes, family: int = MESSAGES) -> Op:
    return (DELETE_RANGE | family, start, end)


# --- reads


def test_what_was_written_can_be_read(opened: Opened) -> None:
    opened.write(put(b"k", b"value"))
    assert opened.store.get(MESSAGES, b"k") == b"value"


def test_what_is_not_there_reads_as_none(opened: Opened) -> None:
    assert opened.store.get(MESSAGES, b"k") is None
    assert opened.store.scan(MESSAGES, b"", b"\xff", 10, 10) == []


def test_many_rows_are_read_at_once_in_the_order_they_are_asked_for(opened: Opened) -> None:
    opened.write(put(b"a", b"1"), put(b"b", b"2"), put(b"c", b"3", LEASES))
    asked = [b"b", b"c", b"a", b"b", b""]
    assert opened.store.get_many(MESSAGES, asked) == [b"2", None, b"1", b"2", None]
    assert opened.store.get_many(MESSAGES, []) == []
    assert opened.store.snapshot().get_many(MESSAGES, asked) == [b"2", None, b"1", b"2", None]


def test_values_are_kept_byte_by_byte(opened: Opened) -> None:
    value = bytes(range(256)) * 5
    opened.write(put(b"\0\xff\0", value), put(b"\0", b""))
    assert opened.store.get(MESSAGES, b"\0\xff\0") == value
    assert opened.store.get(MESSAGES, b"\0") == b""


def test_families_are_apart(opened: Opened) -> None:
    opened.write(*[put(b"k", name.encode(), family) for family, name in enumerate(FAMILIES)])
    for family, name in enumerate(FAMILIES):
        assert opened.store.get(family, b"k") == name.encode()
    opened.write(delete(b"k", LEASES), delete_range(b"", b"\xff", STATE))
    assert opened.store.get(MESSAGES, b"k") == b"messages"
    assert opened.store.get(LEASES, b"k") is None
    assert opened.store.get(STATE, b"k") is None
    assert opened.store.get(AUTH, b"k") == b"auth"


# --- batches


def test_within_a_batch_the_order_of_operations_counts(opened: Opened) -> None:
    opened.write(put(b"a", b"1"), put(b"a", b"2"), delete(b"b"), put(b"b"), put(b"c"), delete(b"c"))
    assert opened.store.get(MESSAGES, b"a") == b"2"
    assert opened.store.get(MESSAGES, b"b") == b"v"
    assert opened.store.get(MESSAGES, b"c") is None


def test_a_range_delete_covers_what_came_before_it_and_not_what_comes_after(opened: Opened) -> None:
    opened.write(put(b"a1"), delete_range(b"a", b"b"), put(b"a2"))
    assert opened.keys() == [b"a2"]


def test_the_batches_of_one_write_are_applied_in_order(opened: Opened) -> None:
    opened.store.write(
        [RowBatch(1, 1, [put(b"k", b"first")]), RowBatch(2, 1, [put(b"k", b"second")])]
    )
    assert opened.store.get(MESSAGES, b"k") == b"second"


def test_deleting_what_is_not_there_is_no_mistake(opened: Opened) -> None:
    opened.write(delete(b"nothing"), delete_range(b"x", b"y"))
    assert opened.keys() == []


def test_a_range_delete_takes_its_start_and_leaves_its_end(opened: Opened) -> None:
    opened.write(*[put(key) for key in (b"a", b"b", b"b1", b"c", b"d")])
    opened.write(delete_range(b"b", b"d"))
    assert opened.keys() == [b"a", b"d"]


def test_an_empty_write_changes_nothing(opened: Opened) -> None:
    opened.write(put(b"a"))
    opened.store.write([])
    opened.store.write([RowBatch(1, 2, [])])
    assert opened.keys() == [b"a"]


# --- scans


def test_a_scan_is_in_byte_order(opened: Opened) -> None:
    keys = [b"b", b"a\xff", b"a", b"\0", b"a\0", b"ab", b"\xfe"]
    opened.write(*[put(key) for key in keys])
    assert opened.keys() == sorted(keys)


def test_a_scan_takes_its_start_and_leaves_its_end(opened: Opened) -> None:
    opened.write(*[put(key) for key in (b"a", b"b", b"c", b"d")])
    assert opened.keys(start=b"b", end=b"d") == [b"b", b"c"]
    assert opened.keys(start=b"b\0", end=b"c\0") == [b"c"]
    assert opened.keys(start=b"x", end=b"y") == []


def test_a_scan_stops_after_rows_max(opened: Opened) -> None:
    opened.write(*[put(b"%02d" % at) for at in range(20)])
    found = opened.store.scan(MESSAGES, b"05", b"\xff", 3, ALL)
    assert [key for key, _ in found] == [b"05", b"06", b"07"]


def test_a_scan_stops_once_bytes_max_is_reached(opened: Opened) -> None:
    opened.write(*[put(b"%02d" % at, b"x" * 98) for at in range(20)])
    assert len(opened.store.scan(MESSAGES, b"", b"\xff", ALL, 250)) == 3
    assert len(opened.store.scan(MESSAGES, b"", b"\xff", ALL, 300)) == 3
    assert len(opened.store.scan(MESSAGES, b"", b"\xff", ALL, 301)) == 4


def test_a_scan_gives_at_least_one_row_whatever_its_size(opened: Opened) -> None:
    opened.write(put(b"a", b"x" * 10_000), put(b"b"))
    assert [key for key, _ in opened.store.scan(MESSAGES, b"", b"\xff", ALL, 1)] == [b"a"]


def test_a_scan_is_a_snapshot_that_later_writes_do_not_change(opened: Opened) -> None:
    opened.write(put(b"a"), put(b"b"))
    found = opened.store.scan(MESSAGES, b"", b"\xff", ALL, ALL)
    opened.write(delete(b"a"), put(b"c"))
    assert [key for key, _ in found] == [b"a", b"b"]


# --- opening again


def test_everything_is_there_after_closing_and_opening_again(reopened: Opened) -> None:
    reopened.write(put(b"a"), put(b"b"), put(b"k", b"lease", LEASES))
    reopened.write(delete(b"a"), delete_range(b"x", b"z"))
    reopened.reopen()
    assert reopened.keys() == [b"b"]
    assert reopened.store.get(LEASES, b"k") == b"lease"
    reopened.write(put(b"c"))
    reopened.reopen()
    assert reopened.keys() == [b"b", b"c"]


def test_a_synced_store_can_be_opened_again(reopened: Opened) -> None:
    reopened.write(put(b"a"))
    reopened.store.sync()
    reopened.store.sync()
    reopened.reopen()
    assert reopened.keys() == [b"a"]


# --- any history, both stores against a dict

KEYS = st.binary(min_size=1, max_size=3)
OPS = st.one_of(
    st.tuples(st.just(PUT), KEYS, st.binary(max_size=8)),
    st.tuples(st.just(DELETE), KEYS, st.just(b"")),
    st.tuples(st.just(DELETE_RANGE), KEYS, KEYS).map(lambda op: (op[0], *sorted(op[1:]))),
)
WRITES = st.lists(st.lists(OPS, max_size=8), min_size=1, max_size=6)


@pytest.fixture(scope="module")
def rocks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RocksStore]:
    store = RocksStore(tmp_path_factory.mktemp("rocks"))
    yield store
    store.close()


examples = iter(range(1, 1 << 30))


@hypothesis_settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(writes=WRITES, start=KEYS, end=KEYS, rows_max=st.integers(1, 10))
def test_both_stores_hold_what_a_dict_would(
    rocks: RocksStore, writes: list[list[Op]], start: bytes, end: bytes, rows_max: int
) -> None:
    # Each example has a corner of its own in the one store, which costs too much to open anew.
    corner = next(examples).to_bytes(4, "big")
    memory = MemoryStore()
    model: dict[bytes, bytes] = {}
    for ops in writes:
        for code, key, value in ops:
            if code == PUT:
                model[key] = value
            elif code == DELETE:
                model.pop(key, None)
            else:
                for gone in [one for one in model if key <= one < value]:
                    del model[gone]
        moved = [
            (code, corner + key, corner + value if code == DELETE_RANGE else value)
            for code, key, value in ops
        ]
        for store in (memory, rocks):
            store.write([RowBatch(1, 1, moved)])
    rows = sorted((corner + key, value) for key, value in model.items())
    inside = [row for row in rows if corner + start <= row[0] < corner + end][:rows_max]
    for one in (memory, rocks):
        assert one.scan(MESSAGES, corner, corner + b"\xff" * 4, ALL, ALL) == rows
        if start <= end:
            assert one.scan(MESSAGES, corner + start, corner + end, rows_max, ALL) == inside
        for key in (start, end):
            assert one.get(MESSAGES, corner + key) == model.get(key)


def test_a_snapshot_stays_as_it_was(opened: Opened) -> None:
    opened.write(*[put(b"%03d" % n, b"old") for n in range(100)], put(b"l", b"1", LEASES))
    snapshot = opened.store.snapshot()
    opened.write(
        *[put(b"%03d" % n, b"new") for n in range(0, 100, 2)],
        (DELETE | MESSAGES, b"001", b""),
        (DELETE_RANGE | MESSAGES, b"050", b"060"),
        put(b"100"),
        put(b"l", b"2", LEASES),
    )
    found = snapshot.scan(MESSAGES, b"", b"\xff", ALL, ALL)
    assert found == [(b"%03d" % n, b"old") for n in range(100)]
    assert snapshot.get(MESSAGES, b"001") == b"old"
    assert snapshot.get(MESSAGES, b"0010") is None
    assert snapshot.get(LEASES, b"l") == b"1"
    assert snapshot.scan(MESSAGES, b"010", b"013", ALL, ALL) == found[10:13]
    assert snapshot.scan(MESSAGES, b"010", b"\xff", 2, ALL) == found[10:12]
    assert snapshot.scan(MESSAGES, b"010", b"\xff", ALL, 1) == found[10:11]
    assert opened.store.get(MESSAGES, b"001") is None
    del snapshot
    opened.reopen()
    assert opened.store.get(LEASES, b"l") == b"2"
