"""The journal's files: what is written is read, however it ended."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.core.effect import EVENT_DELIVERED, EVENT_ENQUEUED, Event
from fila.core.waits import Waits
from fila.journal import files, reader
from fila.journal.columns import Enqueued, config_batch, events_batch, messages_batch
from fila.journal.files import HotFile, Stream
from fila.journal.recovery import recover
from fila.journal.schema import arrow_schema
from fila.wire.message import message_body

NOW = 1_790_000_000_000_000_000
STREAM = Stream("events", "fila", 7)


def enqueued(number: int, ts: int = NOW) -> Event:
    return Event(
        ts, EVENT_ENQUEUED, "q", number.to_bytes(16, "big"), fairness_key=b"acme", weight=1
    )


def batch(first: int, count: int) -> object:
    return events_batch([enqueued(first + at) for at in range(count)], first, "fila", 7)


@given(st.lists(st.integers(0, 10**12), min_size=8, max_size=8), st.integers(0, 10**15))
def test_the_parts_of_a_wait_add_up_to_the_microsecond(parts: list[int], start: int) -> None:
    since = NOW + start
    waits = Waits(*parts)
    event = Event(since + sum(parts), EVENT_DELIVERED, "q", bytes(16), since_ns=since, waits=waits)
    (row,) = events_batch([event], 1, "fila", 7).to_pylist()
    whole = (event.ts_ns // 1000) - (since // 1000)
    assert sum(row[f"wait_{name}_us"] for name in Waits._fields) == whole


def test_an_event_that_is_no_delivery_has_no_wait() -> None:
    (row,) = events_batch([enqueued(1)], 1, "fila", 7).to_pylist()
    assert row["wait_own_us"] is None
    assert row["message_id"] == "00000000-0000-0000-0000-000000000001"
    assert row["since"] is None


def test_a_sealed_part_has_the_name_and_the_rows_it_should(tmp_path: Path) -> None:
    (part,) = files.seal(tmp_path, STREAM, [batch(1, 3), batch(4, 2)])
    assert part.name == "part-fila-7-000000000001-000000000005.parquet"
    assert part.parent == tmp_path / "events" / "date=2026-09-21" / "hour=14"
    (table,) = reader.events(tmp_path)
    assert table["seq"].to_pylist() == [1, 2, 3, 4, 5]


def test_sealing_the_same_rows_twice_changes_nothing(tmp_path: Path) -> None:
    (part,) = files.seal(tmp_path, STREAM, [batch(1, 3)])
    before = part.stat().st_mtime_ns
    assert files.seal(tmp_path, STREAM, [batch(1, 3)]) == [part]
    assert part.stat().st_mtime_ns == before
    assert [path.name for path in part.parent.iterdir()] == [part.name]


def test_rows_of_two_days_become_two_parts(tmp_path: Path) -> None:
    day = 86_400 * 10**9
    events = [enqueued(1), enqueued(2, NOW + day)]
    parts = files.seal(tmp_path, STREAM, [events_batch(events, 1, "fila", 7)])
    folders = [str(part.parent.relative_to(tmp_path / "events")) for part in parts]
    assert folders == ["date=2026-09-21/hour=14", "date=2026-09-22/hour=14"]


@pytest.mark.parametrize("cut", range(0, 2_000, 53))
def test_a_truncated_hot_file_loses_no_more_than_its_last_flush(tmp_path: Path, cut: int) -> None:
    hot = HotFile(tmp_path, STREAM, 1, arrow_schema("events"))
    sizes = [hot.path.stat().st_size]
    for at in range(3):
        hot.append(batch(1 + 10 * at, 10))
        sizes.append(hot.path.stat().st_size)
    length = max(0, sizes[-1] - cut)
    with hot.path.open("r+b") as file:
        file.truncate(length)
    whole = sum(1 for size in sizes[1:] if size <= length)
    assert len(files.read_hot(hot.path)) == whole
    recover(tmp_path)
    assert sum(table.num_rows for table in reader.events(tmp_path)) == 10 * whole
    assert files.hot_files(tmp_path) == []


def test_a_row_that_is_hot_and_sealed_is_read_once(tmp_path: Path) -> None:
    hot = HotFile(tmp_path, STREAM, 1, arrow_schema("events"))
    hot.append(batch(1, 5))
    files.seal(tmp_path, STREAM, hot.batches)
    hot.append(batch(6, 2))
    rows = [seq for table in reader.events(tmp_path) for seq in table["seq"].to_pylist()]
    assert rows == [1, 2, 3, 4, 5, 6, 7]


def test_old_days_are_retired(tmp_path: Path) -> None:
    files.seal(tmp_path, STREAM, [batch(1, 3)])
    assert files.retire(tmp_path, "events", "2026-09-21") == 0
    assert files.retire(tmp_path, "events", "2026-09-22") == 1
    assert list(reader.events(tmp_path)) == []


def test_messages_keep_headers_and_payload(tmp_path: Path) -> None:
    body = message_body({"tenant": "acme"}, b"\x00payload")
    rows = messages_batch(Enqueued("q", NOW, [bytes(16)], [body])).to_pylist()
    assert rows[0]["headers"] == [("tenant", "acme")]
    assert rows[0]["payload"] == b"\x00payload"


def test_config_rows_tell_key_and_value() -> None:
    event = Event(NOW, "config_changed", "", reason="throttle.x=1,2")
    (row,) = config_batch([event], "fila", 7).to_pylist()
    assert (row["key"], row["value"]) == ("throttle.x", "1,2")
