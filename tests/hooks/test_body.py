from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fila.hooks.body import headers_end
from tests.hooks.trial import body


@given(st.dictionaries(st.text(max_size=20), st.text(max_size=40), max_size=8), st.binary())
def test_the_headers_end_where_the_payload_length_starts(
    headers: dict[str, str], payload: bytes
) -> None:
    whole = body(headers, payload)
    assert headers_end(whole, 1 << 20, 256) == len(whole) - 4 - len(payload)


@given(st.dictionaries(st.text(), st.text(), max_size=4), st.data())
def test_cut_off_headers_have_no_end(headers: dict[str, str], data: st.DataObject) -> None:
    end = headers_end(body(headers), 1 << 20, 256)
    assert end is not None
    cut = data.draw(st.integers(0, end - 1))
    assert headers_end(body(headers)[:cut], 1 << 20, 256) is None


def test_headers_longer_than_the_limit_have_no_end() -> None:
    whole = body({"a": "x" * 100})
    assert headers_end(whole, 107, 256) == 107
    assert headers_end(whole, 106, 256) is None


@given(st.binary(max_size=64))
def test_any_bytes_give_an_end_inside_them_or_none(junk: bytes) -> None:
    end = headers_end(junk, 1 << 20, 256)
    assert end is None or 2 <= end <= len(junk)


def test_more_headers_than_the_limit_have_no_end() -> None:
    whole = body({str(i): "" for i in range(5)})
    assert headers_end(whole, 1_000, 5) == len(whole) - 4
    assert headers_end(whole, 1_000, 4) is None
