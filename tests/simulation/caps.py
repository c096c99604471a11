"""In-flight caps: what operators do to them, and the auditor's own count of what is in flight.

The count is taken from the leases each time, lane by lane: nothing is kept that a lost slot could
hide in. No delivery goes beyond a cap; a cap that is lowered ends no lease.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from fila.core.command import SetConfig
from fila.core.lane import NO_CAPS
from fila.core.state import State

from .model import Key, Lane, Queue
from .turn import Violation

if TYPE_CHECKING:
    from .profile import Profile
    from .tokens import Tokens
    from .world import World

PROMISE = "in-flight cap"
VALUES = ("1", "2", "5", "5", "", "0", "many", "1000001")


class Operators:
    """They set the caps of throttle keys. Their dice are their own: what others do stays."""

    def __init__(self, profile: Profile) -> None:
        self._rng = Random(f"caps {profile.turns}")
        self._names = profile.throttle_names() if profile.capped else []

    def wanted(self) -> bool:
        return bool(self._names) and self._rng.random() < 0.05

    def ask(self, world: World) -> None:
        name = self._rng.choice(self._names).decode()
        world.apply(SetConfig(f"throttle:{name}:max_in_flight", self._rng.choice(VALUES)))


def in_flight(key: Key) -> int:
    return sum(lane.leased for lane in key.lanes.values())


def shared(tokens: Tokens, name: bytes) -> int:
    """Of a throttle key, in the queues that are here."""
    lanes = tokens.lanes.get(name, ())
    return sum(one.leased for one in lanes if not one.key.queue.away)


def is_full(tokens: Tokens, lane: Lane) -> bool:
    """Whether one of its caps lets nothing more go."""
    limit = lane.key.queue.max_in_flight
    full = bool(limit) and in_flight(lane.key) >= limit
    for name in lane.throttle_keys:
        most = tokens.caps.get(name)
        if most is not None and shared(tokens, name) >= most:
            full = True
    lane.met_cap = lane.met_cap or full
    return full


def applies(tokens: Tokens, lane: Lane) -> bool:
    """Whether it has a cap at all."""
    return bool(
        lane.key.queue.max_in_flight or any(one in tokens.caps for one in lane.throttle_keys)
    )


def beside(tokens: Tokens, lane: Lane) -> list[Lane]:
    """The lanes that share a cap with it, and itself."""
    found = list(lane.key.lanes.values()) if lane.key.queue.max_in_flight else []
    for name in lane.throttle_keys:
        if name in tokens.caps:
            found += tokens.lanes[name]
    return found


def check_delivery(tokens: Tokens, lane: Lane) -> None:
    if is_full(tokens, lane):
        raise Violation(
            PROMISE,
            f"{lane.key.queue.name}/{lane.key.name.decode()} {lane.throttle_keys} goes while "
            f"{in_flight(lane.key)} of its key are in flight "
            f"(limits {lane.key.queue.max_in_flight}, {tokens.caps})",
        )


def check_memory(tokens: Tokens, queues: dict[str, Queue], state: State) -> None:
    """What the machine counts, and which lanes it has in line."""
    told = {name: cap.limit for name, cap in state.caps.items()}
    if told != tokens.caps:
        raise Violation(PROMISE, f"caps of throttle keys are {told}, not {tokens.caps}")
    for name, cap in state.caps.items():
        expected = shared(tokens, name)
        if cap.in_flight != expected:
            raise Violation(PROMISE, f"{name!r}: {cap.in_flight} in flight, not {expected}")
    for queue in state.queues.values():
        if queue.max_in_flight_per_key != queues[queue.name].max_in_flight:
            raise Violation(PROMISE, f"{queue.name}: the limit is {queue.max_in_flight_per_key}")
        for key in queue.keys.values():
            leased = sum(lane.leased for lane in key.lanes.values())
            if key.cap is not None and key.cap.in_flight != leased:
                raise Violation(PROMISE, f"{key.name!r}: {key.cap.in_flight}, not {leased}")
            for lane in key.lanes.values():
                own = [key.cap] if key.cap is not None else []
                own += [state.caps[one] for one in lane.throttle_keys if one in state.caps]
                if set(map(id, lane.caps)) != set(map(id, own)) or len(lane.caps) != len(own):
                    raise Violation(PROMISE, f"{key.name!r} {lane.throttle_keys}: other caps")
        for cap in queue.full_caps:
            if not cap.waiters:
                raise Violation("bounded memory", f"{cap.name!r} counts as full for nobody")
    if NO_CAPS:
        raise Violation(PROMISE, "lanes without caps share one")
