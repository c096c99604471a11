"""Messages by columns travel as the same bytes as messages one by one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.client import columns, new_message
from fila.client.columns import Columns
from fila.client.errors import QueueNotFoundError
from fila.client.new_message import NewMessage
from fila.wire import errors
from fila.wire.errors import UnencodableField
from tests.wire.strategies import TEXT

MESSAGES = st.lists(
    st.builds(
        NewMessage,
        st.sampled_from(["orders", "mails"]),
        st.binary(max_size=40),
        st.none() | st.dictionaries(TEXT, TEXT, max_size=2),
        st.integers(0, 1 << 40),
        TEXT,
        TEXT,
        st.integers(0, 9),
        st.lists(TEXT, max_size=2),
    ),
    min_size=1,
    max_size=20,
)
FIELDS = NewMessage._fields


def columns_of(messages: list[NewMessage], left_out: set[str]) -> Columns:
    found: list[Any] = []
    for name in FIELDS:
        found.append(None if name in left_out else [getattr(one, name) for one in messages])
    return Columns(*found)


def bodies_of(calls: Any) -> list[bytes]:
    return [call.body.body for call in calls]


@given(MESSAGES, st.sets(st.sampled_from(FIELDS[2:])))
def test_columns_travel_as_the_messages_they_stand_for(
    messages: list[NewMessage], left_out: set[str]
) -> None:
    defaults = {name: NewMessage._field_defaults[name] for name in left_out}
    plain = [one._replace(**defaults) for one in messages]
    expected = bodies_of(call for call, _ in new_message.enqueue_frames(plain))
    assert bodies_of(columns.frames(columns_of(messages, left_out))) == expected


def test_one_queue_for_all_is_said_once() -> None:
    messages = [NewMessage("orders", b"x", None, 0, "", f"key{n % 3}") for n in range(10)]
    by_columns = Columns(
        "orders", [memoryview(b"x")] * 10, fairness_keys=[f"key{n % 3}" for n in range(10)]
    )
    assert bodies_of(columns.frames(by_columns)) == bodies_of(
        call for call, _ in new_message.enqueue_frames(messages)
    )


def test_a_frame_has_about_a_mib_and_says_what_came_of_it() -> None:
    calls: list[Any] = list(columns.frames(Columns("orders", [bytes(1_024)] * 2_500)))
    sizes = [int.from_bytes(call.body.body[:4], "big") for call in calls]
    assert sum(sizes) == 2_500
    assert [1 << 20 <= len(call.body.body) < 1_100_000 for call in calls[:-1]] == [True, True]
    results: list[Any] = [(errors.OK, b"id", False)] * sizes[1]
    results[3] = (errors.QUEUE_NOT_FOUND, b"", False)
    results[5] = (errors.OK, b"id", True)
    stored = calls[1].answer(results)
    assert (stored.first, stored.messages, stored.duplicates) == (sizes[0], sizes[1], 1)
    assert list(stored.refused) == [sizes[0] + 3]
    assert isinstance(stored.refused[sizes[0] + 3], QueueNotFoundError)


def test_frames_with_a_key_in_every_message_may_be_sent_again() -> None:
    def repeatable(keys: list[str | bytes] | None) -> bool:
        (call,) = columns.frames(Columns("q", [b"x", b"y"], idempotency_keys=keys))
        return call.repeatable

    assert repeatable(["a", b"b"])
    assert not repeatable(["a", ""])
    assert not repeatable(None)


def test_some_messages_can_be_taken_out() -> None:
    one = Columns("q", [b"a", b"b", b"c"], weights=[1, 2, 3])
    assert one.take([2, 0]) == Columns("q", [b"c", b"a"], weights=[3, 1])


def test_columns_of_different_lengths_are_a_mistake() -> None:
    with pytest.raises(ValueError):
        list(columns.frames(Columns("q", [b"a", b"b"], fairness_keys=["x"])))


def test_a_text_that_is_too_long_is_told() -> None:
    with pytest.raises(UnencodableField, match="idempotency_key"):
        list(columns.frames(Columns("q", [b"a"], idempotency_keys=["x" * 70_000])))
