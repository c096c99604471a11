"""The same scenarios over both protocols: whoever talks, the broker does the same."""

import time
from collections.abc import Callable, Iterator

import pytest

from tests.e2e.process import Broker, wait_until
from tests.grpc.bulk_talk import bulk
from tests.grpc.talkers import Fault, FibpTalker, GrpcTalker, Talker

TALKERS = {"fibp": FibpTalker, "grpc": GrpcTalker}

BY_TENANT = """
function on_enqueue(msg)
  return {
    fairness_key = msg.headers["tenant"] or "none",
    weight = tonumber(msg.headers["weight"]) or 1,
    throttle_keys = { "both:" .. (msg.headers["provider"] or "none") },
  }
end
"""
GIVE_UP_AFTER_TWO = """
function on_failure(msg, error)
  if msg.attempts >= 2 then return { action = "dlq" } end
  return { action = "retry", delay_ms = 0 }
end
"""


@pytest.fixture(params=list(TALKERS))
def talker(request: pytest.FixtureRequest, broker: Broker) -> Iterator[Talker]:
    with TALKERS[request.param](broker.address) as connected:
        yield connected


def test_the_life_of_a_message(talker: Talker, queue: str) -> None:
    talker.create_queue(queue, on_enqueue=BY_TENANT)
    began_ms = time.time() * 1000
    headers = {"tenant": "acme", "weight": "3", "provider": "x", "☃": "ü"}
    (id,) = talker.enqueue(queue, b"\x00\xff", headers=headers)
    assert talker.stats(queue).depth == 1
    stream = talker.consume(queue)
    (got,) = stream.take(1)
    assert got[:8] == (id, queue, headers, b"\x00\xff", "acme", 3, ("both:x",), 0)
    assert began_ms - 1_000 < got.enqueued_ms <= got.leased_ms < began_ms + 20_000
    assert talker.stats(queue)[:4] == (0, 1, 0, 1)
    assert talker.ack(queue, id) == ["OK"]
    assert talker.ack(queue, id) == ["NOT_FOUND"]
    assert talker.stats(queue)[:2] == (0, 0)
    stream.leave()
    wait_until(lambda: talker.stats(queue).consumers == 0, 5, "the consumer's leaving")


def test_ids_ascend_and_results_stand_in_order(talker: Talker, queue: str) -> None:
    talker.create_queue(queue)
    talker.create_queue(f"{queue}-b")
    results = talker.enqueue_mixed(
        (queue, b"1"), ("no-such-queue", b"2"), (f"{queue}-b", b"3"), ("", b"4"), (queue, b"5")
    )
    assert [results[1], results[3]] == ["NOT_FOUND", "NOT_FOUND"]
    assert results[0] < results[4]
    assert [one.id for one in talker.consume(queue).take(2)] == [results[0], results[4]]
    assert talker.stats(f"{queue}-b").depth == 1


def test_a_failure_is_counted_and_the_hook_decides(talker: Talker, queue: str) -> None:
    talker.create_queue(queue, on_enqueue=BY_TENANT, on_failure=GIVE_UP_AFTER_TWO)
    headers = {"tenant": "t", "weight": "2"}
    ids = talker.enqueue(queue, b"a", b"b", headers=headers)
    stream = talker.consume(queue)
    for attempts in (0, 1):
        got = stream.take(2)
        assert {one.id for one in got} == set(ids)
        assert {one.attempts for one in got} == {attempts}
        assert talker.nack(queue, *ids, error="kaputt") == ["OK", "OK"]
    assert talker.nack(queue, *ids) == ["NOT_FOUND", "NOT_FOUND"]
    dlq = f"{queue}.dlq"
    assert talker.stats(dlq)[:2] == (2, 0)
    (dead,) = talker.consume(dlq, prefetch=1).take(1)
    why = {
        "fila.dead.reason": "hook",
        "fila.dead.error": "kaputt",
        "fila.dead.at_ms": dead.headers["fila.dead.at_ms"],
        "fila.dead.attempts": "2",
        "fila.dead.queue": queue,
    }
    assert dead[:8] == (ids[0], dlq, {**why, **headers}, b"a", "t", 2, ("both:none",), 2)
    assert talker.redrive(dlq) == 1  # the other one is leased
    (again,) = stream.take(1)
    assert (again.id, again.attempts, again.fairness_key) == (ids[1], 0, "t")


def test_redrive_counts_what_it_moves(talker: Talker, queue: str) -> None:
    talker.create_queue(queue, on_failure='function on_failure() return { action = "dlq" } end')
    ids = talker.enqueue(queue, *[b"x"] * 10, headers={})
    stream = talker.consume(queue)
    stream.take(10)
    talker.nack(queue, *ids)
    assert talker.redrive(f"{queue}.dlq", 4) == 4
    assert [one.id for one in stream.take(4)] == ids[:4]
    assert talker.redrive(f"{queue}.dlq", 100) == 6
    assert talker.redrive(f"{queue}.dlq") == 0


