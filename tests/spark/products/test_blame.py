"""Who delayed whom: against a computation message by message, and the sums of the waits."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fila.spark.products import blame as blaming
from fila.spark.products.blame import NOBODY, REST, dealt_out
from tests.spark.tables.scenario import Scenario

MINUTE_US = 60_000_000


def table_of(rows: list[tuple[Any, ...]]) -> Any:
    """(us, key, ready_us, turn_us, (alone, untold, own, others), judged) in order, as the events of
    one queue."""
    us, keys, ready, turn, consumer, judged = map(list, zip(*rows, strict=True))
    alone, untold, own, others = map(list, zip(*consumer, strict=True))
    count = len(rows)
    return pa.table(
        {
            "broker": ["b"] * count, "epoch": [1] * count, "queue": ["q"] * count,
            "seq": list(range(count)), "fairness_key": keys, "us": us, "ready_us": ready,
            "turn_us": turn, "alone_us": alone, "untold_us": untold, "own_us": own,
            "others_us": others,
            "minute": [one // MINUTE_US for one in us], "judged": judged,
        }
    )  # fmt: skip


def message_by_message(rows: list[tuple[Any, ...]]) -> dict[tuple[int, str, str], list[float]]:
    """The definition as it stands: every wait by itself, among those served in it."""
    found: dict[tuple[int, str, str], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for at, (us, key, ready, turn, consumer, judged) in enumerate(rows):
        if not judged:
            continue
        ready = max(ready, (us // MINUTE_US - 1) * MINUTE_US)  # no further back than a minute
        since_ready = [one for one in range(at) if rows[one][0] >= ready]
        own = [one for one in range(at) if rows[one][1] == key]
        since_head = [one for one in since_ready if not own or one > own[-1]]
        others = [one for one in since_ready if rows[one][1] != key]
        alone, untold, held, by_others = consumer
        found[us // MINUTE_US, key, NOBODY][1] += alone
        found[us // MINUTE_US, key, key][1] += held
        dealt = ((0, turn, since_head), (1, untold, since_ready), (1, by_others, others))
        for part, amount, served in dealt:
            for one in served:
                found[us // MINUTE_US, key, rows[one][1]][part] += amount / len(served)
            if not served:
                found[us // MINUTE_US, key, NOBODY][part] += amount
    return {key: parts for key, parts in found.items() if sum(parts) > 0.5}


def found_in(table: Any) -> dict[tuple[int, str, str], list[float]]:
    return {
        (row["minute_number"], row["fairness_key"], row["blamed_key"]): [
            row["turn_us"], row["consumer_us"],
        ]
        for row in table.to_pylist()
    }  # fmt: skip


deliveries = st.lists(
    st.tuples(
        st.integers(0, 3_000_000),  # since the one before
        st.sampled_from("abcdef"),
        st.integers(0, 90_000_000),  # how long it was ready
        st.integers(0, 5_000_000),
        st.tuples(*[st.integers(0, 5_000_000)] * 4),
    ),
    min_size=1,
    max_size=120,
)


@settings(max_examples=150, deadline=None)
@given(deliveries)
def test_every_wait_is_dealt_out_among_those_served_in_it(made) -> None:
    rows = []
    us = 1_790_000_000 * 1_000_000
    for gap, key, waited, turn, consumer in made:
        us += gap
        rows.append((us, key, us - waited, turn, consumer, us % 3 != 0))
    expected = message_by_message(rows)
    found = found_in(dealt_out(table_of(rows)))
    assert found.keys() == expected.keys()
    for key, parts in expected.items():
        assert found[key] == pytest.approx(parts, abs=1)


def test_the_sums_stay_whole_when_only_the_first_are_named(monkeypatch) -> None:
    monkeypatch.setattr(blaming, "BLAMED_MAX", 2)
    rows = [
        (60_000_000 + at, key, 60_000_000, 0, (0,) * 4, True) for at, key in enumerate("abcbcb")
    ]
    rows.append((60_000_010, "z", 60_000_000, 600, (0, 0, 0, 1_200), True))
    found = found_in(dealt_out(table_of(rows)))
    assert found == {
        (1, "z", "b"): [300.0, 600.0],
        (1, "z", "c"): [200.0, 400.0],
        (1, "z", REST): [100.0, 200.0],
    }


def test_a_recorded_broker_its_waits_and_its_blame_add_up(scenario: Scenario) -> None:
    """To the millisecond: by key and minute, all that others' turns and busy consumers cost."""
    for queue in ("jobs", "mails"):
        rows = []
        waits: dict[tuple[int, str], list[float]] = defaultdict(lambda: [0.0, 0.0])
        for epoch, event in scenario.events:
            if (epoch, event.event, event.queue) == (1_000, "delivered", queue) and event.waits:
                us, key = event.ts_ns // 1_000, event.fairness_key.decode()
                waited = event.waits
                turn = waited.turn // 1_000
                busy = (waited.busy_own // 1_000, waited.busy_others // 1_000)
                parts = (waited.no_consumer // 1_000, 0, *busy)
                rows.append((us, key, event.ready_ns // 1_000, turn, parts, True))
                waits[us // MINUTE_US, key][0] += turn
                waits[us // MINUTE_US, key][1] += sum(parts)
        sums: dict[tuple[int, str], list[float]] = defaultdict(lambda: [0.0, 0.0])
        for (minute, key, _), shares in found_in(dealt_out(table_of(rows))).items():
            for part in (0, 1):
                sums[minute, key][part] += shares[part]
        assert sum(consumer for _, consumer in waits.values()) > 0
        for waiting, amounts in waits.items():
            assert sums[waiting] == pytest.approx(amounts, abs=1_000), waiting
        assert message_by_message(rows).keys() == found_in(dealt_out(table_of(rows))).keys()
