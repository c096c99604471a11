"""Messages of a browsed page: the codec gives back what it was given and refuses what is cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.wire import browse_codec, message_codec
from fila.wire.errors import InvalidBody
from fila.wire.message import message_body
from tests.wire.strategies import TEXT


@given(st.binary(max_size=60), st.dictionaries(TEXT, TEXT, max_size=3), st.integers(0, 7))
def test_a_browsed_message_comes_back_as_it_was(
    payload: bytes, headers: dict[str, str], state: int
) -> None:
    body = message_body(headers, payload)
    lane = message_codec.lane_field("ü".encode(), 3, [b"t"])
    queue = message_codec.queue_field(b"q")
    raw = browse_codec.encode_browsed(queue, [(b"i" * 16, body, lane, 2, 11, 12, state)] * 2)
    for seen in browse_codec.decode_browsed(raw):
        assert seen[1:] == (b"q", body, "ü".encode(), 3, (b"t",), 2, 11, 12, state)
    for cut in range(5, len(raw), 7):
        with pytest.raises(InvalidBody):
            browse_codec.decode_browsed(raw[:cut])
