from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.core import rows
from fila.core.command import Enqueue
from fila.core.lane import Lane
from fila.core.rows import CorruptRowError, LaneRow, LedgerRow, QueueRow
from fila.core.settings import Settings
from fila.core.verdict import Assignment
from tests.core.turn import Turns, id_of

U32 = st.integers(0, 2**32 - 1)
U64 = st.integers(0, 2**64 - 1)
FROM_1 = st.integers(1, 2**32 - 1)
ID = st.binary(min_size=16, max_size=16)
NAME = st.binary(max_size=300)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=50)

KEY_PARTS = st.tuples(U32, U64, U64, ID)


# --- key order


@given(st.lists(KEY_PARTS, min_size=2, max_size=20))
def test_the_byte_order_of_message_keys_is_the_order_of_queue_lane_stamp_and_id(
    parts: list[tuple[int, int, int, bytes]],
) -> None:
    by_bytes = sorted(parts, key=lambda one: rows.MESSAGE_KEY.pack(*one))
    assert by_bytes == sorted(parts)


@given(a=KEY_PARTS, b=KEY_PARTS)
def test_a_message_key_lies_within_the_range_of_its_own_lane_only(
    a: tuple[int, int, int, bytes], b: tuple[int, int, int, bytes]
) -> None:
    prefix = rows.lane_prefix(a[0], a[1])
    if prefix != b"\xff" * 12:
        inside = prefix <= rows.MESSAGE_KEY.pack(*b) < rows.after(prefix)
        assert inside == (a[:2] == b[:2])


@given(group=U32, positions=st.lists(U64, min_size=2, max_size=10))
def test_ledger_keys_sort_by_position(group: int, positions: list[int]) -> None:
    keys = sorted(rows.ledger_key(group, position) for position in positions)
    assert [rows.ledger_position(key) for key in keys] == sorted(positions)


@given(
    arrivals=st.lists(
        st.tuples(st.sampled_from([b"a", b"b"]), st.integers(0, 3), st.integers(0, 2)),
        min_size=1,
        max_size=30,
    )
)
def test_a_scan_of_a_lane_is_in_delivery_order(arrivals: list[tuple[bytes, int, int]]) -> None:
    """Key order is delivery order: what the store lists first is what a consumer gets first."""
    turns = Turns(Settings(window_messages=3, page_messages=2))
    turns.create("q")
    for at, (key, delay, pause) in enumerate(arrivals):
        assignment = Assignment(key, 1, ())
        turns.turn(Enqueue("q", [id_of(at + 1)], [b"body.."], [assignment], [delay * 100]))
        turns.wait(pause * 50_000_000)
    turns.wait(300_000_000)
    stored: dict[bytes, list[bytes]] = {}
    names = {lane.number: key for key in (b"a", b"b") for lane in lanes_of(turns, key)}
    for key, _ in turns.rows(rows.MESSAGES):
        lane = int.from_bytes(key[4:12], "big")
        stored.setdefault(names[lane], []).append(key[rows.ID_AT :])
    outcome = turns.drain("q")
    delivered: dict[bytes, list[bytes]] = {}
    for key, id in zip(outcome.keys(), outcome.ids(), strict=True):
        delivered.setdefault(key, []).append(id)
    assert delivered == stored


def lanes_of(turns: Turns, key: bytes) -> list[Lane]:
    found = turns.queue("q").keys.get(key)
    return list(found.lanes.values()) if found else []


# --- ranges


@pytest.mark.parametrize(
    ("prefix", "end"),
    [(b"\0", b"\1"), (b"a\xff", b"b\0"), (b"\0\0\0\7", b"\0\0\0\x08"), (b"g\0\xff", b"g\1\0")],
)
def test_after_a_prefix_comes_the_next_prefix_of_its_length(prefix: bytes, end: bytes) -> None:
    assert rows.after(prefix) == end


@given(prefix=st.binary(min_size=1, max_size=12), rest=st.binary(max_size=12))
def test_after_is_above_everything_with_the_prefix(prefix: bytes, rest: bytes) -> None:
    if prefix != b"\xff" * len(prefix):
        assert prefix + rest < rows.after(prefix)


# --- records


@given(
    expires=U64,
    leased=U64,
    consumer=TEXT,
    keys=st.lists(KEY_PARTS.map(lambda parts: rows.MESSAGE_KEY.pack(*parts)), max_size=10),
)
def test_a_lease_comes_back_as_it_was_stored(
    expires: int, leased: int, consumer: str, keys: list[bytes]
) -> None:
    row = rows.read_lease(rows.lease_row(expires, leased, consumer, keys))
    assert row == (expires, leased, consumer, [key[4:] for key in keys])


