"""The clients of a storm: producers, consumers and an administrator, each on a thread of its own.

Each connects, works until its connection dies with the broker, and connects again. What it may
conclude goes into the ledger; what it cannot know (a result that never came) it leaves open.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import NamedTuple

from fila.wire import errors
from tests.crash.ledger import Ledger
from tests.e2e.peer import Closed, Peer, Received

TENANTS = 12
CONFIG_KEY = "storm:count"
WAIT_S = 60.0  # a flush may take long where others use the disk; the storm is about loss


class Address(NamedTuple):
    host: str
    port: int


class Worker(threading.Thread):
    """Runs `work` on connection after connection until it is told to stop."""

    def __init__(
        self, address: Callable[[], Address | None], ledger: Ledger, chance: random.Random
    ) -> None:
        super().__init__(daemon=True)
        self.address = address
        self.ledger = ledger
        self.chance = chance
        self.stopping = threading.Event()
        self.fault: BaseException | None = None

    def run(self) -> None:
        try:
            while not self.stopping.is_set():
                address = self.address()
                if address is None:
                    self.stopping.wait(0.002)
                    continue
                try:
                    with Peer(address, wait_s=WAIT_S) as peer:
                        self.work(peer)
                except (OSError, Closed):
                    continue  # the broker was killed
        except BaseException as error:
            self.fault = error

    def work(self, peer: Peer) -> None:
        raise NotImplementedError


class Producer(Worker):
    """Enqueues batches of every size, several on their way at once."""

    def __init__(self, name: str, queues: list[str], pause_s: float, *rest: object) -> None:
        super().__init__(*rest)  # type: ignore[arg-type]
        self.label = name
        self.queues = queues
        self.pause_s = pause_s
        self.made = 0

    def work(self, peer: Peer) -> None:
        waiting: list[tuple[int, list[str]]] = []
        while not self.stopping.is_set():
            count = self.chance.choice((1, 1, 5, 20, 100))
            tokens = [f"{self.label}-{self.made + n}" for n in range(count)]
            self.made += count
            self.ledger.sending(tokens)
            headers = {"tenant": f"t{self.chance.randrange(TENANTS)}"}
            queue = self.chance.choice(self.queues)
            payloads = [token.encode() for token in tokens]
            waiting.append((peer.post_enqueue(queue, payloads, headers), tokens))
            if len(waiting) > self.chance.randrange(4):
                self.collect(peer, *waiting.pop(0))
            if self.pause_s:
                self.stopping.wait(self.pause_s)
        for request, tokens in waiting:
            self.collect(peer, request, tokens)

    def collect(self, peer: Peer, request: int, tokens: list[str]) -> None:
        results = peer.enqueue_results(request)
        codes = {code for code, _ in results}
        assert codes == {errors.OK}, f"refused: {codes}"
        self.ledger.was_stored(tokens, [id for _, id in results])


class Consumer(Worker):
    """Acks most, nacks some, forgets a few until their lease runs out, and sometimes says goodbye.

    Told to `finish`, it does nothing but ack.
    """

    def __init__(self, queues: list[str], *rest: object) -> None:
        super().__init__(*rest)  # type: ignore[arg-type]
        self.queues = queues
        self.finish = threading.Event()

    def work(self, peer: Peer) -> None:
        prefetch = self.chance.choice((1, 10, 100, 500))
        streams = {peer.consume(queue, prefetch): queue for queue in self.queues}
        while not self.stopping.is_set():
            peer.read(timeout_s=0.02)
            for stream, queue in streams.items():
                messages = peer.waiting(stream)
                if messages:
                    self.ledger.was_delivered(messages)
                    self.settle(peer, queue, messages)
            if not self.finish.is_set() and self.chance.random() < 0.002:
                peer.disconnect()
                return

    def settle(self, peer: Peer, queue: str, messages: list[Received]) -> None:
        if self.finish.is_set():
            self.ack(peer, queue, messages)
            return
        fate = [self.chance.random() for _ in messages]
        self.ack(peer, queue, [one for one, f in zip(messages, fate, strict=True) if f < 0.85])
        failed = [one.id for one, f in zip(messages, fate, strict=True) if 0.85 <= f < 0.97]
        if failed:
            peer.nack(queue, *failed, error="storm")

    def ack(self, peer: Peer, queue: str, messages: list[Received]) -> None:
        tokens = [message.payload.decode() for message in messages]
        self.ledger.acking(tokens)
        codes = peer.ack(queue, *(message.id for message in messages))
        done = [token for token, code in zip(tokens, codes, strict=True) if code == errors.OK]
        self.ledger.was_acked(done)


class Administrator(Worker):
    """Moves dead letters back, counts in the runtime config, and looks at everything."""

    def __init__(self, queues: list[str], *rest: object) -> None:
        super().__init__(*rest)  # type: ignore[arg-type]
        self.queues = queues

    def work(self, peer: Peer) -> None:
        ledger = self.ledger
        found = int(peer.get_config(CONFIG_KEY) or 0)
        if not ledger.config_stored <= found <= ledger.config_sent:
            ledger.broken.append(
                f"config is {found}, was {ledger.config_stored} to {ledger.config_sent}"
            )
        while not self.stopping.is_set():
            ledger.config_sent += 1
            peer.set_config(CONFIG_KEY, str(ledger.config_sent))
            ledger.config_stored = ledger.config_sent
            queue = self.chance.choice(self.queues)
            peer.stats(queue)
            peer.redrive(queue + ".dlq", self.chance.choice((1, 10, 0)))
            self.stopping.wait(0.02)
