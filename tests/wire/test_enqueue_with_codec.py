"""The fast codec of EnqueueWith agrees with the layouts, on valid and on damaged bodies."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.wire import bodies as b
from fila.wire import enqueue_with_codec, layouts
from fila.wire.errors import OK, InvalidBody
from fila.wire.ids import id_text
from fila.wire.message import message_body
from tests.wire.strategies import body_of


@given(body_of(b.EnqueueWith))
def test_an_enqueue_with_options_is_cut_as_the_layout_says(body: Any) -> None:
    expected = [
        (
            item.queue.encode(),
            message_body(item.headers, item.payload),
            item.delay_ms,
            item.idempotency_key.encode(),
            item.fairness_key.encode(),
            item.weight,
            tuple(key.encode() for key in item.throttle_keys),
        )
        for item in body.messages
    ]
    assert enqueue_with_codec.decode_enqueue_with(layouts.encode(body)) == expected


@given(body_of(b.EnqueueWith), st.data())
def test_a_damaged_enqueue_with_options_is_refused_by_both_or_neither(
    body: Any, data: st.DataObject
) -> None:
    raw = bytearray(layouts.encode(body))
    place = data.draw(st.integers(0, len(raw) - 1))
    raw[place] = data.draw(st.integers(0, 255))
    damaged = bytes(raw[: data.draw(st.integers(0, len(raw)))])
    try:
        count: int | None = len(layouts.decode(b.EnqueueWith, damaged).messages)
    except InvalidBody:
        count = None
    if count is None:
        with pytest.raises(InvalidBody):
            enqueue_with_codec.decode_enqueue_with(damaged)
    else:
        assert len(enqueue_with_codec.decode_enqueue_with(damaged)) == count


@given(st.lists(st.tuples(st.integers(0, 255), st.booleans(), st.booleans()), max_size=5))
def test_results_go_both_ways(drawn: list[tuple[int, bool, bool]]) -> None:
    text = b"0190a0b1-c2d3-7e4f-8a5b-6c7d8e9f0a1b"
    results = [(code, text if stored else b"", known) for code, stored, known in drawn]
    raw = enqueue_with_codec.encode_enqueue_with_results(results)
    assert enqueue_with_codec.decode_enqueue_with_results(raw) == results
    record = layouts.decode(b.EnqueueWithResult, raw)
    assert [tuple(one) for one in record.results] == [(c, t.decode(), d) for c, t, d in results]


@given(st.lists(st.tuples(st.binary(min_size=16, max_size=16), st.booleans()), max_size=200))
def test_results_with_ids_throughout_are_the_same_written_by_columns(
    stored: list[tuple[bytes, bool]],
) -> None:
    raw = enqueue_with_codec.encode_stored(
        [id for id, _ in stored], bytes([known for _, known in stored])
    )
    results = [(OK, id_text(id), known) for id, known in stored]
    assert raw == enqueue_with_codec.encode_enqueue_with_results(results)
    assert enqueue_with_codec.decode_enqueue_with_results(raw) == results


@given(st.integers(1, 5), st.data())
def test_damaged_results_are_refused_by_both_or_neither(count: int, data: st.DataObject) -> None:
    raw = bytearray(enqueue_with_codec.encode_stored([bytes(16)] * count, bytes(count)))
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        record = layouts.decode(b.EnqueueWithResult, bytes(raw))
    except InvalidBody:
        with pytest.raises(InvalidBody):
            enqueue_with_codec.decode_enqueue_with_results(bytes(raw))
    else:
        found = enqueue_with_codec.decode_enqueue_with_results(bytes(raw))
        assert [(c, t.decode(), d) for c, t, d in found] == [tuple(one) for one in record.results]


def test_messages_of_a_bulk_writer_are_cut_one_by_one() -> None:
    """The same beginning and the same place again and again, and then another."""
    items = [
        b.EnqueueWithItem(queue, headers, b"%d" % n, 0, key, place, 1, ("t",))
        for n, (queue, headers, key, place) in enumerate(
            [("q", {}, "", "a")] * 3
            + [("q", {"h": "é"}, "kéy", "a"), ("q", {}, "k", "b"), ("qq", {}, "k2", "é")] * 2
            + [("q", {}, "", "a")]
        )
    ]
    found = enqueue_with_codec.decode_enqueue_with(layouts.encode(b.EnqueueWith(tuple(items))))
    assert found == [
        (
            one.queue.encode(), message_body(one.headers, one.payload), 0,
            one.idempotency_key.encode(), one.fairness_key.encode(), 1, (b"t",),
        )
        for one in items
    ]  # fmt: skip
