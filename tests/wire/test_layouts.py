from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.wire import bodies as b
from fila.wire import layouts
from fila.wire import opcodes as op
from fila.wire.errors import InvalidBody, UnencodableField
from tests.wire.strategies import any_body, body_of

ALL = list(layouts.LAYOUTS)


def test_every_opcode_has_a_body_and_every_body_an_opcode() -> None:
    assert set(layouts.OPCODES.values()) == set(op.NAMES)
    assert set(layouts.OPCODES) == set(layouts.LAYOUTS)


@pytest.mark.parametrize("body_type", ALL, ids=lambda t: t.__name__)
def test_layout_and_record_name_the_same_fields_in_the_same_order(body_type: Any) -> None:
    assert tuple(layouts.LAYOUTS[body_type]) == body_type._fields


@pytest.mark.parametrize("body_type", ALL, ids=lambda t: t.__name__)
@given(data=st.data())
def test_what_is_encoded_decodes_to_itself(body_type: Any, data: st.DataObject) -> None:
    body = data.draw(body_of(body_type))
    assert layouts.decode(body_type, layouts.encode(body)) == body


@given(any_body(), st.binary(min_size=1, max_size=8))
def test_bytes_after_the_last_known_field_are_ignored(body: Any, extra: bytes) -> None:
    if any("optional" in str(kind) for kind in layouts.LAYOUTS[type(body)].values()) and (
        body[-1] is None
    ):
        return  # here the bytes would be the optional field
    assert layouts.decode(type(body), layouts.encode(body) + extra) == body


@given(any_body(), st.data())
def test_a_body_cut_short_is_refused_or_lacks_only_its_optional_fields(
    body: Any, data: st.DataObject
) -> None:
    raw = layouts.encode(body)
    if not raw:
        return
    cut = raw[: data.draw(st.integers(0, len(raw) - 1))]
    try:
        decoded = layouts.decode(type(body), cut)
    except InvalidBody:
        return
    layout = layouts.LAYOUTS[type(body)]
    optional = [name for name, kind in layout.items() if str(kind).startswith("optional ")]
    lacking = [name for name in optional if getattr(decoded, name) is None]
    assert lacking == optional[len(optional) - len(lacking) :] != []
    assert decoded == body._replace(**dict.fromkeys(lacking))


@given(st.sampled_from(ALL), st.binary(max_size=80))
def test_random_bytes_decode_or_raise_invalid_body(body_type: Any, raw: bytes) -> None:
    try:
        decoded = layouts.decode(body_type, raw)
    except InvalidBody:
        return
    assert layouts.decode(body_type, layouts.encode(decoded)) == decoded or "nan" in str(decoded)


def test_a_huge_count_is_refused_before_anything_is_built() -> None:
    with pytest.raises(InvalidBody, match="messages: 4294967295 items cannot fit in the 3 bytes"):
        layouts.decode(b.Enqueue, b"\xff\xff\xff\xff\x00\x00\x00")


def test_the_error_names_the_item_and_the_field() -> None:
    raw = layouts.encode(b.Ack((b.AckItem("orders", "a"), b.AckItem("orders", "b"))))
    with pytest.raises(InvalidBody, match=r"^messages\[1\]\.id: needs 1 bytes"):
        layouts.decode(b.Ack, raw[:-1])


def test_a_string_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(InvalidBody, match="queue: not valid UTF-8 at byte 1"):
        layouts.decode(b.GetStats, b"\x00\x02a\xff")


@pytest.mark.parametrize("tag", [2, 255])
def test_a_presence_byte_other_than_0_and_1_is_refused(tag: int) -> None:
    with pytest.raises(InvalidBody, match="api_key: the presence byte"):
        layouts.decode(b.Handshake, bytes([0, 1, tag]))


def test_a_bool_other_than_0_and_1_is_refused() -> None:
    with pytest.raises(InvalidBody, match="is_superadmin: a bool is 0 or 1, not 7"):
        layouts.decode(b.CreateApiKey, b"\x00\x00" + bytes(8) + b"\x07")


def test_prefetch_is_optional_but_never_half_there() -> None:
    assert layouts.decode(b.Consume, b"\x00\x01q") == b.Consume("q", None)
    assert layouts.decode(b.Consume, b"\x00\x01q\x00\x00\x00\x05") == b.Consume("q", 5)
    with pytest.raises(InvalidBody, match="prefetch"):
        layouts.decode(b.Consume, b"\x00\x01q\x00\x00")


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (b.GetStats("q" * 65536), "queue: 65536 bytes is too long"),
        (b.GetStats("\ud800"), "queue: character 0 cannot be written as UTF-8"),
        (b.Redrive("q", -1), "limit: -1 is not a whole number from 0"),
        (b.Consume("q", 2**32), "prefetch: 4294967296 is not a whole number"),
        (b.SetAcl("k", (b.Permission("produce", "*"),) * 65536), "permissions: 65536"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_its_limit(body: Any, complaint: str) -> None:
    with pytest.raises(UnencodableField, match=complaint):
        layouts.encode(body)
