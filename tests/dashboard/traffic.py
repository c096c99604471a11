"""A shop's traffic: a noisy tenant, quiet ones, a throttled provider, failures, a forgotten queue.

Owns a thread that produces and consumes until it is stopped, at rates small enough for any machine.
"""

from __future__ import annotations

import random
import threading
import time
from types import TracebackType
from typing import Final

from tests.e2e.peer import Peer
from tests.e2e.process import Broker

HOOK: Final = """
function on_enqueue(msg)
  local keys = {}
  if msg.headers["via"] then keys = { "provider:" .. msg.headers["via"] } end
  return { fairness_key = msg.headers["tenant"] or "none",
           weight = tonumber(msg.headers["weight"]) or 1, throttle_keys = keys }
end
"""
FAILURE: Final = """
function on_failure(msg, error)
  if msg.attempts >= 2 then return { action = "dlq" } end
  return { action = "retry", delay_ms = 1500 }
end
"""
ERRORS: Final = (
    "SMTP 550: mailbox unavailable for user 4711",
    "SMTP 550: mailbox unavailable for user 1234",
    "card declined: insufficient funds",
    "connection reset by peer 10.4.0.17",
)
# tenant, messages per second, weight
ORDERS: Final = (
    ("acme", 90.0, 1),
    ("globex", 16.0, 1),
    ("initech", 14.0, 1),
    ("umbrella", 26.0, 3),
    ("hooli", 8.0, 1),
    ("stark", 4.0, 1),
    ("wayne", 2.5, 1),
    ("wonka", 1.0, 1),
)
MAILS: Final = (("acme", 9.0, 1), ("globex", 3.0, 1), ("initech", 2.0, 1))
TICK_S: Final = 0.05
FAILING: Final = 0.04


class Traffic:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="traffic", daemon=True)
        self.trouble: Exception | None = None
        with broker.peer() as peer:
            for queue in ("orders", "mails"):
                peer.create_queue(queue, on_enqueue=HOOK, on_failure=FAILURE)
            peer.create_queue("invoices", on_enqueue=HOOK)
            peer.create_queue("search-index", on_enqueue=HOOK)
            peer.set_config("throttle.provider:smtp-eu", "6,20")
            peer.set_config("throttle.provider:smtp-us", "25,50")
            for tenant in ("acme", "stark", "hooli"):
                peer.enqueue("invoices", *[b"{}"] * 14, headers={"tenant": tenant})

    def __enter__(self) -> Traffic:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join(10)
        if self.trouble is not None and kind is None:
            raise self.trouble

    def _run(self) -> None:
        try:
            with self._broker.peer() as producer, self._broker.peer() as consumer:
                self._work(producer, consumer)
        except Exception as error:
            if not self._stop.is_set():
                self.trouble = error

    def _work(self, producer: Peer, consumer: Peer) -> None:
        orders = _Worker(consumer, "orders", 5.0)  # messages per tick: 100 a second
        mails = _Worker(consumer, "mails", 2.0)
        index = _Worker(consumer, "search-index", 10.0)
        owed: dict[tuple[str, str], float] = {}
        random_ = random.Random(7)
        while not self._stop.wait(TICK_S):
            for queue, tenants in (("orders", ORDERS), ("mails", MAILS), ("search-index", MAILS)):
                for tenant, rate, weight in tenants:
                    due = owed.get((queue, tenant), 0.0) + rate * TICK_S
                    owed[queue, tenant] = due - int(due)
                    headers = {"tenant": tenant, "weight": str(weight)}
                    if queue == "mails":
                        headers["via"] = "smtp-us" if tenant == "initech" else "smtp-eu"
                    if due >= 1:
                        producer.enqueue(queue, *[b'{"amount": 12}'] * int(due), headers=headers)
            for worker in (orders, mails, index):
                worker.tick(random_)


class _Worker:
    def __init__(self, peer: Peer, queue: str, per_tick: float) -> None:
        self._peer = peer
        self._queue = queue
        self._per_tick = per_tick
        self._stream = peer.consume(queue, prefetch=24)
        self._held: list[str] = []

    def tick(self, random_: random.Random) -> None:
        self._peer.read(0.001)
        self._held += [message.id for message in self._peer.waiting(self._stream)]
        now, self._held = self._held[: int(self._per_tick)], self._held[int(self._per_tick) :]
        fine = [id for id in now if random_.random() >= FAILING]
        if fine:
            self._peer.ack(self._queue, *fine)
        for id in set(now) - set(fine):
            self._peer.nack(self._queue, id, error=random_.choice(ERRORS))


def many_keys(peer: Peer, queue: str, count: int) -> None:
    """A queue with so many tenants, each with a few messages."""
    peer.create_queue(queue, on_enqueue=HOOK)
    for at in range(count):
        headers = {"tenant": f"tenant-{at:05d}"}
        peer.post_enqueue(queue, [b"m"] * (1 + at % 3), headers)
        if at % 200 == 199:
            peer.ping()
    peer.ping()


def settle(seconds: float) -> None:
    """Let traffic flow: the one thing here that takes its own time."""
    time.sleep(seconds)