def test_a_lease_that_runs_out_is_a_failure(talker: Talker, queue: str) -> None:
    talker.create_queue(queue, visibility_ms=1_000)
    (id,) = talker.enqueue(queue, b"x", headers={})
    stream = talker.consume(queue)
    stream.take(1)
    (again,) = stream.take(1)
    assert (again.id, again.attempts) == (id, 1)


def test_prefetch_is_credit(talker: Talker, queue: str) -> None:
    talker.create_queue(queue)
    ids = talker.enqueue(queue, *[b"x"] * 10, headers={})
    stream = talker.consume(queue, prefetch=3)
    stream.take(3)
    assert talker.stats(queue)[:2] == (7, 3)
    talker.ack(queue, *ids[:2])
    assert [one.id for one in stream.take(2)] == ids[3:5]


def test_the_weights_share_the_line(talker: Talker, queue: str) -> None:
    talker.create_queue(queue, on_enqueue=BY_TENANT)
    for tenant, weight in (("a", "3"), ("b", "1")):
        headers = {"tenant": tenant, "weight": weight}
        talker.enqueue(queue, *[b"x"] * 40, headers=headers)
    got = talker.consume(queue, prefetch=40).take(40)
    assert [one.fairness_key for one in got].count("a") == 30


def test_config_and_throttles(talker: Talker, queue: str) -> None:
    prefix = f"{queue}."
    assert talker.get_config(prefix + "a") is None
    talker.set_config(prefix + "a", "1")
    talker.set_config(prefix + "b", "ü")
    assert talker.get_config(prefix + "a") == "1"
    assert talker.list_config(prefix) == {prefix + "a": "1", prefix + "b": "ü"}
    talker.set_config(prefix + "a", "")
    assert talker.get_config(prefix + "a") is None
    talker.create_queue(queue, on_enqueue=BY_TENANT)
    talker.set_config(f"throttle.both:{queue}", "0,2")
    talker.enqueue(queue, *[b"x"] * 5, headers={"provider": queue})
    talker.consume(queue).take(2)
    assert talker.stats(queue)[:2] == (3, 2)
    assert talker.stats(queue).buckets == {f"both:{queue}": (0.0, 2.0)}
    talker.set_config(f"throttle.both:{queue}", "")


def test_stats_and_lists(talker: Talker, queue: str) -> None:
    talker.create_queue(queue, on_enqueue=BY_TENANT)
    talker.enqueue(queue, b"1", b"2", headers={"tenant": "a", "weight": "5"})
    talker.enqueue(queue, b"3", headers={"tenant": "b"})
    stats = talker.stats(queue)
    assert stats[:5] == (3, 0, 2, 0, 1)
    assert stats.keys == {"a": (2, 5), "b": (1, 1)}
    listed = talker.queues()
    assert listed[queue] == (3, 0, 0)
    assert listed[f"{queue}.dlq"] == (0, 0, 0)
    talker.delete_queue(queue)
    assert queue not in talker.queues() and f"{queue}.dlq" not in talker.queues()


def test_a_deleted_queue_ends_its_consumers(talker: Talker, queue: str) -> None:
    talker.create_queue(queue)
    stream = talker.consume(queue)
    talker.delete_queue(queue)
    ended = stream.ended()  # type: ignore[attr-defined]
    assert (ended.status, ended.text) == ("NOT_FOUND", f'queue "{queue}" does not exist')