ROW = st.builds(
    QueueRow,
    U32,
    U32,
    U64,
    U64,
    st.none() | TEXT,
    st.none() | TEXT,
    U32,
    FROM_1,
    st.booleans(),
    U64,
    st.booleans(),
    st.booleans(),
    U32,
    U64,
    U64,
    U64,
    U64,
    st.booleans(),
    U64,
)


@given(ROW)
def test_a_queue_comes_back_as_it_was_stored(row: QueueRow) -> None:
    assert rows.read_queue(rows.queue_row(row)) == row


def test_a_queue_of_the_first_version_is_read() -> None:
    row = QueueRow(3, 3, 30_000, 7, "return {}", None)
    first = b"\x01" + rows.queue_row(row)[1:-1]  # without the count of its settings
    assert rows.read_queue(first) == row


def test_a_queue_with_a_setting_of_a_later_day_is_refused() -> None:
    value = rows.queue_row(QueueRow(1, 1, 1, 1, None, None))
    later = value[:-1] + b"\x01" + b"\xfe" + b"\0" * 8
    with pytest.raises(CorruptRowError, match="does not know"):
        rows.read_queue(later)


def test_an_empty_script_is_not_the_same_as_none() -> None:
    row = QueueRow(1, 1, 30_000, 0, "", None)
    assert rows.read_queue(rows.queue_row(row)) == row


@given(tokens=st.floats(allow_nan=False), at_ns=U64)
def test_a_bucket_level_comes_back_to_the_last_bit(tokens: float, at_ns: int) -> None:
    assert rows.read_bucket(rows.bucket_row(tokens, at_ns)) == (tokens, at_ns)


@given(st.builds(LaneRow, U32, U64, U64, U64, U64, NAME, st.lists(NAME, max_size=4).map(tuple)))
def test_a_lane_comes_back_as_it_was_stored(row: LaneRow) -> None:
    assert rows.read_lane(rows.lane_row(row)) == row


@given(
    now=U64,
    clocks=st.lists(st.tuples(U32, U64), max_size=4),
    lanes=st.lists(st.tuples(U32, U64, U32, U64, U64, U64, U64), max_size=6),
)
def test_a_ledger_record_comes_back_as_it_was_stored(
    now: int, clocks: list[tuple[int, int]], lanes: list[tuple[int, int, int, int, int, int, int]]
) -> None:
    value = rows.ledger_head(now, clocks) + b"".join(rows.pack_ledger_lane(*one) for one in lanes)
    assert rows.read_ledger(value) == LedgerRow(now, clocks, lanes)


# --- what the docstring draws


def test_a_message_key_has_36_bytes_and_the_id_at_its_end() -> None:
    key = rows.MESSAGE_KEY.pack(1, 2, 3, id_of(4))
    assert key.hex() == "0000000100000000000000020000000000000003" + id_of(4).hex()
    assert key[rows.ID_AT :] == id_of(4)
    assert len(key) - rows.LANE_AT == rows.LEASED_BYTES


def test_the_head_of_a_message_has_as_many_bytes_as_is_written_down() -> None:
    assert rows.MESSAGE_HEAD.size == rows.MESSAGE_HEAD_BYTES == 57


def test_a_ledger_mention_costs_48_bytes() -> None:
    assert len(rows.pack_ledger_lane(1, 2, 3, 4, 5, 6, 7)) == 48


def test_prefixes_of_the_state_family_do_not_overlap() -> None:
    prefixes = [
        rows.CONFIG_PREFIX,
        rows.BUCKET_PREFIX,
        rows.LANE_PREFIX,
        rows.LEDGER_PREFIX,
        rows.NEXT_QUEUE_KEY,
    ]
    assert len({prefix[:1] for prefix in prefixes}) == len(prefixes)


# --- versions


@pytest.mark.parametrize(
    ("read", "value", "what"),
    [
        (rows.read_lease, rows.lease_row(1, 2, "c", []), "lease"),
        (rows.read_queue, rows.queue_row(QueueRow(1, 1, 1, 1, None, None)), "queue"),
        (rows.read_bucket, rows.bucket_row(1.0, 1), "bucket"),
        (rows.read_lane, rows.lane_row(LaneRow(1, 1, 1, 1, 1, b"k", ())), "lane"),
        (rows.read_ledger, rows.ledger_head(1, []), "ledger"),
    ],
)
def test_a_record_of_another_version_is_refused_and_named(
    read: object, value: bytes, what: str
) -> None:
    with pytest.raises(CorruptRowError, match=f"a stored {what} has version 9"):
        read(b"\x09" + value[1:])  # type: ignore[operator]


def test_a_truncated_record_is_not_read_as_something_else() -> None:
    with pytest.raises(struct.error):
        rows.read_bucket(rows.bucket_row(1.0, 1)[:-1])
