"""A queue that is changed while it works, over both protocols, with the real hooks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.process import Broker
from tests.grpc.talkers import Fault, FibpTalker, GrpcTalker, Talker

TALKERS = {"fibp": FibpTalker, "grpc": GrpcTalker}

BY_TENANT = "function on_enqueue(msg) return { fairness_key = msg.headers.tenant } end"
BY_PLAN = "function on_enqueue(msg) return { fairness_key = msg.headers.plan } end"
NEEDS_PLAN = "function on_enqueue(msg) return { fairness_key = string.upper(msg.headers.plan) } end"
GIVE_UP = 'function on_failure(msg) return { action = "dlq" } end'


@pytest.fixture(params=list(TALKERS))
def talker(request: pytest.FixtureRequest, broker: Broker, queue: str) -> Iterator[Talker]:
    """Somebody with a queue whose hook has decided about a few messages."""
    with TALKERS[request.param](broker.address) as connected:
        connected.create_queue(queue, BY_TENANT)
        connected.enqueue(queue, *[b"x"] * 4, headers={"tenant": "acme"})
        yield connected


def keys(talker: Talker, queue: str) -> set[str]:
    return {one["key"] for one in talker.explain(queue)["keys"]}


def test_messages_that_come_follow_the_new_hook_and_those_that_wait_stay(
    talker: Talker, queue: str
) -> None:
    assert talker.update_queue(queue, {"on_enqueue": BY_PLAN}) == 2
    talker.enqueue(queue, b"y", headers={"tenant": "acme", "plan": "gold"})
    assert keys(talker, queue) == {"acme", "gold"}
    assert talker.explain(queue)["version"] == 2


def test_a_failure_is_judged_by_the_hook_that_holds_when_it_happens(
    talker: Talker, queue: str
) -> None:
    stream = talker.consume(queue)
    (held, *_) = stream.take(4)
    assert talker.update_queue(queue, {"on_failure": GIVE_UP}) == 2
    assert talker.nack(queue, held.id, error="no") == ["OK"]
    assert talker.stats(f"{queue}.dlq").depth == 1


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"on_enqueue": "function on_enqueue("}, "does not compile"),
        ({"on_enqueue": "return 1"}, "on_enqueue"),
        ({"on_enqueue": NEEDS_PLAN}, "fails for a message like those of the queue"),
        ({"hook_timeout_ms": "0"}, "whole number from 1"),
        ({"fail_mode": "explode"}, "is none of default"),
        ({"colour": "red"}, "none of this name"),
        ({"visibility_timeout_ms": "5"}, "too short"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_of_it_changes(
    talker: Talker, queue: str, settings: dict[str, str], says: str
) -> None:
    before = talker.queue_settings(queue)
    with pytest.raises(Fault) as refused:
        talker.update_queue(queue, {"max_attempts": "5", **settings})
    assert refused.value.status == "INVALID_ARGUMENT"
    assert says in refused.value.text
    assert talker.queue_settings(queue) == before
    talker.enqueue(queue, b"y", headers={"tenant": "zeta"})
    assert keys(talker, queue) == {"acme", "zeta"}


def test_the_second_of_two_operators_is_told_that_the_first_was_faster(
    talker: Talker, queue: str
) -> None:
    assert talker.update_queue(queue, {"max_attempts": "5"}, expected=1) == 2
    with pytest.raises(Fault) as refused:
        talker.update_queue(queue, {"max_attempts": "6"}, expected=1)
    assert refused.value.status == "ABORTED"
    assert "version 2, not 1" in refused.value.text
    assert talker.queue_settings(queue)["max_attempts"] == "5"


def test_versions_are_listed_with_what_they_changed(talker: Talker, queue: str) -> None:
    talker.update_queue(queue, {"max_attempts": "5", "fail_mode": "reject"})
    talker.update_queue(queue, {"on_enqueue": ""})
    assert [(number, changed) for number, _, changed in talker.versions(queue)] == [
        (3, ["on_enqueue"]),
        (2, ["max_attempts", "fail_mode"]),
        (1, []),
    ]
    assert talker.queue_settings(queue, 2)["on_enqueue"] == BY_TENANT
    assert talker.queue_settings(queue)["on_enqueue"] == ""


def test_a_fail_mode_works_at_once(talker: Talker, queue: str) -> None:
    talker.update_queue(queue, {"fail_mode": "reject"})
    assert talker.explain(queue)["hook_status"]["on_enqueue"]["fail_mode"] == "reject"
