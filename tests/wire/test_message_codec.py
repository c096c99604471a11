from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.wire import bodies as b
from fila.wire import ids, layouts, message, message_codec
from fila.wire.errors import InvalidBody
from tests.wire.strategies import TEXT, body_of

UUIDS = st.uuids()


@given(body_of(b.Enqueue))
def test_an_enqueue_is_cut_where_the_reference_codec_cuts_it(body: b.Enqueue) -> None:
    items = message_codec.decode_enqueue(layouts.encode(body))
    assert len(items) == len(body.messages)
    for (queue, raw, header_bytes), expected in zip(items, body.messages, strict=True):
        assert queue.decode() == expected.queue
        assert message.decode_headers(raw) == expected.headers
        assert message.payload_of(raw) == expected.payload
        assert message.payload_size_of(raw) == len(expected.payload)
        assert raw[header_bytes + 4 :] == expected.payload
        assert raw == message.message_body(expected.headers, expected.payload)


@given(body_of(b.Enqueue))
def test_an_enqueue_is_built_as_the_reference_codec_builds_it(body: b.Enqueue) -> None:
    pairs = [
        (
            message_codec.queue_field(item.queue.encode()),
            message.message_body(item.headers, item.payload),
        )
        for item in body.messages
    ]
    assert message_codec.encode_enqueue(pairs) == layouts.encode(body)


@given(body_of(b.Delivery), st.lists(UUIDS, min_size=5, max_size=5))
def test_a_delivery_is_the_same_for_both_codecs(body: b.Delivery, uuids: list[UUID]) -> None:
    messages = tuple(
        item._replace(id=str(uuid)) for item, uuid in zip(body.messages, uuids, strict=False)
    )
    items = [
        (
            uuid.bytes,
            message_codec.queue_field(item.queue.encode()),
            message.message_body(item.headers, item.payload),
            message_codec.lane_field(
                item.fairness_key.encode(),
                item.weight,
                [key.encode() for key in item.throttle_keys],
            ),
            item.attempt_count,
            item.enqueued_at_ms,
            item.leased_at_ms,
        )
        for item, uuid in zip(messages, uuids, strict=False)
    ]
    raw = message_codec.encode_delivery(items)
    assert raw == layouts.encode(b.Delivery(messages))
    received = tuple(
        b.DeliveryItem(
            text.decode(),
            queue.decode(),
            message.decode_headers(inner),
            message.payload_of(inner),
            fairness_key.decode(),
            weight,
            tuple(key.decode() for key in throttle_keys),
            attempts,
            enqueued_at_ms,
            leased_at_ms,
        )
        for (
            text,
            queue,
            inner,
            fairness_key,
            weight,
            throttle_keys,
            attempts,
            enqueued_at_ms,
            leased_at_ms,
        ) in message_codec.decode_delivery(raw)
    )
    assert received == messages


@given(body_of(b.Ack), body_of(b.Nack))
def test_acks_and_nacks_are_the_same_for_both_codecs(acks: b.Ack, nacks: b.Nack) -> None:
    raw = layouts.encode(acks)
    assert message_codec.decode_acks(raw) == [
        (a.queue.encode(), a.id.encode()) for a in acks.messages
    ]
    assert raw == message_codec.encode_acks(
        [(message_codec.queue_field(a.queue.encode()), a.id.encode()) for a in acks.messages]
    )
    raw = layouts.encode(nacks)
    assert message_codec.decode_nacks(raw) == [
        (n.queue.encode(), n.id.encode(), n.error.encode()) for n in nacks.messages
    ]
    assert raw == message_codec.encode_nacks(
        [
            (message_codec.queue_field(n.queue.encode()), n.id.encode(), n.error.encode())
            for n in nacks.messages
        ]
    )


@given(st.lists(st.integers(0, 255), max_size=20))
def test_result_codes_are_the_same_for_both_codecs(codes: list[int]) -> None:
    raw = layouts.encode(b.AckResult(tuple(b.CodeItem(code) for code in codes)))
    assert message_codec.encode_codes(codes) == raw
    assert list(message_codec.decode_codes(raw)) == codes


@given(st.lists(st.tuples(st.integers(0, 255), st.just("") | UUIDS.map(str)), max_size=8))
def test_enqueue_results_are_the_same_for_both_codecs(results: list[tuple[int, str]]) -> None:
    raw = layouts.encode(b.EnqueueResult(tuple(b.EnqueueResultItem(*pair) for pair in results)))
    pairs = [(code, text.encode()) for code, text in results]
    assert message_codec.encode_enqueue_results(pairs) == raw
    assert message_codec.decode_enqueue_results(raw) == pairs


DECODERS: list[tuple[Callable[[bytes], Any], Any]] = [
    (message_codec.decode_enqueue, b.Enqueue),
    (message_codec.decode_enqueue_results, b.EnqueueResult),
    (message_codec.decode_delivery, b.Delivery),
    (message_codec.decode_acks, b.Ack),
    (message_codec.decode_nacks, b.Nack),
    (message_codec.decode_codes, b.AckResult),
]