MISTAKES: dict[str, tuple[str, Callable[[Talker, str], object]]] = {
    "a queue twice": ("ALREADY_EXISTS", lambda talker, queue: talker.create_queue(queue)),
    "no name": ("INVALID_ARGUMENT", lambda talker, queue: talker.create_queue("")),
    "a long name": ("INVALID_ARGUMENT", lambda talker, queue: talker.create_queue("x" * 256)),
    "a broken script": (
        "INVALID_ARGUMENT",
        lambda talker, queue: talker.create_queue(queue + "2", on_enqueue="nonsense("),
    ),
    "a script without its function": (
        "INVALID_ARGUMENT",
        lambda talker, queue: talker.create_queue(queue + "2", on_failure="x = 1"),
    ),
    "a short visibility timeout": (
        "INVALID_ARGUMENT",
        lambda talker, queue: talker.create_queue(queue + "2", visibility_ms=500),
    ),
    "consume nothing": ("NOT_FOUND", lambda talker, queue: talker.consume("nothing").take(1)),
    "delete nothing": ("NOT_FOUND", lambda talker, queue: talker.delete_queue("nothing")),
    "stats of nothing": ("NOT_FOUND", lambda talker, queue: talker.stats("nothing")),
    "explain nothing": ("NOT_FOUND", lambda talker, queue: talker.explain("nothing")),
    "pause nothing": ("NOT_FOUND", lambda talker, queue: talker.pause_queue("nothing")),
    "resume nothing": ("NOT_FOUND", lambda talker, queue: talker.resume_queue("nothing")),
    "pause a key of nothing": ("NOT_FOUND", lambda talker, queue: talker.pause_key("nothing", "k")),
    "resume a key of nothing": (
        "NOT_FOUND",
        lambda talker, queue: talker.resume_key("nothing", "k"),
    ),
    "purge nothing": ("NOT_FOUND", lambda talker, queue: talker.purge("nothing")),
    "redrive nothing": ("NOT_FOUND", lambda talker, queue: talker.redrive("nothing.dlq")),
    "redrive a queue": ("INVALID_ARGUMENT", lambda talker, queue: talker.redrive(queue)),
    "a bad throttle": (
        "INVALID_ARGUMENT",
        lambda talker, queue: talker.set_config("throttle.x", "nan,1"),
    ),
    "no config key": ("INVALID_ARGUMENT", lambda talker, queue: talker.set_config("", "1")),
    "revoke nobody": ("NOT_FOUND", lambda talker, queue: talker.revoke_key("nobody")),
    "the ACL of nobody": ("NOT_FOUND", lambda talker, queue: talker.get_acl("nobody")),
    "set the ACL of nobody": (
        "NOT_FOUND",
        lambda talker, queue: talker.set_acl("nobody", ("produce", "*")),
    ),
    "a strange permission": (
        "INVALID_ARGUMENT",
        lambda talker, queue: talker.set_acl("nobody", ("own", "*")),
    ),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_a_mistake_has_one_status_and_one_text(broker: Broker, queue: str, what: str) -> None:
    status, attempt = MISTAKES[what]
    texts = set()
    for kind in TALKERS.values():
        with kind(broker.address) as talker:
            if queue not in talker.queues():
                talker.create_queue(queue)
            with pytest.raises(Fault) as caught:
                attempt(talker, queue)
            assert caught.value.status == status
            texts.add(caught.value.text)
    assert len(texts) == 1, texts


def test_what_one_protocol_does_the_other_sees(broker: Broker, queue: str) -> None:
    with FibpTalker(broker.address) as fibp, GrpcTalker(broker.address) as over_grpc:
        fibp.create_queue(queue, on_enqueue=BY_TENANT)
        over_grpc.enqueue(queue, b"1", headers={"tenant": "a"})
        fibp.enqueue(queue, b"2", headers={"tenant": "b"})
        assert fibp.stats(queue) == over_grpc.stats(queue)
        assert fibp.queues() == over_grpc.queues()
        consumers = fibp.consume(queue, prefetch=1), over_grpc.consume(queue, prefetch=1)
        one, two = (consumer.take(1) for consumer in consumers)
        assert {one[0].payload, two[0].payload} == {b"1", b"2"}
        # A connection that consumes the queue may settle only what its own consumers hold.
        assert fibp.ack(queue, two[0].id) == ["NOT_FOUND"]
        assert over_grpc.nack(queue, one[0].id) == ["NOT_FOUND"]
        assert fibp.ack(queue, one[0].id) == over_grpc.ack(queue, two[0].id) == ["OK"]


def test_delays_keys_and_places(talker: Talker, queue: str) -> None:
    talker.create_queue(queue)
    first = bulk(talker, "EnqueueWith", queue, idempotency_key="k", fairness_key="acme", weight=4)
    assert bulk(talker, "EnqueueWith", queue, idempotency_key="k") == first
    bulk(talker, "EnqueueWith", queue, delay_ms=60_000)
    assert talker.stats(queue).keys == {"acme": (1, 4), "default": (1, 1)}
    (got,) = talker.consume(queue).take(1)
    assert got.id == first
    assert bulk(talker, "Release", queue, first) == 0
    assert bulk(talker, "Release", queue, "no-id") == 2
    with pytest.raises(Fault) as refused:
        bulk(talker, "EnqueueWith", queue, delay_ms=400 * 86_400_000)
    assert refused.value.status == "INVALID_ARGUMENT"
    with pytest.raises(Fault) as refused:
        bulk(talker, "EnqueueWith", "no-such-queue")
    assert refused.value.status == "NOT_FOUND"


def test_leases_of_single_messages_are_extended(talker: Talker, queue: str) -> None:
    talker.create_queue(queue, visibility_ms=1_000)
    assert bulk(talker, "Extend", queue) == (1_000, [])
    (id,) = talker.enqueue(queue, b"1", headers={})
    stream = talker.consume(queue)
    stream.take(1)
    assert bulk(talker, "Extend", queue, id, visibility_ms=60_000) == (60_000, [])
    time.sleep(1.5)
    assert talker.stats(queue)[:2] == (0, 1)
    assert talker.ack(queue, id) == ["OK"]
    assert bulk(talker, "Extend", queue, id) == (1_000, [id])
    with pytest.raises(Fault) as refused:
        bulk(talker, "Extend", queue, id, visibility_ms=1)
    assert refused.value.status == "INVALID_ARGUMENT"
    with pytest.raises(Fault) as refused:
        bulk(talker, "Extend", "no-such-queue", id)
    assert refused.value.status == "NOT_FOUND"
    stream.leave()


def test_the_life_of_a_batch(talker: Talker, queue: str) -> None:
    talker.create_queue(queue)
    talker.enqueue(queue, *[b"%d" % n for n in range(5)], headers={})
    assert bulk(talker, "LeaseBatch", queue, name="s/0", max_messages=3) == 3
    assert bulk(talker, "LeaseBatch", queue, name="s/0", max_messages=0) == 3
    assert bulk(talker, "LeaseBatch", queue, name="s/1/x", max_messages=9) == 2
    assert bulk(talker, "ListBatches", queue) == 2
    assert bulk(talker, "ExtendBatch", queue, visibility_ms=60_000) == 2
    assert bulk(talker, "AckBatch", queue, below=1) == 1
    assert bulk(talker, "ReleaseBatch", queue) == 1
    assert talker.stats(queue)[:2] == (2, 0)
    began = time.monotonic()
    assert bulk(talker, "LeaseBatch", f"{queue}.dlq", name="s/0", max_messages=9, wait_ms=200) == 0
    assert time.monotonic() - began >= 0.2
    with pytest.raises(Fault) as refused:
        bulk(talker, "LeaseBatch", queue, name="s/0", max_messages=0)
    assert refused.value.status == "NOT_FOUND"


def test_a_queue_is_browsed_page_by_page(talker: Talker, queue: str) -> None:
    talker.create_queue(queue)
    talker.enqueue(queue, *[b"%d" % n for n in range(5)], headers={"a": "b"})
    bulk(talker, "LeaseBatch", queue, name="s/0", max_messages=2)
    token = bulk(talker, "Browse", queue)
    talker.delete_queue(queue)
    assert bulk(talker, "BrowsePage", token) == 5
    assert bulk(talker, "BrowsePage", token, states=4) == 2
    assert bulk(talker, "BrowsePage", token, states=1, max_messages=3) == 1
    bulk(talker, "BrowseClose", token)
    with pytest.raises(Fault) as refused:
        bulk(talker, "BrowsePage", token)
    assert refused.value.status == "FAILED_PRECONDITION"


def test_a_paused_queue_and_a_paused_key_hand_out_nothing_until_resumed(
    talker: Talker, queue: str
) -> None:
    talker.create_queue(queue)
    talker.enqueue(queue, b"one", headers={})
    talker.pause_queue(queue, "migration")
    talker.pause_key(queue, "default", "too loud")
    found = talker.explain(queue, "default")
    assert found["paused"]["reason"] == "migration"
    assert found["key"]["paused"]["reason"] == "too loud"
    assert found["waiting_for"] == "paused" and found["eta_ms"] is None
    talker.resume_queue(queue)
    assert talker.explain(queue)["paused"] is None
    assert talker.explain(queue)["keys"][0]["waiting_for"] == "paused"
    talker.resume_key(queue, "default")
    stream = talker.consume(queue)
    assert len(stream.take(1)) == 1
    stream.leave()


def test_an_explanation_says_the_same_over_both_protocols(talker: Talker, queue: str) -> None:
    talker.create_queue(queue)
    (id,) = talker.enqueue(queue, b"one", headers={})
    found = talker.explain(queue, None, id)
    assert found["message"]["id"] == id
    assert sum(found["parts_ns"].values()) == found["age_ns"] > 0
    assert "Nobody consumes the queue" in found["sentence"]
    assert queue in [one["queue"] for one in talker.explain("")["queues"]]


def test_a_purge_says_how_many_went(talker: Talker, queue: str) -> None:
    talker.create_queue(queue)
    talker.enqueue(queue, b"1", b"2", b"3", headers={})
    assert talker.purge(queue, "nobody") == 0
    assert talker.purge(queue) == 3
    assert talker.stats(queue).depth == 0
