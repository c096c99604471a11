"""The promise of fairness as a property: shares follow weights, whatever the weights."""

from __future__ import annotations

from collections import Counter

from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from fila.core.command import Ack, Enqueue
from fila.core.entry import message_id
from fila.core.settings import Settings
from fila.core.verdict import Assignment
from tests.core.turn import Turns

MESSAGES = 10_000

WEIGHTS = st.lists(st.integers(1, 10), min_size=5, max_size=9)
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]


def backlog(weights: list[int], messages: int, settings: Settings) -> Turns:
    """A queue in which every key has enough to stay backlogged while `messages` go."""
    turns = Turns(settings)
    turns.create("q", visibility_ms=3_600_000)
    rounds = -(-messages // sum(weights)) + 2
    for at, weight in enumerate(weights):
        command = turns.messages("q", count=rounds * weight * settings.quantum)
        assignment = Assignment(bytes([65 + at]), weight, ())
        turns.turn(command._replace(assignments=[assignment] * len(command.ids), delays_ms=None))
    return turns


def serve(turns: Turns, messages: int, prefetches: list[int]) -> list[bytes]:
    """The keys of the first `messages` messages, in order, handed to consumers that ack all."""
    served: list[bytes] = []
    held: dict[str, list[bytes]] = {}
    for at, prefetch in enumerate(prefetches):
        outcome = turns.consume("q", f"c{at}", prefetch, connection=at + 1)
        served += outcome.keys()
        held[f"c{at}"] = outcome.ids()
    at = 0
    while len(served) < messages:
        name = f"c{at % len(prefetches)}"
        outcome = turns.turn(Ack("q", held.pop(name, []), 0))
        served += outcome.keys()
        for delivery in outcome.deliveries:
            held.setdefault(delivery.consumer.id, []).extend(
                message_id(entry) for entry in delivery.entries
            )
        at += 1
    return served[:messages]


@hypothesis_settings(max_examples=25, suppress_health_check=SLOW)
@given(
    weights=WEIGHTS,
    prefetches=st.lists(st.integers(100, 900), min_size=1, max_size=3),
    quantum=st.sampled_from([1, 1, 3]),
    window=st.sampled_from([64, 1_024]),
)
def test_shares_follow_the_weights(
    weights: list[int], prefetches: list[int], quantum: int, window: int
) -> None:
    turns = backlog(weights, MESSAGES, Settings(quantum=quantum, window_messages=window))
    served = serve(turns, MESSAGES, prefetches)
    total = sum(weights)
    counts = Counter(served)
    for at, weight in enumerate(weights):
        share = counts[bytes([65 + at])] / MESSAGES
        assert abs(share / (weight / total) - 1) < 0.05
    # In practice, over whole rounds, there is no deviation at all.
    whole = MESSAGES // (total * quantum) * total * quantum
    counts = Counter(served[:whole])
    for at, weight in enumerate(weights):
        assert counts[bytes([65 + at])] == whole * weight // total


@hypothesis_settings(max_examples=30)
@given(weights=WEIGHTS, prefetch=st.integers(1, 40))
def test_at_no_moment_is_a_key_ahead_of_another_by_more_than_one_visit(
    weights: list[int], prefetch: int
) -> None:
    turns = backlog(weights, 400, Settings())
    counts: Counter[bytes] = Counter()
    for key in serve(turns, 400, [prefetch]):
        counts[key] += 1
        visits = [counts[bytes([65 + at])] / weight for at, weight in enumerate(weights)]
        assert max(visits) - min(visits) <= 1


@hypothesis_settings(max_examples=20)
@given(
    weights=WEIGHTS,
    arrivals=st.lists(st.tuples(st.integers(0, 8), st.integers(1, 9)), min_size=5, max_size=60),
)
def test_a_quiet_key_is_served_within_one_round_whoever_comes_and_goes(
    weights: list[int], arrivals: list[tuple[int, int]]
) -> None:
    """Keys empty and return at random; a message at the head of its key waits for one round."""
    turns = Turns()
    turns.create("q", visibility_ms=3_600_000)
    outcome = turns.consume("q", prefetch=1)
    waiting: dict[bytes, int] = {}
    for which, count in arrivals:
        which %= len(weights)
        key = bytes([65 + which])
        ids = turns.messages("q", count=count).ids
        assignment = Assignment(key, weights[which], ())
        fresh = turns.turn(Enqueue("q", ids, [b"body.."] * count, [assignment] * count))
        waiting.setdefault(key, 0)
        outcome.extend(fresh)
        for _ in range(3):
            held = list(turns.queue("q").leased)
            outcome.extend(turns.turn(Ack("q", held, 1)))
        for served in list(outcome.keys()):
            for other in waiting:
                waiting[other] += 1
            waiting[served] = 0
            assert max(waiting.values()) <= sum(weights)
        outcome = turns.turn()
        for key in list(waiting):
            found = turns.queue("q").keys.get(key)
            if found is None or found.pending == 0:
                del waiting[key]
