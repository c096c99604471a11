"""Reasons quote what clients sent, and still fit where they must."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fila.edges.reason import REASON_BYTES_MAX, clipped


def test_a_reason_that_fits_is_left_alone() -> None:
    assert clipped('queue "orders" does not exist') == 'queue "orders" does not exist'


def test_a_long_one_keeps_its_beginning_and_its_end() -> None:
    short = clipped(f'queue "{"x" * 65_535}" does not exist')
    assert short.startswith('queue "xxx')
    assert short.endswith('xxx" does not exist')
    assert " ... " in short


@given(st.text(min_size=300, max_size=3_000))
def test_no_reason_is_longer_than_the_limit(text: str) -> None:
    assert len(clipped(text).encode(errors="replace")) <= REASON_BYTES_MAX
