"""From failure to the dead-letter queue and back, decided by an on_failure hook."""

from __future__ import annotations

import time

from fila.wire import errors
from tests.e2e.peer import Peer
from tests.e2e.process import wait_until

THREE_TRIES = """
function on_failure(msg, error)
  if msg.attempts >= 3 then return { action = "dlq" } end
  return { action = "retry" }
end"""
BY_ERROR = """
function on_failure(msg, error)
  if error:find("fatal") and msg.error == error then return { action = "dlq" } end
  return { action = "retry" }
end"""
EXPIRED = """
function on_failure(msg)
  if msg.error == "visibility timeout expired" then return { action = "dlq" } end
  return { action = "retry" }
end"""
BY_TENANT = "function on_enqueue(msg) return { fairness_key = msg.headers.tenant } end"


def test_a_message_nacked_to_exhaustion_is_redriven_from_the_dead_letters(
    peer: Peer, queue: str
) -> None:
    peer.create_queue(queue, on_failure=THREE_TRIES)
    [id] = peer.enqueue(queue, b"poison", headers={"tenant": "acme"})
    stream = peer.consume(queue)
    for attempts in (0, 1, 2):
        assert peer.take_one(stream).attempts == attempts
        assert peer.nack(queue, id) == [errors.OK]
    peer.expect_quiet(stream, 0.1)
    assert (peer.stats(queue).depth, peer.stats(queue + ".dlq").depth) == (0, 1)
    assert peer.redrive(queue + ".dlq", 10) == 1
    back = peer.take_one(stream)
    assert (back.id, back.attempts, back.payload) == (id, 0, b"poison")
    assert back.headers == {"tenant": "acme"}
    assert peer.ack(queue, id) == [errors.OK]
    assert peer.stats(queue + ".dlq").depth == 0


def test_a_dead_letter_keeps_its_id_content_and_attempts(peer: Peer, queue: str) -> None:
    peer.create_queue(queue, on_enqueue=BY_TENANT, on_failure=BY_ERROR)
    [id] = peer.enqueue(queue, b"poison", headers={"tenant": "acme"})
    stream = peer.consume(queue)
    peer.take_one(stream)
    peer.nack(queue, id, error="transient")
    peer.take_one(stream)
    peer.nack(queue, id, error="fatal: no such account")
    dead = peer.take_one(peer.consume(queue + ".dlq"))
    assert (dead.id, dead.queue, dead.attempts) == (id, queue + ".dlq", 2)
    assert (dead.fairness_key, dead.payload, dead.headers.pop("tenant")) == (
        "acme",
        b"poison",
        "acme",
    )
    died_ms = int(dead.headers.pop("fila.dead.at_ms"))
    assert abs(died_ms - time.time() * 1000) < 60_000
    assert dead.headers == {
        "fila.dead.reason": "hook",
        "fila.dead.error": "fatal: no such account",
        "fila.dead.attempts": "2",
        "fila.dead.queue": queue,
    }
    assert peer.ack(queue, id) == [errors.MESSAGE_NOT_FOUND]
    assert peer.ack(queue + ".dlq", id) == [errors.OK]


def test_a_message_that_kills_its_consumers_reaches_the_dead_letters(
    peer: Peer, queue: str
) -> None:
    peer.create_queue(queue, on_failure=EXPIRED, visibility_ms=1_000)
    [id] = peer.enqueue(queue, b"x")
    peer.take_one(peer.consume(queue))
    dead = peer.take_one(peer.consume(queue + ".dlq"))
    assert (dead.id, dead.attempts) == (id, 1)


def test_redrive_takes_pending_ones_only_oldest_first(peer: Peer, queue: str) -> None:
    peer.create_queue(queue, on_failure="function on_failure(msg) return {action='dlq'} end")
    ids = peer.enqueue(queue, *(b"%d" % n for n in range(10)))
    stream = peer.consume(queue)
    peer.take(stream, 10)
    peer.nack(queue, *ids)
    held = peer.take_one(peer.consume(queue + ".dlq", prefetch=1))
    assert held.id == ids[0]
    assert peer.redrive(queue + ".dlq", 3) == 3
    assert [message.id for message in peer.take(stream, 3)] == ids[1:4]
    assert peer.redrive(queue + ".dlq") == 6
    assert [message.id for message in peer.take(stream, 6)] == ids[4:]
    assert peer.redrive(queue + ".dlq") == 0
    assert peer.stats(queue + ".dlq").in_flight == 1


def test_a_large_redrive_moves_everything_while_others_are_served(peer: Peer, queue: str) -> None:
    peer.create_queue(queue, on_failure="function on_failure(msg) return {action='dlq'} end")
    count = 3_000
    for _ in range(count // 500):
        peer.enqueue(queue, *[b"x"] * 500)
    stream = peer.consume(queue, prefetch=count)
    ids = [message.id for message in peer.take(stream, count)]
    for start in range(0, count, 500):
        peer.nack(queue, *ids[start : start + 500])
    peer.cancel(stream)
    wait_until(lambda: peer.stats(queue + ".dlq").depth == count, 5, "the dead letters")
    assert peer.redrive(queue + ".dlq", timeout_s=20) == count
    assert peer.stats(queue).depth == count
    again = peer.take(peer.consume(queue, prefetch=count), count)
    assert [message.id for message in again] == ids


def test_redriven_messages_meet_the_enqueue_hook_again(peer: Peer, queue: str) -> None:
    script = f"""
    function on_enqueue(msg) return {{ fairness_key = fila.get("route:{queue}") or "old" }} end"""
    peer.create_queue(
        queue, on_enqueue=script, on_failure="function on_failure(m) return {action='dlq'} end"
    )
    [id] = peer.enqueue(queue, b"x")
    stream = peer.consume(queue)
    assert peer.take_one(stream).fairness_key == "old"
    peer.nack(queue, id)
    peer.set_config(f"route:{queue}", "new")
    peer.redrive(queue + ".dlq")
    assert peer.take_one(stream).fairness_key == "new"


def test_a_dead_letter_that_fails_is_retried_where_it_is(peer: Peer, queue: str) -> None:
    peer.create_queue(queue, on_failure="function on_failure(m) return {action='dlq'} end")
    [id] = peer.enqueue(queue, b"x")
    peer.take_one(peer.consume(queue))
    peer.nack(queue, id)
    stream = peer.consume(queue + ".dlq")
    peer.take_one(stream)
    peer.nack(queue + ".dlq", id)
    assert peer.take_one(stream).attempts == 2
    assert queue + ".dlq.dlq" not in peer.queues()
