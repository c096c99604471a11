"""FilaBulk's hand-written decoders agree with the generated classes, and count before they make."""

from typing import Any

import pytest
from google.protobuf.message import DecodeError
from hypothesis import example, given
from hypothesis import strategies as st

from fila.broker.options import Options, fits
from fila.edges.grpc.bulk_codec import check_count, decode_enqueue_with, decode_release
from fila.edges.grpc.call import parser
from fila.edges.grpc.message_codec import decode_enqueue, decode_settlements, varint
from fila.edges.grpc.protobuf_reader import FIELDS_MAX, HEADERS_MAX, InvalidMessage
from fila.edges.grpc.v1 import admin_pb2
from fila.edges.grpc.v1 import bulk_pb2 as pb
from fila.wire.message import decode_headers, payload_of

MANY = 65_536
texts = st.text(max_size=20)
messages = st.builds(
    pb.MessageWithOptions,
    queue=texts,
    headers=st.dictionaries(texts, texts, max_size=3),
    payload=st.binary(max_size=200),
    delay_ms=st.integers(0, 2**64 - 1),
    idempotency_key=texts,
    fairness_key=texts,
    weight=st.integers(0, 2**32 - 1),
    throttle_keys=st.lists(texts, max_size=4),
)


@given(st.lists(messages, max_size=5))
def test_enqueue_with_means_what_the_generated_class_says(
    wanted: list[pb.MessageWithOptions],
) -> None:
    data = pb.EnqueueWithRequest(messages=wanted).SerializeToString()
    items = decode_enqueue_with(data, MANY)
    assert [_told(*item) for item in items] == [_said(one) for one in wanted]


@given(texts, st.lists(texts, max_size=5))
def test_release_means_what_the_generated_class_says(queue: str, ids: list[str]) -> None:
    data = pb.ReleaseRequest(queue=queue, message_ids=ids).SerializeToString()
    name, found = decode_release(data, MANY)
    assert name.decode() == queue
    assert [one.decode() for one in found] == ids


@given(st.binary(max_size=60))
@example(b"\x0a\x02\x38\x80")  # a number that goes on after its message
@example(b"\x0a\x03\x20\xff\xff\x01")
@example(b"\x0a\x01\x0a")
@example(b"\x12\x05a")
def test_bytes_the_generated_classes_refuse_are_refused_and_others_read_alike(data: bytes) -> None:
    for decode, generated in (
        (decode_enqueue_with, pb.EnqueueWithRequest),
        (decode_release, pb.ReleaseRequest),
    ):
        try:
            wanted: Any = generated.FromString(data)
        except DecodeError:
            with pytest.raises(InvalidMessage):
                decode(data, MANY)
            continue
        try:
            found: Any = decode(data, MANY)
        except InvalidMessage:
            continue  # stricter: tags longer than they need to be, groups
        if isinstance(found, tuple):
            assert found[0].decode() == wanted.queue
            assert [one.decode() for one in found[1]] == list(wanted.message_ids)
        else:
            assert [_told(*item) for item in found] == [_said(one) for one in wanted.messages]


def test_items_are_counted_while_they_are_read() -> None:
    with pytest.raises(InvalidMessage, match="may hold 10 messages"):
        decode_enqueue_with(b"\x0a\x00" * 1_000_000, 10)
    with pytest.raises(InvalidMessage, match="may hold 10 ids"):
        decode_release(b"\x12\x00" * 1_000_000, 10)
    assert len(decode_enqueue_with(b"\x0a\x00" * 10, 10)) == 10
    assert len(decode_release(b"\x12\x00" * 10, 10)[1]) == 10


def test_what_one_message_lists_is_counted_as_well() -> None:
    def item(field: bytes, count: int) -> bytes:
        inner = field * count
        return b"\x0a" + varint(len(inner)) + inner

    [(_, one)] = decode_enqueue_with(item(b"\x42\x01k", 20), MANY)
    assert one is not None and len(one.throttle_keys) == 17 and not fits(one)
    for tag in (0x0A, 0x12, 0x1A, 0x32, 0x42, 0x48):  # of one, of many, and of what nobody knows
        field = bytes((tag, 0))
        with pytest.raises(InvalidMessage, match="far too many fields"):
            decode_enqueue_with(item(field, 3 * HEADERS_MAX), MANY)
        with pytest.raises(InvalidMessage, match="far too many fields"):
            decode_enqueue(item(field, 3 * HEADERS_MAX), MANY)
        with pytest.raises(InvalidMessage, match="far too many fields"):
            decode_settlements(item(field, 3 * HEADERS_MAX), MANY)
    inside = item(b"\x12\x28" + b"\x0a\x00" * 20, 1)  # a header that says its name again and again
    with pytest.raises(InvalidMessage, match="far too many fields"):
        decode_enqueue(inside, MANY)


def test_all_fields_of_a_request_together_are_counted() -> None:
    one = b"\x0a\x80\x02" + b"\x0a\x00" * 128
    assert len(decode_enqueue(one * 100, MANY)[0]) == 100
    for decode in (decode_enqueue, decode_settlements, decode_enqueue_with):
        with pytest.raises(InvalidMessage, match="far too many fields"):
            decode(one * (FIELDS_MAX // 128 + 2), MANY)
    with pytest.raises(InvalidMessage, match="far too many fields"):
        decode_enqueue(b"\x10\x00" * (FIELDS_MAX + 1), MANY)


def test_generated_classes_get_nothing_that_was_not_counted() -> None:
    parse = parser(admin_pb2.SetAclRequest)
    granted = admin_pb2.SetAclRequest(
        key_id="k", permissions=[admin_pb2.AclPermission()] * 100
    ).SerializeToString()
    assert len(parse(granted, MANY).permissions) == 100
    with pytest.raises(InvalidMessage, match="far too many fields"):
        parse(b"\x12\x00" * 2_000_000, MANY)
    check_count(b"\x12\x00" * MANY, MANY)


def test_options_are_measured_before_anything_is_remembered_of_them() -> None:
    assert fits(Options(b"", throttle_keys=(b"k" * 512,) * 16))
    assert not fits(Options(b"", throttle_keys=(b"k" * 513,)))
    assert not fits(Options(b"", throttle_keys=(b"k", b"")))
    assert not fits(Options(b"", throttle_keys=(b"k",) * 17))
    assert not fits(Options(b"", fairness_key=b"k" * 513))


def _told(queue: bytes, one: Options | None) -> tuple[object, ...]:
    assert one is not None
    return (
        queue.decode(),
        decode_headers(one.body),
        payload_of(one.body),
        one.delay_ms,
        one.idempotency_key.decode(),
        one.fairness_key.decode(),
        one.weight,
        tuple(key.decode() for key in one.throttle_keys),
    )


def _said(one: pb.MessageWithOptions) -> tuple[object, ...]:
    return (
        one.queue,
        dict(one.headers),
        one.payload,
        one.delay_ms,
        one.idempotency_key,
        one.fairness_key,
        one.weight,
        tuple(one.throttle_keys),
    )
