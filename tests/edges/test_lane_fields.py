"""How lanes are written in deliveries, and how many of them are remembered."""

from __future__ import annotations

import pytest

from fila.core.lane import Lane
from fila.edges import lane_fields
from fila.edges.lane_fields import LaneFields
from fila.wire.message_codec import lane_field
from tests.broker.turns import Bench


@pytest.fixture
def lanes() -> list[Lane]:
    """Lanes with the same numbers in two queues."""
    bench = Bench()
    for name in ("a", "b"):
        bench.broker.create_queue(name, None, None, 1_000)
    state = bench.broker.machine.state
    return [
        state.lane(state.queues[name], key, ())
        for name in ("a", "b")
        for key in (name.encode(), b"other")
    ]


def test_lanes_of_two_queues_are_told_apart(lanes: list[Lane]) -> None:
    fields = LaneFields()
    assert {lane.number for lane in lanes[:2]} == {lane.number for lane in lanes[2:]}
    for _ in range(2):
        for lane in lanes:
            assert fields.of(lane, 3) == lane_field(lane.key.name, 3, ())


def test_another_weight_is_another_field(lanes: list[Lane]) -> None:
    fields = LaneFields()
    for weight in (1, 2, 2, 1):
        assert fields.of(lanes[0], weight) == lane_field(lanes[0].key.name, weight, ())


def test_a_full_cache_begins_again(lanes: list[Lane], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lane_fields, "LANES_MAX", 3)
    fields = LaneFields()
    for at in range(12):
        assert fields.of(lanes[at % 4], at) == lane_field(lanes[at % 4].key.name, at, ())
        assert sum(map(len, fields.known.values())) <= 3
