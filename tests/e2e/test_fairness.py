"""Fair delivery between tenants, as a consumer sees it; keys come from an on_enqueue hook."""

from __future__ import annotations

from collections import Counter

import pytest

from fila.wire import errors
from tests.e2e.peer import Peer, Received, Refused

BY_TENANT = """
function on_enqueue(msg)
  return {
    fairness_key = msg.headers["tenant"] or "default",
    weight = tonumber(msg.headers["weight"]) or 1,
  }
end"""


def fill(peer: Peer, queue: str, tenant: str, count: int, weight: int = 1) -> None:
    headers = {"tenant": tenant, "weight": str(weight)}
    peer.enqueue(queue, *[tenant.encode()] * count, headers=headers)


def drain(peer: Peer, queue: str, count: int) -> list[Received]:
    """Take one message after the other, each acknowledged before the next."""
    stream = peer.consume(queue, prefetch=1)
    messages = []
    for _ in range(count):
        message = peer.take_one(stream)
        messages.append(message)
        peer.post_ack(queue, [message.id])
    return messages


def test_quiet_tenants_are_interleaved_with_a_noisy_one(peer: Peer, queue: str) -> None:
    peer.create_queue(queue, on_enqueue=BY_TENANT)
    fill(peer, queue, "noisy", 1_000)
    for tenant in ("acme", "globex", "initech"):
        fill(peer, queue, tenant, 10)
    keys = [message.fairness_key for message in drain(peer, queue, 40)]
    for start in range(0, 40, 4):
        assert set(keys[start : start + 4]) == {"noisy", "acme", "globex", "initech"}
    assert peer.stats(queue).active_fairness_keys == 1


def test_a_tenant_who_comes_later_waits_for_one_round_only(peer: Peer, queue: str) -> None:
    peer.create_queue(queue, on_enqueue=BY_TENANT)
    for tenant in ("a", "b", "c"):
        fill(peer, queue, tenant, 100)
    drain(peer, queue, 10)
    fill(peer, queue, "late", 1)
    keys = [message.fairness_key for message in drain(peer, queue, 5)]
    assert "late" in keys[:4]


def test_shares_follow_weights(peer: Peer, queue: str) -> None:
    peer.create_queue(queue, on_enqueue=BY_TENANT)
    fill(peer, queue, "premium", 300, weight=3)
    fill(peer, queue, "standard", 300)
    messages = drain(peer, queue, 200)
    assert Counter(message.fairness_key for message in messages) == {"premium": 150, "standard": 50}
    assert {message.weight for message in messages} == {3, 1}


def test_the_most_recent_weight_counts(peer: Peer, queue: str) -> None:
    peer.create_queue(queue, on_enqueue=BY_TENANT)
    fill(peer, queue, "a", 200, weight=1)
    fill(peer, queue, "b", 200)
    fill(peer, queue, "a", 1, weight=4)
    drain(peer, queue, 5)  # the change counts from the key's next visit
    shares = Counter(message.fairness_key for message in drain(peer, queue, 100))
    assert shares == {"a": 80, "b": 20}


def test_a_lone_tenant_gets_everything(peer: Peer, queue: str) -> None:
    peer.create_queue(queue, on_enqueue=BY_TENANT)
    fill(peer, queue, "only", 50)
    assert {message.fairness_key for message in drain(peer, queue, 50)} == {"only"}


def test_stats_tell_what_each_key_has_waiting(peer: Peer, queue: str) -> None:
    peer.create_queue(queue, on_enqueue=BY_TENANT)
    fill(peer, queue, "a", 3, weight=2)
    fill(peer, queue, "b", 5)
    found = peer.stats(queue)
    assert found.active_fairness_keys == 2
    assert {(one.key, one.pending, one.weight) for one in found.fairness_keys} == {
        ("a", 3, 2),
        ("b", 5, 1),
    }


def test_a_script_that_does_not_compile_is_refused_with_its_line(peer: Peer, queue: str) -> None:
    with pytest.raises(Refused) as refused:
        peer.create_queue(queue, on_enqueue="function on_enqueue(msg)\n  return {{\nend")
    assert refused.value.code == errors.LUA_COMPILATION_ERROR
    assert "3" in refused.value.message
    with pytest.raises(Refused) as refused:
        peer.create_queue(queue, on_failure="function something_else() end")
    assert refused.value.code == errors.LUA_COMPILATION_ERROR
    assert "on_failure" in refused.value.message
    assert queue not in peer.queues()


@pytest.mark.parametrize(
    "result",
    [
        "{ fairness_key = '\\xff\\xfe\\x80' }",
        "{ fairness_key = string.rep('k', 70000) }",
        "{ fairness_key = '' }",
        "{ weight = 2^40 }",
        "{ weight = -5 }",
        "{ weight = 0/0 }",
        "{ throttle_keys = { string.rep('t', 70000) } }",
        "{ throttle_keys = { '\\xff' } }",
        "{ throttle_keys = { 'a', {}, 'b', 7, '' } }",
        "(function() local keys = {} for i = 1, 5000 do keys[i] = 'k' .. i end"
        " return { throttle_keys = keys } end)()",
        "{ fairness_key = { 'table' } }",
        "42",
        "error('no')",
        "(function() while true do end end)()",
    ],
)
def test_whatever_a_hook_returns_the_message_is_delivered(
    peer: Peer, queue: str, result: str
) -> None:
    """A hook that answers nonsense costs its own queue the fine order, and nobody the broker."""
    peer.create_queue(queue, on_enqueue=f"function on_enqueue(msg) return {result} end")
    [id] = peer.enqueue(queue, b"x")
    peer.stats(queue)
    message = peer.take_one(peer.consume(queue))
    assert (message.id, message.payload) == (id, b"x")
    assert message.weight >= 1
    assert len(peer.stats(queue).fairness_keys) <= 1
    assert peer.ack(queue, id) == [errors.OK]
