"""Deliveries as FIBP has them: one body for all messages of a lease."""

from __future__ import annotations

from typing import Final

from fila.core.effect import Delivery
from fila.core.entry import ATTEMPTS, BODY, ENQUEUED_NS, ID_AT, KEY, WEIGHT
from fila.edges.lane_fields import NONE, UNKNOWN, LaneFields
from fila.wire import message_codec
from fila.wire.message_codec import DeliveredItem

_MS: Final = 1_000_000


def encode(queue: str, delivery: Delivery, lane_fields: LaneFields) -> bytes:
    """The body of a Delivery of this queue's messages."""
    queue_field = message_codec.queue_field(queue.encode())
    leased_ms = delivery.leased_ns // _MS
    items: list[DeliveredItem] = []
    lanes = delivery.lanes
    known_fields = lane_fields.known.get(lanes[0].queue.number, NONE).get  # all of one queue
    for entry, lane in zip(delivery.entries, lanes, strict=True):
        weight = entry[WEIGHT]
        known_weight, lane_field = known_fields(lane.number, UNKNOWN)
        if known_weight != weight:
            lane_field = lane_fields.encode(lane, weight)
        items.append(
            (
                entry[KEY][ID_AT:],
                queue_field,
                entry[BODY],
                lane_field,
                entry[ATTEMPTS],
                entry[ENQUEUED_NS] // _MS,
                leased_ms,
            )
        )
    return message_codec.encode_delivery(items)
