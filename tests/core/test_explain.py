"""Why it waits: parts that add up, the right tenant blamed, estimates that hold."""

from __future__ import annotations

from typing import Any

import pytest

from fila.core.command import PauseKey, PauseQueue, ResumeQueue
from fila.core.explain import explain
from fila.core.rejection import MESSAGE_NOT_FOUND, QUEUE_NOT_FOUND, Rejection
from fila.core.settings import Settings
from fila.core.verdict import FailureVerdict
from tests.core.turn import MS, SECOND, Turns, id_of


def queue(settings: Settings | None = None) -> Turns:
    turns = Turns(settings)
    turns.create("q", visibility_ms=3_600_000)
    return turns


def ask(turns: Turns, key: bytes | None = None, id: bytes | None = None) -> dict[str, Any]:
    turns.machine.advance(turns.now)
    found = explain(turns.machine.state, "q", key, id, 10)
    assert not isinstance(found, Rejection), found
    if "parts_ns" in found:
        assert sum(found["parts_ns"].values()) == found["age_ns"]
        assert min(found["parts_ns"].values()) >= 0, found["parts_ns"]
    return found


def serve(turns: Turns, seconds: int, per_second: int = 10) -> list[tuple[int, bytes]]:
    """One consumer with a credit of one, who acks so many messages a second: (when, id)."""
    found = []
    held = turns.consume("q", prefetch=1).ids() if not turns.queue("q").consumers else []
    held = held or list(turns.queue("q").leased)
    for _ in range(seconds * per_second):
        turns.wait(SECOND // per_second)
        if held:
            outcome = turns.ack("q", held)
            held = outcome.ids()
            found += [(turns.now, id) for id in held]
    return found


def test_a_noisy_neighbour_is_named_and_the_estimate_holds() -> None:
    turns = queue()
    turns.enqueue("q", b"noisy", count=2_000)
    serve(turns, 5)
    turns.enqueue("q", b"calm", count=20)
    turns.enqueue("q", b"noisy", count=10)
    serve(turns, 1)
    found = ask(turns, b"calm")
    assert found["waiting_for"] in ("turn", "busy")
    assert found["served_meanwhile"]["others"][0]["key"] == "noisy"
    last = turns.queue("q").keys[b"calm"].lanes[()].window[-1]
    deep = ask(turns, b"calm", last[0][20:])
    assert deep["message"]["ahead"] >= 10
    started = turns.now
    delivered = {id: at for at, id in serve(turns, 6)}
    took_ms = (delivered[last[0][20:]] - started) / MS
    assert took_ms / 2 <= deep["eta_ms"] <= took_ms * 2, (deep["eta_ms"], took_ms)
    assert any(one["do"] in ("raise_weight", "add_consumer") for one in deep["changes"])


def test_the_estimate_follows_weights() -> None:
    turns = queue()
    turns.enqueue("q", b"heavy", count=2_000, weight=4)
    ids = turns.enqueue("q", b"light", count=100)
    serve(turns, 12, per_second=20)
    waiting = [id for id in ids if id not in turns.queue("q").leased]
    target = turns.queue("q").keys[b"light"].lanes[()].window[10][0][20:]
    assert target in waiting
    found = ask(turns, b"light", target)
    started = turns.now
    delivered = {id: at for at, id in serve(turns, 12, per_second=20)}
    took_ms = (delivered[target] - started) / MS
    assert took_ms / 2 <= found["eta_ms"] <= took_ms * 2, (found["eta_ms"], took_ms)


def test_an_empty_bucket_is_named_with_who_took_its_tokens() -> None:
    turns = queue()
    turns.limit("stripe", 10, 1)
    turns.consume("q", prefetch=10_000)
    turns.enqueue("q", b"greedy", count=500, throttle=(b"stripe",))
    turns.wait(5 * SECOND)
    turns.enqueue("q", b"calm", count=5, throttle=(b"stripe",))
    turns.wait(50 * MS)
    found = ask(turns, b"calm")
    assert found["waiting_for"] == "throttled"
    assert found["bucket"]["key"] == "stripe"
    assert "throttle.stripe" in found["changes"][0]["command"]
    assert 'bucket "stripe" is empty' in found["sentence"]
    last = turns.queue("q").keys[b"calm"].lanes[(b"stripe",)].window[-1][0][20:]
    deep = ask(turns, None, last)
    started = turns.now
    while last not in turns.queue("q").leased:
        turns.wait(20 * MS)
    took_ms = (turns.now - started) / MS
    assert took_ms / 2 <= deep["eta_ms"] <= took_ms * 2, (deep["eta_ms"], took_ms)
    others = ask(turns, b"greedy")["served_meanwhile"]["others"]
    assert [one["key"] for one in others] == ["calm"]


def test_a_queue_nobody_consumes_says_so_and_gives_no_estimate() -> None:
    turns = queue()
    turns.enqueue("q", b"a")
    turns.wait(3 * SECOND)
    found = ask(turns, b"a")
    assert (found["waiting_for"], found["mostly"], found["eta_ms"]) == (
        "no_consumer", "no_consumer", None,
    )  # fmt: skip
    assert found["changes"][0] == {
        "do": "add_consumer", "text": "a consumer", "command": "fila consume q", "eta_ms": None,
    }  # fmt: skip
    assert "Nobody consumes" in found["sentence"] and "Nobody consumes" in ask(turns)["sentence"]


def test_consumers_without_credit_are_told_from_none() -> None:
    turns = queue()
    turns.enqueue("q", b"a", count=3)
    turns.consume("q", prefetch=1)
    turns.wait(SECOND)
    found = ask(turns, b"a")
    assert found["waiting_for"] == "busy"
    assert "Its one consumer has no credit: 1 message is in flight" in found["sentence"]


def test_a_retry_delay_tells_when_it_ends_and_what_went_before() -> None:
    turns = queue()
    ids = turns.enqueue("q", b"a")
    turns.consume("q")
    turns.wait(2 * SECOND)
    turns.nack("q", ids, FailureVerdict(False, 60_000))
    turns.wait(10 * SECOND)
    found = ask(turns, None, ids[0])
    assert found["waiting_for"] == "retry" and found["eta_ms"] == 50_000
    assert found["parts_ns"]["earlier"] == 2 * SECOND
    assert found["parts_ns"]["retry"] == 10 * SECOND
    assert found["message"]["attempts"] == 1


def test_a_pause_is_named_with_who_and_why() -> None:
    turns = queue()
    turns.consume("q")
    turns.turn(PauseKey("q", b"a", "floods us", "ada"))
    ids = turns.enqueue("q", b"a")
    turns.wait(4 * SECOND)
    found = ask(turns, b"a")
    assert found["waiting_for"] == "paused" and found["eta_ms"] is None
    assert found["parts_ns"]["paused"] == 4 * SECOND
    assert "paused by ada: floods us" in found["sentence"]
    assert found["changes"][0]["command"] == "fila key resume q a"
    turns.turn(PauseQueue("q", "migration", "bob"))
    turns.wait(SECOND)
    both = ask(turns, None, ids[0])
    assert both["parts_ns"]["paused"] == 5 * SECOND
    assert "Its queue is paused by bob: migration" in both["sentence"]
    turns.turn(ResumeQueue("q"))
    turns.wait(SECOND)
    assert ask(turns, b"a")["parts_ns"]["paused"] == 6 * SECOND


def test_without_a_key_the_ones_that_wait_longest_come_first() -> None:
    turns = queue()
    for name in (b"c", b"a", b"b"):
        turns.enqueue("q", name)
        turns.wait(SECOND)
    turns.turn(PauseKey("q", b"z", "later", "ada"))
    found = ask(turns)
    assert [one["key"] for one in found["keys"]] == ["c", "a", "b", "z"]
    assert found["keys"][3]["paused"]["reason"] == "later"
    assert found["keys"][0]["oldest_ms"] == 3_000


def test_a_leased_message_is_not_waiting() -> None:
    turns = queue()
    ids = turns.enqueue("q", b"a")
    turns.consume("q")
    found = ask(turns, None, ids[0])
    assert found["message"]["state"] == "leased" and "is not waiting" in found["sentence"]


def test_a_message_deep_in_the_store_is_found_with_its_place() -> None:
    turns = queue(Settings(window_messages=4, page_messages=4))
    ids = []
    for _ in range(10):
        ids += turns.enqueue("q", b"a", count=100)
    found = ask(turns, b"a", ids[700])
    assert found["message"]["ahead"] == 700


def test_what_is_not_there_is_refused() -> None:
    turns = queue()
    turns.enqueue("q", b"a")
    state = turns.machine.state
    nowhere = explain(state, "no", None, None, 10)
    assert isinstance(nowhere, Rejection) and nowhere.code == QUEUE_NOT_FOUND
    unknown = explain(state, "q", None, id_of(999), 10)
    assert isinstance(unknown, Rejection) and unknown.code == MESSAGE_NOT_FOUND
    assert "no messages waiting" in ask(turns, b"nobody")["sentence"]


@pytest.mark.parametrize("wait_ns", [0, 1, SECOND, 3_600 * SECOND])
def test_the_parts_are_those_of_the_delivery_that_follows(wait_ns: int) -> None:
    turns = queue(Settings(pass_messages=1))
    turns.limit("t", 0.5, 1)
    ids = turns.enqueue("q", b"a", throttle=(b"t",)) + turns.enqueue("q", b"a", throttle=(b"t",))
    turns.now += wait_ns
    before = ask(turns, None, ids[0])["parts_ns"]
    (waits,) = turns.consume("q").waits()
    before.pop("earlier")
    assert before == waits._asdict()


def test_it_says_when_a_message_sent_now_goes_and_with_what_capacity() -> None:
    turns = queue()
    turns.enqueue("q", b"noisy", count=2_000)
    turns.enqueue("q", b"calm", count=400)
    serve(turns, 20)
    found = ask(turns, b"calm")
    outlook = found["outlook"]
    assert outlook["capacity_per_second"] > 8 and outlook["trend"] == "shrinking"
    assert abs(outlook["eta_ms"] / 1_000 - outlook["pending"] / 5) < outlook["pending"] / 10
    assert [one["do"] for one in outlook["changes"]] == ["add_consumer", "raise_weight"]
    assert outlook["sentence"] in found["sentence"]
    assert "a message sent now goes in about" in outlook["sentence"]
    assert f"{outlook['pending']:,} wait" in outlook["sentence"]


def test_a_key_that_never_came_is_told_when_its_first_message_would_go() -> None:
    turns = queue()
    assert "will not go as things are: nobody consumes" in ask(turns, b"new")["sentence"]
    turns.consume("q")
    assert "goes at once" in ask(turns, b"new")["sentence"]


def test_who_sends_more_than_its_share_is_told_so_and_who_does_not_is_told_of_capacity() -> None:
    turns = queue()
    for _ in range(20):
        turns.enqueue("q", b"noisy", count=20)
        turns.enqueue("q", b"calm", count=6)
        serve(turns, 1)
    noisy, calm = ask(turns, b"noisy"), ask(turns, b"calm")
    assert (noisy["waiting_for"], noisy["due"]["reason"]) == ("busy", "over_share")
    assert noisy["due"]["share"] == 0.5 and 15 < noisy["due"]["sends_per_second"] < 25
    assert "more than its share: 50% is due to it" in noisy["sentence"]
    assert calm["due"]["reason"] == "capacity"
    assert "capacity is too little" in calm["sentence"]


def test_a_key_that_the_ring_forgot_is_told_that_this_must_not_happen() -> None:
    turns = queue()
    turns.enqueue("q", b"a", count=50)
    turns.enqueue("q", b"b", count=50)
    serve(turns, 1)
    key = turns.queue("q").keys[b"b"]
    key.joined -= 100.0  # as if the ring had gone round a hundred times without it
    found = ask(turns, b"b")
    assert found["due"]["reason"] == "others_over_share"
    assert "must not happen" in found["sentence"]
