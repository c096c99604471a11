"""The parts of telemetry by themselves: history, tracked keys, buckets, trace contexts, errors."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.core.figures import BucketFigures, KeyFigures
from fila.core.verdict import RETRY_NOW, FailureVerdict
from fila.telemetry import traceparent
from fila.telemetry.buckets import TrackedBuckets
from fila.telemetry.history import POINTS, History
from fila.telemetry.instruments import label_of
from fila.telemetry.observer import GROUPS_MAX, Observer
from fila.telemetry.spans import SPANS_PER_SECOND_MAX, Tracer
from fila.telemetry.traceparent import TraceContext
from fila.telemetry.tracked import PINNED_MAX, Candidate, TrackedKeys

GOOD = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_history_keeps_the_last_five_minutes_in_order() -> None:
    history = History(("a", "b"))
    assert history.columns(10) == {"a": [], "b": []}
    for at in range(POINTS + 7):
        history.append((at, -at / 2))
    columns = history.columns(POINTS)
    assert columns["a"] == list(range(7, POINTS + 7))
    assert history.columns(3) == {
        "a": [POINTS + 4, POINTS + 5, POINTS + 6],
        "b": [-(POINTS + 4) / 2, -(POINTS + 5) / 2, -(POINTS + 6) / 2],
    }


def figures(name: bytes, number: int = 1, delivered: int = 0, pending: int = 0) -> KeyFigures:
    reading = (delivered, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    return KeyFigures(
        name, number, 1, pending, 0, delivered, 0.0, reading, 0, 0, "idle", None, None
    )


def keys(count: int) -> list[KeyFigures]:
    return [figures(b"key-%d" % at) for at in range(count)]


def candidate(score: float, key: KeyFigures) -> Candidate:
    return Candidate(score, key, key.reading)


def test_the_busiest_keys_are_tracked_and_hold_their_places() -> None:
    tracked = TrackedKeys(3, "messages")
    some = keys(5)
    scores = [5.0, 4.0, 3.0, 2.0, 1.0]
    tracked.choose(map(candidate, scores, some), 100)
    assert set(tracked.keys) == {b"key-0", b"key-1", b"key-2"}
    tracked.choose([candidate(2.9, some[3])], 100)
    assert b"key-3" not in tracked.keys
    tracked.choose([candidate(3.1, some[4])], 100)
    assert set(tracked.keys) == {b"key-0", b"key-1", b"key-4"}


def test_keys_somebody_looks_at_are_tracked_beside_the_others_within_a_limit() -> None:
    tracked = TrackedKeys(1, "messages")
    some = keys(PINNED_MAX + 2)
    tracked.choose([candidate(9.0, some[0])], 100)
    pinned = [tracked.pin(key, 1) for key in some[1:]]
    assert pinned.count(None) == 1
    assert len(tracked.keys) == 1 + PINNED_MAX


def test_a_key_that_was_forgotten_and_came_back_counts_on_from_what_it_had() -> None:
    tracked = TrackedKeys(1, "messages")
    tracked.choose([candidate(9.0, figures(b"k", delivered=5, pending=3))], 100)
    total = (0,) * 9
    tracked.count((12, *total), 12, [figures(b"k", delivered=12, pending=3)], 1, 1.0)
    assert tracked.keys[b"k"].totals[0] == 7
    tracked.count((12, *total), 12, [], 2, 1.0)  # the queue has forgotten it
    assert tracked.keys[b"k"].totals[0] == 7 and tracked.keys[b"k"].key.pending == 0
    tracked.count((14, *total), 14, [figures(b"k", number=2, delivered=2)], 3, 1.0)
    assert tracked.keys[b"k"].totals[0] == 9
    assert tracked.other[0] == 5  # what it did before it was tracked


def test_what_a_bucket_did_before_it_had_a_label_stays_in_other() -> None:
    one = BucketFigures(1.0, 1.0, 1.0, 0, 0, 10, 0)
    buckets = dict.fromkeys((b"a", b"b", b"c"), one)
    tracked = TrackedBuckets(2)

    def count() -> None:
        tracked.begin(list(buckets))
        for name, figures in buckets.items():
            tracked.count({name: figures})
        tracked.end()

    count()
    assert set(tracked.names) == {b"a", b"b"} and tracked.other_passed == 10
    buckets[b"c"] = one._replace(passed=15)
    del buckets[b"a"]
    count()
    assert tracked.names[b"c"] == (10, 0)
    assert tracked.other_passed == 10


def test_labels_of_different_keys_differ() -> None:
    names = [b"other", b"other (a key", b"\xff", b"\xfe", "\ufffd".encode(), b"", b"a"]
    labels = [label_of(name) for name in names]
    assert len(set(labels)) == len(names) and "other" not in labels


def test_a_traceparent_is_read_as_the_standard_says() -> None:
    found = traceparent.parse(GOOD)
    assert found == TraceContext(0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331, True)
    assert traceparent.parse(GOOD[:-1] + b"0") == found._replace(sampled=False)
    assert traceparent.parse(b"cc" + GOOD[2:] + b"-more") is not None  # a later version
    for bad in (
        b"",
        b"ff" + GOOD[2:],
        GOOD + b"-more",
        GOOD.upper(),
        b"00-" + b"0" * 32 + GOOD[35:],
        GOOD[:36] + b"0" * 16 + b"-01",
    ):
        assert traceparent.parse(bad) is None, bad


@given(st.binary(max_size=300))
def test_no_body_whatever_is_in_it_breaks_the_walk_over_its_headers(body: bytes) -> None:
    assert traceparent.of_body(body) is None


def body_of(*headers: tuple[bytes, bytes]) -> bytes:
    parts = [len(headers).to_bytes(2, "big")]
    for text in itertools.chain.from_iterable(headers):
        parts += [len(text).to_bytes(2, "big"), text]
    return b"".join(parts) + b"\0\0\0\0"


def tracer(ratio: float) -> Tracer:
    numbers = itertools.count(1)
    return Tracer(ratio, lambda bits: next(numbers), lambda: 0.5, lambda: next(numbers))


def test_other_traces_of_a_batch_become_links() -> None:
    traced = tracer(1.0)
    second = GOOD.replace(b"0af7", b"1af7")
    bodies = [body_of((b"traceparent", one), (b"x", b"y")) for one in (GOOD, GOOD, second)]
    span = traced.begin("enqueue", "q", 3, b"", bodies)
    assert span is not None
    span.end()
    [done] = traced.take()
    assert done.parent is not None and done.trace_id == done.parent.trace_id
    assert [link.trace_id for link in done.links] == [0x1AF7651916CD43DD8448EB211C80319C]
    assert traced.take() == []


def test_spans_are_sampled_and_bounded() -> None:
    assert tracer(0.4).begin("ack", "q", 1, b"") is None
    assert tracer(0.6).begin("ack", "q", 1, b"") is not None
    assert tracer(0.0).begin("ack", "q", 1, GOOD) is not None
    traced = tracer(1.0)
    begun = [traced.begin("ack", "q", 1, b"") for _ in range(SPANS_PER_SECOND_MAX + 5)]
    assert begun.count(None) == 5


def test_errors_are_grouped_without_their_numbers_and_within_a_limit() -> None:
    observer = Observer(lambda: 7, None)
    dead = FailureVerdict(True, 0)
    ids = [bytes((at,)) * 16 for at in range(3)]
    id_text = "0190d0a5-4b3e-7c1a-9f00-0123456789ab"
    errors = ["code 1", "code 22", f"message {id_text} lost"]
    observer.failed("q", ids, errors, [dead, dead, dead])
    observer.failed("q", ids[:1], ["not dead"], [RETRY_NOW])
    shown = [(one.error, one.count) for one in observer.error_groups("q")]
    assert shown == [("code #", 2), ("message # lost", 1)]
    for at in range(GROUPS_MAX + 10):
        name = "".join(chr(97 + int(digit)) for digit in str(at))
        observer.failed("q", ids[:1], [f"kind {name}"], [dead])
    groups: dict[str, Any] = {one.error: one.count for one in observer.error_groups("q")}
    assert len(groups) == GROUPS_MAX + 1
    assert sum(groups.values()) == 3 + GROUPS_MAX + 10 and groups["other"] > 1


@pytest.mark.parametrize("queue", ["q", "other"])
def test_a_queue_nobody_failed_in_has_no_groups(queue: str) -> None:
    assert Observer(lambda: 0, None).error_groups(queue) == []
