"""Runtime configuration: set, read, listed, removed, and seen by hooks."""

from __future__ import annotations

import pytest

from fila.wire import errors
from tests.e2e.peer import Peer, Refused


def test_a_setting_is_written_read_listed_and_removed(peer: Peer, queue: str) -> None:
    key = f"feature:{queue}"
    assert peer.get_config(key) == ""
    peer.set_config(key, "on")
    peer.set_config(key + ":more", "grün")
    assert peer.get_config(key) == "on"
    assert peer.list_config(key) == {key: "on", key + ":more": "grün"}
    assert key in peer.list_config("")
    assert peer.list_config(key + ":none") == {}
    peer.set_config(key, "off")
    assert peer.get_config(key) == "off"
    peer.set_config(key, "")
    assert peer.get_config(key) == ""
    assert peer.list_config(key) == {key + ":more": "grün"}


def test_a_hook_reads_the_setting_in_force(peer: Peer, queue: str) -> None:
    script = f"""
    function on_enqueue(msg)
      return {{ fairness_key = fila.get("key:{queue}") or "unset" }}
    end"""
    peer.create_queue(queue, on_enqueue=script)
    peer.enqueue(queue, b"1")
    peer.set_config(f"key:{queue}", "first")
    peer.enqueue(queue, b"2")
    peer.set_config(f"key:{queue}", "second")
    peer.enqueue(queue, b"3")
    peer.set_config(f"key:{queue}", "")
    peer.enqueue(queue, b"4")
    messages = sorted(peer.take(peer.consume(queue), 4), key=lambda message: message.payload)
    assert [message.fairness_key for message in messages] == ["unset", "first", "second", "unset"]


@pytest.mark.parametrize(
    "value", ["abc", "1,2,3", "-1,5", "nan,1", "inf,1", "1,-1", ",", "1e400,1"]
)
def test_a_throttle_that_is_no_rate_is_refused_with_the_reason(
    peer: Peer, queue: str, value: str
) -> None:
    with pytest.raises(Refused) as refused:
        peer.set_config(f"throttle.{queue}", value)
    assert refused.value.code == errors.INVALID_CONFIG_VALUE
    assert refused.value.message
    assert peer.list_config(f"throttle.{queue}") == {}


def test_a_key_without_a_name_is_refused(peer: Peer) -> None:
    for key in ("", "k" * 1_025):
        with pytest.raises(Refused) as refused:
            peer.set_config(key, "x")
        assert refused.value.code == errors.INVALID_CONFIG_VALUE


def test_the_longest_value_is_kept_whole(peer: Peer, queue: str) -> None:
    value = "v" * 65_535
    peer.set_config(f"long:{queue}", value)
    assert peer.get_config(f"long:{queue}") == value
    peer.set_config(f"long:{queue}", "")
