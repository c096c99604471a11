"""Queues come, are listed and inspected, and go; their consumers are told."""

from __future__ import annotations

import pytest

from fila.wire import bodies, errors
from tests.e2e.peer import Peer, Refused
from tests.e2e.process import Broker


def test_a_queue_is_created_listed_inspected_and_deleted(peer: Peer, queue: str) -> None:
    peer.create_queue(queue)
    assert {queue, queue + ".dlq"} <= set(peer.queues())
    peer.enqueue(queue, b"1", b"2")
    peer.take_one(peer.consume(queue, prefetch=1))
    listed = peer.queues()[queue]
    assert (listed.depth, listed.in_flight, listed.active_consumers) == (1, 1, 1)
    found = peer.stats(queue)
    assert (found.depth, found.in_flight, found.active_consumers) == (1, 1, 1)
    assert (found.active_fairness_keys, found.quantum) == (1, 1)
    assert [(one.key, one.pending, one.weight) for one in found.fairness_keys] == [
        ("default", 1, 1)
    ]
    peer.delete_queue(queue)
    assert not {queue, queue + ".dlq"} & set(peer.queues())


def test_a_name_is_taken_once(peer: Peer, queue: str) -> None:
    peer.create_queue(queue)
    with pytest.raises(Refused) as refused:
        peer.create_queue(queue)
    assert refused.value.code == errors.QUEUE_ALREADY_EXISTS
    assert queue in refused.value.message


@pytest.mark.parametrize("name", ["", "x" * 256, "ü" * 128, "a\nb", "a\x7fb", "a\x00"])
def test_a_bad_name_is_refused(peer: Peer, name: str) -> None:
    with pytest.raises(Refused) as refused:
        peer.create_queue(name)
    assert refused.value.code == errors.INVALID_CONFIG_VALUE


def test_the_longest_name_is_a_name(peer: Peer, queue: str) -> None:
    name = queue + "x" * (251 - len(queue))  # its DLQ's name has four more
    peer.create_queue(name)
    peer.enqueue(name, b"x")
    assert peer.take_one(peer.consume(name)).queue == name


@pytest.mark.parametrize("visibility_ms", [1, 999, 2**63])
def test_a_visibility_timeout_out_of_bounds_is_refused(
    peer: Peer, queue: str, visibility_ms: int
) -> None:
    with pytest.raises(Refused) as refused:
        peer.create_queue(queue, visibility_ms=visibility_ms)
    assert refused.value.code == errors.INVALID_CONFIG_VALUE
    assert queue not in peer.queues()


def test_unknown_queues_are_not_found_at_once(peer: Peer, queue: str) -> None:
    asks = [
        lambda: peer.consume(queue),
        lambda: peer.stats(queue),
        lambda: peer.delete_queue(queue),
        lambda: peer.redrive(queue + ".dlq"),
        lambda: peer.enqueue(queue, b"x"),
    ]
    for ask in asks:
        with pytest.raises(Refused) as refused:
            ask()
        assert refused.value.code == errors.QUEUE_NOT_FOUND
        assert queue in refused.value.message
    some_id = "0190a0b1-c2d3-7e4f-8a5b-6c7d8e9f0a1b"
    assert peer.ack(queue, some_id) == [errors.QUEUE_NOT_FOUND]
    assert peer.nack(queue, some_id) == [errors.QUEUE_NOT_FOUND]


def test_deleting_a_queue_ends_its_consumers_streams(broker: Broker, queue: str) -> None:
    with broker.peer() as consumer, broker.peer() as admin:
        admin.create_queue(queue)
        stream, dead_letters = consumer.consume(queue), consumer.consume(queue + ".dlq")
        other = queue + "-other"
        admin.create_queue(other)
        survivor = consumer.consume(other)
        admin.enqueue(queue, b"x")
        held = consumer.take_one(stream)
        admin.delete_queue(queue)
        for ended, name in ((stream, queue), (dead_letters, queue + ".dlq")):
            with pytest.raises(Refused) as refused:
                consumer.reply(ended)
            assert refused.value.code == errors.QUEUE_NOT_FOUND
            assert name in refused.value.message
        assert consumer.ack(queue, held.id) == [errors.QUEUE_NOT_FOUND]
        admin.enqueue(other, b"y")
        assert consumer.take_one(survivor).payload == b"y"


def test_a_queue_made_anew_starts_empty(peer: Peer, queue: str) -> None:
    peer.create_queue(queue)
    peer.enqueue(queue, *[b"old"] * 50)
    stream = peer.consume(queue, prefetch=5)
    peer.take(stream, 5)
    peer.delete_queue(queue)
    with pytest.raises(Refused):
        peer.reply(stream)
    peer.create_queue(queue)
    found = peer.stats(queue)
    assert (found.depth, found.in_flight, found.active_consumers) == (0, 0, 0)
    peer.enqueue(queue, b"new")
    assert peer.take_one(peer.consume(queue)).payload == b"new"


def test_only_a_dead_letter_queue_can_be_redriven(peer: Peer, queue: str) -> None:
    peer.create_queue(queue)
    with pytest.raises(Refused) as refused:
        peer.redrive(queue)
    assert refused.value.code == errors.NOT_A_DLQ


def test_a_dead_letter_queue_without_its_parent_cannot_be_redriven(peer: Peer, queue: str) -> None:
    peer.create_queue(queue + ".dlq")
    with pytest.raises(Refused) as refused:
        peer.redrive(queue + ".dlq")
    assert refused.value.code == errors.PARENT_QUEUE_NOT_FOUND


def test_queues_that_share_a_prefix_do_not_touch(peer: Peer, queue: str) -> None:
    longer = queue + "0"
    peer.create_queue(queue)
    peer.create_queue(longer)
    peer.enqueue(queue, b"short")
    peer.enqueue(longer, b"long")
    peer.delete_queue(queue)
    assert peer.take_one(peer.consume(longer)).payload == b"long"


def test_a_list_of_many_queues_is_whole(peer: Peer, queue: str) -> None:
    names = [f"{queue}-{n:03}" for n in range(150)]
    requests = [peer.post(bodies.CreateQueue(name)) for name in names]
    for request in requests:
        peer.reply(request)
    assert set(names) <= set(peer.queues())


@pytest.mark.parametrize("name", ["n" * 65_535, "\U0001f600" * 16_383], ids=["ASCII", "wide"])
def test_a_name_too_long_to_quote_is_refused_with_a_reason_that_fits(peer: Peer, name: str) -> None:
    """A reason longer than a string may be once stopped the broker."""
    asks = [
        bodies.Consume(name),
        bodies.GetStats(name),
        bodies.DeleteQueue(name),
        bodies.CreateQueue(name),
        bodies.Redrive(name),
        bodies.SetConfig(name, "value"),
        bodies.SetConfig("throttle.x", name),
        bodies.RevokeApiKey(name),
        bodies.GetAcl(name),
        bodies.SetAcl(name, (bodies.Permission(name, name),)),
        bodies.CreateApiKey(name),
        bodies.CreateQueue("q", on_enqueue=name),
    ]
    reasons = []
    results = 0  # most say it with a code
    for ask in asks:
        try:
            peer.reply(peer.post(ask))
            results += 1
        except Refused as refused:
            reasons.append(refused.message)
    assert reasons and len(reasons) + results == len(asks)
    assert all(0 < len(reason.encode()) <= 1_100 for reason in reasons)
    peer.ping()
