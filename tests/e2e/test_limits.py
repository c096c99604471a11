"""Limits that a broker says no at."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fila.wire import bodies, errors
from tests.e2e.peer import Closed, Refused
from tests.e2e.process import Broker, wait_until


def test_one_connection_too_many_is_told_so(own_broker: Callable[..., Broker]) -> None:
    with own_broker(settings={"server.max_connections": 3}) as broker:
        open_ones = [broker.peer() for _ in range(3)]
        fourth = broker.peer(handshake=False)
        with pytest.raises(Refused) as caught:
            fourth.reply(0)
        assert caught.value.code == errors.CHANNEL_FULL
        assert "there are 3 connections" in caught.value.message
        fourth.expect_close()
        open_ones.pop().close()

        def admitted() -> bool:
            try:
                broker.peer().close()
            except (Refused, Closed):
                return False
            return True

        wait_until(admitted, 20, "room")
        for peer in open_ones:
            peer.ping()
            peer.close()


def test_one_snapshot_too_many_is_refused(own_broker: Callable[..., Broker]) -> None:
    with own_broker(settings={"browse.max_snapshots": 2}) as broker, broker.peer() as peer:
        peer.create_queue("q")
        taken = [peer.request(bodies.Browse("q"), bodies.BrowseResult) for _ in range(2)]
        with pytest.raises(Refused, match="2 snapshots are being browsed") as caught:
            peer.request(bodies.Browse("q"), bodies.BrowseResult)
        assert caught.value.code == errors.CHANNEL_FULL
        peer.request(bodies.BrowseClose(taken[0].snapshot), bodies.BrowseCloseResult)
        peer.request(bodies.Browse("q"), bodies.BrowseResult)


def test_a_snapshot_that_was_read_makes_room_for_the_next(
    own_broker: Callable[..., Broker],
) -> None:
    with own_broker(settings={"browse.max_snapshots": 2}) as broker, broker.peer() as peer:
        peer.create_queue("q")
        read, kept = [peer.request(bodies.Browse("q"), bodies.BrowseResult) for _ in range(2)]
        for start, end in read.ranges:
            page = bodies.BrowsePage(read.snapshot, start, end)
            assert not peer.request(page, bodies.BrowsePageResult).next
        third = peer.request(bodies.Browse("q"), bodies.BrowseResult)
        with pytest.raises(Refused, match="closed or its time is up"):
            peer.request(page, bodies.BrowsePageResult)
        # An empty page keeps a snapshot, and is no end of a range.
        ranges = [(kept.snapshot, *kept.ranges[0]), (third.snapshot, *third.ranges[0])]
        for token, start, _ in ranges:
            peer.request(bodies.BrowsePage(token, start, start), bodies.BrowsePageResult)
        with pytest.raises(Refused, match="2 snapshots are being browsed"):
            peer.request(bodies.Browse("q"), bodies.BrowseResult)
