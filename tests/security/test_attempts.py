"""Wrong keys: so many a minute and address, while the right one opens at any time."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fila.security.attempts import ADDRESSES_MAX, LINES_MAX, PERIOD_MS, Attempts, network_of
from fila.wire import bodies, errors
from tests.e2e.peer import Peer, Refused
from tests.e2e.process import Broker
from tests.grpc.client import Client
from tests.grpc.raw import RawPeer

KEY = "a-bootstrap-key-that-is-long"


def test_an_address_is_slowed_down_beyond_its_rate_and_no_other() -> None:
    attempts = Attempts(3)
    assert [attempts.wrong("198.51.100.7", at) for at in (0, 10, 20)] == [0, 0, 0]
    assert attempts.wrong("198.51.100.7", 30) == PERIOD_MS - 30
    assert attempts.wrong("198.51.100.8", 30) == 0
    # The last of them count: whoever goes on is told to wait on.
    assert attempts.wrong("198.51.100.7", 5_000) == PERIOD_MS + 10 - 5_000
    assert attempts.wrong("198.51.100.7", 2 * PERIOD_MS) == 0
    assert attempts.refused == 7


@pytest.mark.parametrize(
    ("host", "network"),
    [
        ("198.51.100.7", "198.51.100.7"),
        ("::ffff:198.51.100.7", "198.51.100.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::1%eth0", "2001:db8:1:2::/64"),
        ("?", "?"),
    ],
)
def test_an_ipv6_network_counts_as_one_address(host: str, network: str) -> None:
    assert network_of(host) == network


def test_addresses_and_lines_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    attempts = Attempts(1)
    for number in range(ADDRESSES_MAX + 100):
        attempts.wrong(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", 1)
    assert len(attempts._times) == ADDRESSES_MAX
    told = [attempts.may_tell(0, 100_000) for _ in range(LINES_MAX + 50)]
    assert told.count(True) == LINES_MAX
    assert not attempts.may_tell(1, 100_000)
    with caplog.at_level(logging.WARNING):
        assert attempts.may_tell(0, 100_000 + PERIOD_MS)
    assert [record.keys for record in caplog.records] == [51]  # type: ignore[attr-defined]


@pytest.fixture(name="guarded", scope="module")
def guarded_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    settings = {"auth.bootstrap_apikey": KEY, "auth.max_wrong_keys": 3}
    with Broker(tmp_path_factory.mktemp("guarded") / "data", settings) as broker:
        yield broker


def shake(broker: Broker, key: str) -> float:
    """How long the answer took."""
    peer = Peer(broker.address, handshake=False)
    began = time.monotonic()
    if key == KEY:
        peer.request(bodies.Handshake(1, key), bodies.HandshakeOk)
    else:
        with pytest.raises(Refused) as caught:
            peer.request(bodies.Handshake(1, key), bodies.HandshakeOk)
        assert caught.value.code == errors.UNAUTHORIZED
        peer.expect_close()
    peer.close()
    return time.monotonic() - began


def test_wrong_keys_are_answered_late_over_fibp_and_the_right_one_at_once(guarded: Broker) -> None:
    for _ in range(3):
        shake(guarded, "wrong")
    assert shake(guarded, "wrong") >= 1.0
    # While others are kept waiting, the right key is not: that takes a hundredth of it.
    waiting = [Peer(guarded.address, handshake=False) for _ in range(20)]
    for peer in waiting:
        peer.post(bodies.Handshake(1, "wrong"))
    fastest = min(shake(guarded, KEY) for _ in range(5))
    assert fastest < 0.9
    for peer in waiting:
        peer.close()
    assert (
        guarded.log().count("the API key is not valid") == 3
    )  # of twenty-four, the rest is counted


def test_wrong_keys_over_grpc_end_their_connection_and_the_right_one_works(guarded: Broker) -> None:
    path = "/fila.v1.FilaAdmin/ListQueues"
    with RawPeer(guarded.address) as peer:
        fields = [("authorization", "Bearer wrong")]
        for _ in range(100):
            try:
                peer.open(path, fields, end=True)
            except (ConnectionError, ValueError):
                break
        assert peer.expect_close() == 11  # ENHANCE_YOUR_CALM
    with Client(guarded.address, key=KEY) as client:
        client.create_queue("q")


def test_a_bootstrap_key_that_can_be_guessed_is_mentioned(guarded: Broker, tmp_path: Path) -> None:
    with Broker(tmp_path / "data", {"auth.bootstrap_apikey": "short"}) as broker:
        assert "the bootstrap key has 5 characters" in broker.log()
    assert "the bootstrap key has" not in guarded.log()
