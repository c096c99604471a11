"""Rate limits per key: only what is limited waits, and it waits exactly as long as it must."""

from __future__ import annotations

from tests.e2e.jitter import Jitter
from tests.e2e.load import busy
from tests.e2e.peer import Peer
from tests.e2e.process import Broker

BY_PROVIDER = """
function on_enqueue(msg)
  local keys = {}
  if msg.headers["provider"] then keys[1] = msg.headers["provider"] end
  if msg.headers["also"] then keys[#keys + 1] = msg.headers["also"] end
  return { fairness_key = msg.headers["tenant"] or "default", throttle_keys = keys }
end"""


def test_a_limited_key_is_skipped_and_the_others_are_served_at_once(peer: Peer, queue: str) -> None:
    limited = f"limited-{queue}"
    peer.set_config(f"throttle.{limited}", "0.001,2")
    peer.create_queue(queue, on_enqueue=BY_PROVIDER)
    peer.enqueue(queue, *[b"x"] * 20, headers={"tenant": "a", "provider": limited})
    peer.enqueue(queue, *[b"y"] * 20, headers={"tenant": "b"})
    peer.enqueue(queue, *[b"z"] * 20, headers={"tenant": "a"})
    stream = peer.consume(queue)
    messages = peer.take(stream, 42)
    by_payload = [message.payload for message in messages]
    assert (by_payload.count(b"x"), by_payload.count(b"y"), by_payload.count(b"z")) == (2, 20, 20)
    peer.expect_quiet(stream, 0.2)
    found = peer.stats(queue)
    assert found.depth == 18
    [bucket] = found.throttle_keys
    assert (bucket.key, bucket.rate_per_second, bucket.burst) == (limited, 0.001, 2.0)
    assert 0 <= bucket.tokens < 1


def test_tokens_come_at_their_rate(peer: Peer, queue: str, jitter: Jitter) -> None:
    """20 per second with a burst of 5: 25 messages take one second, not less, not much more."""
    key = f"steady-{queue}"
    peer.set_config(f"throttle.{key}", "20,5")
    peer.create_queue(queue, on_enqueue=BY_PROVIDER)
    peer.enqueue(queue, *[b"x"] * 100, headers={"provider": key})
    stream = peer.consume(queue)
    messages = peer.take(stream, 25)
    spent_ms = messages[-1].leased_at_ms - messages[0].leased_at_ms
    assert 999 <= spent_ms <= 1_000 + jitter.late_ms_max
    for count, message in enumerate(messages[5:], start=1):
        due_ms = messages[0].leased_at_ms + count * 50
        assert -1 <= message.leased_at_ms - due_ms <= jitter.late_ms_max


def test_a_token_wakes_its_waiter_on_time_under_load(
    broker: Broker, queue: str, jitter: Jitter
) -> None:
    key = f"loaded-{queue}"
    with broker.peer() as peer, busy(broker, queue + "-load"):
        peer.set_config(f"throttle.{key}", "4,1")
        peer.create_queue(queue, on_enqueue=BY_PROVIDER)
        peer.enqueue(queue, *[b"x"] * 5, headers={"provider": key})
        messages = peer.take(peer.consume(queue), 5)
    for count, message in enumerate(messages):
        late_ms = message.leased_at_ms - messages[0].leased_at_ms - 250 * count
        assert -1 <= late_ms <= jitter.late_ms_max


def test_all_of_a_messages_keys_must_have_a_token(peer: Peer, queue: str) -> None:
    wide, narrow = f"wide-{queue}", f"narrow-{queue}"
    peer.set_config(f"throttle.{wide}", "0.001,10")
    peer.set_config(f"throttle:{narrow}:burst", "3")  # no limit yet: the rate makes the bucket
    peer.set_config(f"throttle:{narrow}:rate", "0.001")
    peer.create_queue(queue, on_enqueue=BY_PROVIDER)
    peer.enqueue(queue, *[b"both"] * 6, headers={"provider": wide, "also": narrow})
    peer.enqueue(queue, *[b"wide"] * 6, headers={"provider": wide})
    stream = peer.consume(queue)
    payloads = [message.payload for message in peer.take(stream, 9)]
    assert (payloads.count(b"both"), payloads.count(b"wide")) == (3, 6)
    peer.expect_quiet(stream, 0.1)


def test_raising_and_lifting_a_limit_acts_at_once(peer: Peer, queue: str) -> None:
    key = f"lifted-{queue}"
    peer.set_config(f"throttle.{key}", "0,1")
    peer.create_queue(queue, on_enqueue=BY_PROVIDER)
    peer.enqueue(queue, *[b"x"] * 10, headers={"provider": key})
    stream = peer.consume(queue)
    peer.take_one(stream)
    peer.expect_quiet(stream, 0.1)
    peer.set_config(f"throttle.{key}", "1000,1")
    peer.take(stream, 4)
    peer.set_config(f"throttle.{key}", "")
    peer.take(stream, 5)


def test_a_bucket_is_shared_by_all_queues(peer: Peer, queue: str) -> None:
    key = f"shared-{queue}"
    peer.set_config(f"throttle.{key}", "0.001,4")
    streams = []
    for name in (queue, queue + "-other"):
        peer.create_queue(name, on_enqueue=BY_PROVIDER)
        peer.enqueue(name, *[b"x"] * 10, headers={"provider": key})
        streams.append(peer.consume(name))
    for _ in range(5):
        peer.read(timeout_s=0.05)
    assert sum(len(peer.waiting(stream)) for stream in streams) == 4


def test_a_crash_grants_no_fresh_burst(own_broker: object, queue: str) -> None:
    broker: Broker = own_broker()  # type: ignore[operator]
    with broker:
        peer = broker.peer()
        peer.set_config("throttle.crash", "0.001,5")
        peer.create_queue(queue, on_enqueue=BY_PROVIDER)
        peer.enqueue(queue, *[b"x"] * 20, headers={"provider": "crash"})
        stream = peer.consume(queue)
        peer.take(stream, 5)
        broker.restart()
        with broker.peer() as again:
            stream = again.consume(queue)
            again.expect_quiet(stream, 0.3)
            found = again.stats(queue)
            assert (found.depth, found.in_flight) == (15, 5)
            assert found.throttle_keys[0].tokens < 1
