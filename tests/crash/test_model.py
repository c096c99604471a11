"""The model of a keeper notices what a broker must not do."""

from __future__ import annotations

from tests.crash.model import DEAD, GONE, LIVE, Model


def stored(count: int, delay_ms: int = 0) -> tuple[Model, list[str]]:
    model = Model()
    tokens = model.make(count, "q")
    for token in tokens:
        model.was_stored(token, f"id-{token}", delay_ms, 1_000)
    return model, tokens


def test_what_was_stored_and_never_came_is_lost_and_what_had_no_answer_is_not() -> None:
    model, (token,) = stored(1)
    model.make(1, "q")
    assert (model.surely(LIVE), model.possibly(LIVE)) == (1, 2)
    model.conclude()
    assert model.broken == [f"{token} was stored and is lost"]


def test_what_was_finished_purged_or_deleted_may_not_come_back() -> None:
    model, tokens = stored(2)
    model.moved(LIVE, GONE)
    for token in tokens:
        model.was_delivered(token, f"id-{token}", LIVE, 2_000)
    assert len(model.broken) == 2 and "must be gone" in model.broken[0]


def test_a_request_without_an_answer_leaves_both_until_one_is_seen() -> None:
    model, (first, second) = stored(2)
    assert model.may_move(LIVE, DEAD) == [first, second]
    model.was_delivered(first, f"id-{first}", DEAD, 2_000)
    assert model.broken == []
    model.was_delivered(first, f"id-{first}", LIVE, 2_000)
    assert model.broken == [f"{first} came from live and must be dead"]


def test_what_is_leased_is_not_purged() -> None:
    model, (first, second) = stored(2)
    model.held = {first}
    assert model.may_move(LIVE, GONE) == [second]
    model.moved(LIVE, GONE)
    assert model.tokens() == [first]


def test_a_message_has_one_id_and_does_not_come_before_its_time() -> None:
    model, (token,) = stored(1, delay_ms=500)
    model.was_delivered(token, f"id-{token}", LIVE, 1_499)
    model.was_delivered(token, "another", LIVE, 1_500)
    model.was_stored(token, "a third", 0, 1_000)
    assert [one.partition(" ")[2] for one in model.broken] == [
        "came 1 ms before its delay was over",
        f"is id-{token} and came as another",
        f"is id-{token} and was stored as a third",
    ]
