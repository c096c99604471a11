"""The hand-written codec agrees with the generated classes, byte for meaning."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fila.core.effect import Delivery
from fila.edges.grpc import message_codec
from fila.edges.grpc.message_codec import DeliveryEncoder
from fila.edges.grpc.protobuf_reader import InvalidMessage
from fila.edges.grpc.v1 import service_pb2 as pb
from fila.wire.ids import id_text
from fila.wire.message import decode_headers, message_body, payload_of

texts = st.text(max_size=40)
long_texts = st.one_of(texts, st.integers(100, 20_000).map(lambda size: "x" * size))
headers = st.dictionaries(texts, long_texts, max_size=4)
payloads = st.one_of(st.binary(max_size=50), st.integers(100, 70_000).map(lambda size: b"p" * size))
messages = st.builds(pb.EnqueueMessage, queue=texts, headers=headers, payload=payloads)
numbers = st.integers(0, 2**64 - 1)
ids = st.binary(min_size=16, max_size=16)

MANY = 65_536


@given(st.lists(messages, max_size=6), numbers)
def test_a_request_means_what_the_generated_class_says(
    wanted: list[pb.EnqueueMessage], number: int
) -> None:
    request = pb.StreamEnqueueRequest(messages=wanted, sequence_number=number)
    items, found = message_codec.decode_enqueue(request.SerializeToString(), MANY)
    assert found == number
    assert len(items) == len(wanted)
    for (queue, body), message in zip(items, wanted, strict=True):
        assert queue.decode() == message.queue
        assert body is not None
        assert decode_headers(body) == dict(message.headers)
        assert payload_of(body) == message.payload


@given(st.lists(st.builds(pb.NackMessage, queue=texts, message_id=texts, error=long_texts)))
def test_settlements_mean_what_the_generated_class_says(wanted: list[pb.NackMessage]) -> None:
    found = message_codec.decode_settlements(
        pb.NackRequest(messages=wanted).SerializeToString(), MANY
    )
    assert [(queue.decode(), id.decode(), error.decode()) for queue, id, error in found] == [
        (one.queue, one.message_id, one.error) for one in wanted
    ]


# Bytes that nearly are a message: known and unknown fields whose tags, lengths and numbers may be
# longer than they need to be, too large, or lies.
padding = st.sampled_from((b"", b"", b"", b"\x80", b"\x80" * 3, b"\x80" * 8))
tags = st.one_of(
    st.sampled_from((0x0A, 0x10, 0x12, 0x1A)),
    st.integers(0, 255),
    st.integers(0, 2**35),
)
values = st.one_of(st.integers(0, 12), st.integers(0, 2**64 - 1))


def padded(value: int, extra: bytes) -> bytes:
    """A varint, with bytes at its end that say nothing."""
    if not extra:
        return message_codec.varint(value)
    digits = bytearray(message_codec.varint(value))
    digits[-1] |= 0x80
    return bytes(digits) + extra[1:] + b"\x00"


fields = st.builds(
    lambda tag, tag_extra, value, value_extra, rest: (
        padded(tag, tag_extra) + padded(value, value_extra) + rest
    ),
    tags,
    padding,
    values,
    padding,
    st.binary(max_size=12),
)
nearly = st.recursive(
    st.lists(fields, max_size=4).map(b"".join),
    lambda inner: st.builds(
        lambda tag, body, more: bytes((tag,)) + message_codec.varint(len(body)) + body + more,
        st.sampled_from((0x0A, 0x12, 0x1A)),
        inner,
        inner,
    ),
    max_leaves=4,
)

# What random runs have found.
FOUND = [
    bytes.fromhex("fd8080801000000000"),  # a tag above 32 bits
    b"\xf8\xff\xff\xff\x7f\x01",
    b"\x8a\x80\x80\x80\x80\x00\x00",  # a tag of six bytes
    b"\x8a\x00\x00",  # a known field, its tag a byte longer than it needs to be
    b"\x0a\x80\x80\x80\x80\x80\x00",  # a length of six bytes
    b"\x0a" + b"\x80" * 9 + b"\x02",  # a length of which 64 bits are nothing
    b"\x1a\x80\x80\x80\x80\x80\x00",
    b"\x0a\x08\x12\x06\x0a\x01\xff\x0a\x01k",  # a header's name that is not UTF-8, then one
    b"\x0a\x04\x12\x02\x08\x00",  # a header with a field that headers do not have
    b"\x00\x05",  # no field number
    b"\x80\x00\x05",
    b"\x1b\x1c",  # a group
    b"\x1e",
    b"\x10" + b"\xff" * 10 + b"\x01",  # a number of eleven bytes
]


def _only_generated_classes_read(refusal: InvalidMessage) -> bool:
    """Groups, and tags longer than they need to be: nobody sends either."""
    return "kind that is not in use" in str(refusal) or "longer than it needs" in str(refusal)


@given(st.one_of(st.binary(max_size=200), nearly))
def test_bytes_the_generated_class_refuses_are_refused_and_others_read_alike(data: bytes) -> None:
    try:
        items, number = message_codec.decode_enqueue(data, MANY)
    except InvalidMessage as error:
        if not _only_generated_classes_read(error):
            with pytest.raises(Exception, match="Error parsing"):
                pb.StreamEnqueueRequest.FromString(data)
        return
    request = pb.StreamEnqueueRequest.FromString(data)
    assert number == request.sequence_number
    assert [queue.decode() for queue, _ in items] == [one.queue for one in request.messages]
    assert [payload_of(body) for _, body in items if body is not None] == [
        one.payload for one in request.messages
    ]
    assert [decode_headers(body) for _, body in items if body is not None] == [
        dict(one.headers) for one in request.messages
    ]


@given(st.one_of(st.binary(max_size=200), nearly))
def test_settlements_the_generated_class_refuses_are_refused_and_others_read_alike(
    data: bytes,
) -> None:
    try:
        items = message_codec.decode_settlements(data, MANY)
    except InvalidMessage as error:
        if not _only_generated_classes_read(error):
            with pytest.raises(Exception, match="Error parsing"):
                pb.NackRequest.FromString(data)
        return
    found = [(queue.decode(), id.decode(), error.decode()) for queue, id, error in items]
    request = pb.NackRequest.FromString(data)
    assert found == [(one.queue, one.message_id, one.error) for one in request.messages]


for _bytes in FOUND:
    example(_bytes)(test_bytes_the_generated_class_refuses_are_refused_and_others_read_alike)
    example(_bytes)(test_settlements_the_generated_class_refuses_are_refused_and_others_read_alike)


@given(st.lists(messages, min_size=1, max_size=3), st.data())
def test_a_request_cut_short_is_refused_or_reads_as_less(
    wanted: list[pb.EnqueueMessage], data: st.DataObject
) -> None:
    whole = pb.EnqueueRequest(messages=wanted).SerializeToString()
    cut = whole[: data.draw(st.integers(0, len(whole)))]
    try:
        items, _ = message_codec.decode_enqueue(cut, MANY)
    except InvalidMessage:
        with pytest.raises(Exception, match="Error parsing"):
            pb.EnqueueRequest.FromString(cut)
    else:
        assert len(items) == len(pb.EnqueueRequest.FromString(cut).messages)


def test_unknown_fields_are_skipped() -> None:
    known = pb.EnqueueMessage(queue="q", payload=b"p", headers={"a": "b"}).SerializeToString()
    unknown = b"\x48\xff\x01" + b"\x51" + bytes(8) + b"\x5a\x03abc" + b"\x65" + bytes(4)
    inner = unknown + known + unknown
    request = unknown + b"\x0a" + message_codec.varint(len(inner)) + inner + unknown
    ((queue, body),), number = message_codec.decode_enqueue(request, MANY)
    assert (queue, number) == (b"q", 0)
    assert body == message_body({"a": "b"}, b"p")


def test_the_last_of_two_values_counts() -> None:
    inner = b"\x0a\x01a\x0a\x01b\x1a\x01x\x1a\x01y"
    ((queue, body),), _ = message_codec.decode_enqueue(
        b"\x0a" + message_codec.varint(len(inner)) + inner, MANY
    )
    assert (queue, payload_of(body or b"")) == (b"b", b"y")


def test_text_that_is_not_utf_8_is_refused() -> None:
    for inner in (b"\x0a\x01\xff", b"\x12\x03\x0a\x01\xff", b"\x12\x03\x12\x01\xff"):
        with pytest.raises(InvalidMessage, match="UTF-8"):
            message_codec.decode_enqueue(b"\x0a" + message_codec.varint(len(inner)) + inner, MANY)
    with pytest.raises(InvalidMessage, match="UTF-8"):
        message_codec.decode_settlements(b"\x0a\x03\x12\x01\xff", MANY)


def test_a_request_with_more_items_than_allowed_is_refused_at_the_limit() -> None:
    with pytest.raises(InvalidMessage, match="may hold 10 messages"):
        message_codec.decode_enqueue(b"\x0a\x00" * 11, 10)
    with pytest.raises(InvalidMessage, match="may hold 10 messages"):
        message_codec.decode_settlements(b"\x0a\x00" * 11, 10)
    assert len(message_codec.decode_enqueue(b"\x0a\x00" * 10, 10)[0]) == 10


@pytest.mark.parametrize(
    "fields",
    [{"a": "x" * 65_536}, {"x" * 65_536: "a"}, {str(at): "" for at in range(65_536)}],
    ids=["value", "name", "count"],
)
def test_headers_that_fit_no_message_leave_the_item_without_a_body(fields: dict[str, str]) -> None:
    request = pb.EnqueueRequest(messages=[pb.EnqueueMessage(queue="q", headers=fields)])
    items, _ = message_codec.decode_enqueue(request.SerializeToString(), MANY)
    assert items == [(b"q", None)]


@given(
    st.lists(st.one_of(ids, st.tuples(st.integers(0, 5), long_texts)), max_size=5),
    st.one_of(st.none(), numbers),
)
def test_enqueue_results_read_as_they_were_meant(results: list[Any], number: int | None) -> None:
    data = message_codec.encode_enqueued(results, number)
    if number is None:
        response: Any = pb.EnqueueResponse.FromString(data)
    else:
        response = pb.StreamEnqueueResponse.FromString(data)
        assert response.sequence_number == number
    assert len(response.results) == len(results)
    for found, meant in zip(response.results, results, strict=True):
        if isinstance(meant, bytes):
            assert found.message_id == id_text(meant).decode()
        else:
            assert found.WhichOneof("result") == "error"
            assert (found.error.code, found.error.message) == meant


@given(st.lists(st.one_of(st.none(), st.tuples(st.integers(0, 3), texts)), max_size=5))
def test_settlement_results_read_as_they_were_meant(faults: list[Any]) -> None:
    responses: list[Any] = [
        pb.AckResponse.FromString(message_codec.encode_settled(faults)),
        pb.NackResponse.FromString(message_codec.encode_settled(faults)),
    ]
    for response in responses:
        assert len(response.results) == len(faults)
        for found, meant in zip(response.results, faults, strict=True):
            assert found.WhichOneof("result") == ("success" if meant is None else "error")
            if meant is not None:
                assert (found.error.code, found.error.message) == meant


delivered = st.tuples(
    ids,
    headers,
    payloads,
    st.integers(0, 2**32 - 1),  # attempts
    st.integers(1, 2**32 - 1),  # weight
    st.integers(0, 2**62),  # enqueued
    texts,  # fairness key
    st.lists(texts, max_size=3),  # throttle keys
)


@given(st.lists(delivered, min_size=1, max_size=5), st.integers(0, 2**62), texts)
def test_a_delivery_reads_as_it_was_meant(wanted: list[Any], leased_ns: int, queue: str) -> None:
    encoder = DeliveryEncoder(queue)
    for _ in range(2):  # the second time with labels it remembers
        data = encoder.encode(_delivery(wanted, leased_ns))
        assert data[0] == 0
        assert int.from_bytes(data[1:5], "big") == len(data) - 5
        response = pb.ConsumeResponse.FromString(data[5:])
        assert len(response.messages) == len(wanted)
        for message, one in zip(response.messages, wanted, strict=True):
            id, fields, payload, attempts, weight, enqueued_ns, key, throttle_keys = one
            assert message.id == id_text(id).decode()
            assert dict(message.headers) == fields
            assert message.payload == payload
            assert message.metadata.fairness_key == key
            assert message.metadata.weight == weight
            assert list(message.metadata.throttle_keys) == throttle_keys
            assert message.metadata.attempt_count == attempts
            assert message.metadata.queue_id == queue
            assert _ns(message.timestamps.enqueued_at) == enqueued_ns
            assert _ns(message.timestamps.leased_at) == leased_ns


def _delivery(wanted: list[Any], leased_ns: int) -> Delivery:
    entries = []
    lanes = []
    for id, fields, payload, attempts, weight, enqueued_ns, key, throttle_keys in wanted:
        body = message_body(fields, payload)
        entries.append((bytes(20) + id, 0, attempts, weight, enqueued_ns, 0, 0, 0, body))
        names = tuple(one.encode() for one in throttle_keys)
        lanes.append(SimpleNamespace(key=SimpleNamespace(name=key.encode()), throttle_keys=names))
    return Delivery(None, 1, leased_ns, entries, lanes, [])  # type: ignore[arg-type]


def _ns(moment: Any) -> int:
    return int(moment.seconds) * 1_000_000_000 + int(moment.nanos)
