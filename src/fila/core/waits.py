"""Where a message's wait went: the parts that every delivery, event and explanation tells."""

from __future__ import annotations

from typing import NamedTuple


class Waits(NamedTuple):
    """Where a message's wait went, in nanoseconds; the parts add up to delivered - since."""

    retry: int  # until it became ready: a retry or enqueue delay
    throttled: int  # a bucket of its own was short
    no_consumer: int  # no consumer was connected, or all were held
    own: int  # older messages of its own key stood before it
    turn: int  # it was its key's next, and other keys had their turns
    paused: int = 0  # its queue or its key was paused
    busy_own: int = 0  # consumers had no credit left: the part held by messages of its own key
    busy_others: int = 0  # and the part held by other keys' messages
    capped: int = 0  # as many of its key as may be were in flight