def _verdict(decode: Callable[[bytes], Any], raw: bytes) -> str:
    try:
        decode(raw)
    except InvalidBody as error:
        return str(error)
    return "accepted"


@pytest.mark.parametrize(("fast", "body_type"), DECODERS, ids=lambda d: getattr(d, "__name__", ""))
@given(data=st.data())
def test_both_codecs_refuse_the_same_bytes_with_the_same_words(
    fast: Callable[[bytes], Any], body_type: Any, data: st.DataObject
) -> None:
    raw = bytearray(layouts.encode(data.draw(body_of(body_type))))
    for _ in range(data.draw(st.integers(0, 3))):
        if raw:
            raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(raw[: data.draw(st.integers(0, len(raw)))])
    assert _verdict(fast, cut) == _verdict(lambda body: layouts.decode(body_type, body), cut)


@pytest.mark.parametrize(("fast", "body_type"), DECODERS, ids=lambda d: getattr(d, "__name__", ""))
@given(raw=st.binary(max_size=120))
def test_random_bytes_get_the_same_verdict_from_both(
    fast: Callable[[bytes], Any], body_type: Any, raw: bytes
) -> None:
    assert _verdict(fast, raw) == _verdict(lambda body: layouts.decode(body_type, body), raw)


def test_long_ascii_headers_pass_though_their_lengths_are_not_ascii() -> None:
    raw = message.message_body({"k": "v" * 200, "n": "ü" * 100}, b"\xff\xfe")
    body = message_codec.encode_enqueue([(message_codec.queue_field(b"orders"), raw)])
    assert message_codec.decode_enqueue(body) == [(b"orders", raw, len(raw) - 6)]


def test_strings_of_the_largest_size_travel() -> None:
    longest = "x" * 65535
    raw = message.message_body({longest: longest}, b"")
    body = message_codec.encode_enqueue([(message_codec.queue_field(longest.encode()), raw)])
    [(queue, inner, header_bytes)] = message_codec.decode_enqueue(body)
    assert queue.decode() == longest
    assert message.decode_headers(inner) == {longest: longest}
    assert header_bytes == message.header_bytes_len(inner) == len(raw) - 4


def test_bytes_after_the_last_message_are_ignored() -> None:
    raw = message.message_body({}, b"p")
    body = message_codec.encode_enqueue([(message_codec.queue_field(b"q"), raw)]) + b"later"
    assert message_codec.decode_enqueue(body) == [(b"q", raw, 2)]


@given(UUIDS)
def test_ids_travel_as_text_and_come_back_as_bytes(uuid: UUID) -> None:
    assert ids.id_text(uuid.bytes) == str(uuid).encode()
    assert ids.parse_id(str(uuid).encode()) == uuid.bytes
    assert ids.parse_id(str(uuid).upper().encode()) == uuid.bytes


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"orders",
        b"0190a0b1c2d37e4f8a5b6c7d8e9f0a1b",
        b"0190a0b1-c2d3-7e4f-8a5b-6c7d8e9f0a1",
        b"0190a0b1-c2d3-7e4f-8a5b-6c7d8e9f0a1g",
        b"0190a0b1-c2d3-7e4f-8a5b-6c7d8e9f0a-b",
        b"0190a0b-1c2d3-7e4f-8a5b-6c7d8e9f0a1b",
        b"0190a0b1-c2d3-7e4f-8a5b-6c7d8e9f0a1 ",
        b"{0190a0b1-c2d3-7e4f-8a5b-6c7d8e9f0a}",
        "0190a0b1-c2d3-7e4f-8a5b-6c7d8e9f0ü".encode(),
    ],
)
def test_text_that_is_no_uuid_is_no_id(text: bytes) -> None:
    assert ids.parse_id(text) is None


@given(st.binary(min_size=30, max_size=40))
def test_no_text_makes_parse_id_raise(text: bytes) -> None:
    assert ids.parse_id(text) is None or len(text) == 36


@given(st.dictionaries(TEXT, TEXT, max_size=5), st.binary(max_size=50))
def test_a_message_body_gives_back_what_it_was_made_of(
    headers: dict[str, str], payload: bytes
) -> None:
    raw = message.message_body(headers, payload)
    assert message.decode_headers(raw) == headers
    assert message.payload_of(raw) == payload


@given(st.lists(st.tuples(TEXT, TEXT), max_size=5))
def test_releases_are_read_as_the_layout_says(pairs: list[tuple[str, str]]) -> None:
    body = b.Release(tuple(b.ReleaseItem(*pair) for pair in pairs))
    found = message_codec.decode_releases(layouts.encode(body))
    assert found == [(queue.encode(), id.encode()) for queue, id in pairs]
