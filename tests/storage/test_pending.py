"""A store under rows that are under way reads like one that holds them already."""

from __future__ import annotations

from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from fila.core.row_batch import DELETE, DELETE_RANGE, PUT, Op, RowBatch
from fila.core.rows import FAMILIES, MESSAGES, STATE
from fila.storage.memory import MemoryStore
from fila.storage.pending import PendingStore

ALL = 1 << 40


def key(group: int, lane: int, at: int) -> bytes:
    return group.to_bytes(4, "big") + lane.to_bytes(8, "big") + bytes([at])


KEYS = st.tuples(st.integers(0, 1), st.integers(0, 5))
OPS = st.lists(
    st.tuples(st.sampled_from([PUT, PUT, DELETE, DELETE_RANGE]), KEYS, KEYS,
              st.sampled_from([MESSAGES, STATE]), st.binary(max_size=6)),
    max_size=5,
)  # fmt: skip
MOVES = st.lists(
    st.one_of(
        st.tuples(st.just("propose"), st.lists(st.tuples(st.integers(1, 3), OPS), max_size=3)),
        st.tuples(st.just("commit"), st.integers(1, 3)),
        st.tuples(st.just("drop"), st.integers(1, 3)),
    ),
    max_size=12,
)
PAGES = st.tuples(st.integers(1, 5), st.sampled_from([1, 20, ALL]))


def batch(
    group: int, drawn: list[tuple[int, tuple[int, int], tuple[int, int], int, bytes]]
) -> RowBatch:
    ops: list[Op] = []
    for kind, first, second, family, value in drawn:
        start, end = key(group, *first), key(group, *second)
        if kind == DELETE_RANGE:
            start, value = min(start, end), max(start, end)
        ops.append((kind | family, start, value if kind != DELETE else b""))
    return RowBatch(group, 1, ops)


def shown(store: MemoryStore, under: dict[int, deque[RowBatch]]) -> MemoryStore:
    """A store that holds everything."""
    whole = store.crash()
    for batches in under.values():
        whole.write(list(batches))
    return whole


@given(MOVES, PAGES)
def test_every_read_is_that_of_a_store_that_commits_at_once(moves, page) -> None:  # type: ignore[no-untyped-def]
    base = MemoryStore()
    pending = PendingStore(base)
    under: dict[int, deque[RowBatch]] = {}
    for what, about in moves:
        if what == "propose":
            made = [batch(group, ops) for group, ops in dict(about).items()]
            pending.propose(made)
            for one in made:
                under.setdefault(one.group, deque()).append(one)
        elif what == "drop":
            pending.drop(about)
            under.pop(about, None)
        elif under.get(about):
            pending.commit([about])
            under[about].popleft()
        assert pending.under_way(1) == len(under.get(1, ()))
        whole = shown(base, under)
        _same_reads(pending, whole, page)
        _same_reads(pending.snapshot(), whole.snapshot(), page)
    for group in list(under):
        pending.drop(group)
    _same_reads(pending, base, page)
    assert not any(pending._rows) and not pending._lanes and not pending._ranges


def _same_reads(pending, whole, page: tuple[int, int]) -> None:  # type: ignore[no-untyped-def]
    keys = [key(group, lane, at) for group in (1, 2, 3) for lane in (0, 1) for at in range(6)]
    for family in range(len(FAMILIES)):
        assert pending.get_many(family, keys) == whole.get_many(family, keys)
        assert pending.scan(family, b"", b"\xff", ALL, ALL) == whole.scan(
            family, b"", b"\xff", ALL, ALL
        )
    for start, end in ((keys[1], keys[5]), (keys[0][:12], keys[6][:12]), (b"", b"\xff")):
        for family in (MESSAGES, STATE):
            assert pending.scan(family, start, end, *page) == whole.scan(family, start, end, *page)


def test_a_snapshot_does_not_move() -> None:
    base = MemoryStore()
    pending = PendingStore(base)
    pending.propose([RowBatch(1, 1, [(PUT | MESSAGES, key(1, 0, 0), b"a")])])
    kept = pending.snapshot()
    pending.commit([1])
    pending.propose([RowBatch(1, 2, [(DELETE | MESSAGES, key(1, 0, 0), b"")])])
    assert kept.get(MESSAGES, key(1, 0, 0)) == b"a"
    assert pending.get(MESSAGES, key(1, 0, 0)) is None
    assert base.get(MESSAGES, key(1, 0, 0)) == b"a"


def test_what_was_put_before_its_range_was_deleted_in_the_same_batch_is_gone() -> None:
    pending = PendingStore(MemoryStore())
    ops: list[Op] = [
        (PUT | MESSAGES, key(1, 0, 1), b"a"),
        (DELETE_RANGE | MESSAGES, key(1, 0, 0), key(1, 1, 0)),
        (PUT | MESSAGES, key(1, 0, 2), b"b"),
    ]
    pending.propose([RowBatch(1, 1, ops)])
    assert pending.scan(MESSAGES, b"", b"\xff", ALL, ALL) == [(key(1, 0, 2), b"b")]
