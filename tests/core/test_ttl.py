"""What a message's headers say of its end, and how that is kept with it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.core import ttl
from fila.core.obituary import explained, original
from fila.wire.message import decode_headers

NOW_NS = 1_700_000_000_000_000_001
NOW_MS = 1_700_000_000_001  # rounded up: never early

TEXT = st.text(max_size=8)
NAMES = st.one_of(TEXT, st.sampled_from(["fila.ttl_ms", "fila.expires_at_ms", "fila.other"]))
VALUES = st.one_of(TEXT, st.integers(0, 10**17).map(str))


def body_of(headers: list[tuple[str, str]], payload: bytes = b"payload") -> bytes:
    texts = [text.encode() for pair in headers for text in pair]
    fields = b"".join([len(one).to_bytes(2, "big") + one for one in texts])
    return len(headers).to_bytes(2, "big") + fields + payload


def test_of_all_that_is_said_the_earliest_counts() -> None:
    body = body_of([("a", "b"), ("fila.ttl_ms", "500")])
    assert ttl.expires_ms(ttl.expiring(body, 0, NOW_NS)) == NOW_MS + 500
    assert ttl.expires_ms(ttl.expiring(body, 200, NOW_NS)) == NOW_MS + 200
    body = body_of([("fila.ttl_ms", "500"), ("fila.expires_at_ms", "17")])
    assert ttl.expires_ms(ttl.expiring(body, 200, NOW_NS)) == 17


def test_it_stands_first_and_once_and_the_rest_is_as_it_was_sent() -> None:
    body = body_of([("a", "b"), ("fila.expires_at_ms", "5"), ("fila.ttl_ms", "9")])
    kept = ttl.expiring(body, 0, NOW_NS)
    assert kept == body_of([("fila.expires_at_ms", "5"), ("a", "b"), ("fila.ttl_ms", "9")])
    assert decode_headers(kept)["fila.expires_at_ms"] == "5"
    assert ttl.without_expiry(kept) == body_of([("a", "b"), ("fila.ttl_ms", "9")])


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5", "soon", "1" * 16, "١"])
def test_what_is_no_whole_number_says_nothing(text: str) -> None:
    body = body_of([("fila.ttl_ms", text)])
    assert ttl.expiring(body, 0, NOW_NS) is body
    named = ttl.expiring(body_of([("fila.expires_at_ms", text)]), 0, NOW_NS)
    assert named == body_of([])


def test_a_body_without_headers_is_the_same_object() -> None:
    for body in (b"", b"\0", b"\0\0", body_of([]), body_of([("a", "b")])):
        assert ttl.expiring(body, 0, NOW_NS) is body


def test_a_payload_that_looks_like_a_header_is_none() -> None:
    looks = body_of([("fila.ttl_ms", "5")])
    body = body_of([("a", "b")], looks)
    assert ttl.expiring(body, 0, NOW_NS) is not None
    assert ttl.expires_ms(ttl.expiring(body, 0, NOW_NS)) == 0


@given(st.lists(st.tuples(NAMES, VALUES), max_size=6), st.integers(0, 10**9), st.binary())
def test_what_is_stored_keeps_every_other_header_and_the_payload(
    headers: list[tuple[str, str]], ttl_ms: int, payload: bytes
) -> None:
    stored = ttl.expiring(body_of(headers, payload), ttl_ms, NOW_NS)
    at_ms = ttl.expires_ms(stored)
    others = [one for one in headers if one[0] != "fila.expires_at_ms"]
    first = [("fila.expires_at_ms", str(at_ms))] if at_ms else []
    assert stored == body_of(first + others, payload)
    assert ttl.expiring(stored, 0, NOW_NS) == stored or not at_ms
    assert ttl.is_expired(stored, at_ms * 1_000_000) == bool(at_ms)
    assert not ttl.is_expired(stored, at_ms * 1_000_000 - 1)
    assert not ttl_ms or at_ms <= NOW_MS + ttl_ms
    assert ttl.without_expiry(stored) == body_of(others, payload)


@given(st.lists(st.tuples(TEXT, TEXT), max_size=3), st.integers(1, 10**12))
def test_a_dead_letter_that_expires_is_taken_back_to_what_was_sent(
    headers: list[tuple[str, str]], at_ms: int
) -> None:
    sent = body_of([one for one in headers if not one[0].startswith("fila.")])
    letter = ttl.with_expiry(explained(sent, "expired", "late", NOW_NS, 1, "q"), at_ms)
    assert ttl.expires_ms(letter) == at_ms
    assert original(letter) == sent
