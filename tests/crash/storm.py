"""A storm: clients at work while the broker is killed again and again on one data directory."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.crash.keeper import Keeper
from tests.crash.ledger import Ledger
from tests.crash.workers import Address, Administrator, Consumer, Producer, Worker
from tests.e2e.process import Broker, wait_until

BUSY = ["orders", "mails"]  # enqueued to and consumed from all the time
QUIET = "archive"  # enqueued to, and read only when the storm is over
VISIBILITY_MS = 1_000
DRAIN_S = 120.0

ON_ENQUEUE = "function on_enqueue(msg) return { fairness_key = msg.headers['tenant'] } end"
ON_FAILURE = """
function on_failure(msg)
  if msg.attempts >= 3 then return { action = 'dlq' } end
  return { action = 'retry', delay_ms = msg.attempts * 50 }
end"""


@dataclass
class Report:
    kills: int = 0
    kills_while_starting: int = 0
    seconds: float = 0.0
    sent: int = 0
    stored: int = 0
    open_sends: int = 0  # sent, no answer; how many of them were stored all the same
    open_sends_stored: int = 0
    deliveries: int = 0
    redelivered: int = 0
    acked: int = 0
    quiet_stored: int = 0
    kept: int = 0  # acknowledged in the queues of the keepers
    kept_seen: int = 0
    done: dict[str, int] = field(default_factory=dict)  # what keepers did, and how often
    start_s_max: float = 0.0
    broken: list[str] = field(default_factory=list)

    def text(self) -> str:
        return (
            f"{self.kills} kills ({self.kills_while_starting} of them while it was starting) in "
            f"{self.seconds:.0f} s: {self.sent} messages sent, {self.stored} acknowledged, "
            f"{self.open_sends} without an answer (of which {self.open_sends_stored} were stored); "
            f"{self.deliveries} deliveries, {self.redelivered} of them again; "
            f"{self.acked} acks confirmed; {self.quiet_stored} in the unread queue; "
            f"keepers: {self.kept} acknowledged, {self.kept_seen} deliveries, "
            f"{', '.join(f'{name} {count}' for name, count in sorted(self.done.items()))}; "
            f"slowest start {self.start_s_max:.2f} s; {len(self.broken)} promises broken"
        )


class Storm:
    def __init__(self, directory: Path, durability: str = "os", seed: int = 0) -> None:
        self.chance = random.Random(seed)
        self.broker = Broker(directory / "data", {"storage.durability": durability})
        self.ledger = Ledger()
        self.report = Report()
        self._address: Address | None = None
        shared = (lambda: self._address, self.ledger)
        self.producers = [
            Producer("a", BUSY, 0.0, *shared, self._chance()),
            Producer("b", BUSY, 0.005, *shared, self._chance()),
            Producer("q", [QUIET], 0.01, *shared, self._chance()),
        ]
        dead_letters = [queue + ".dlq" for queue in BUSY]
        self.consumers = [
            Consumer(BUSY, *shared, self._chance()),
            Consumer(BUSY, *shared, self._chance()),
            Consumer([*BUSY, *dead_letters], *shared, self._chance()),
        ]
        self.administrator = Administrator(BUSY, *shared, self._chance())
        self.keepers = [Keeper(f"kept-{at}", *shared, self._chance()) for at in range(2)]

    def run(self, kills: int) -> Report:
        """Kill so many times, then let everything come to rest and draw the line."""
        began = time.monotonic()
        try:
            self._set_up()
            for worker in self._workers():
                worker.start()
            for _ in range(kills):
                self._kill_once()
            self._come_to_rest()
            self._check_quiet_queue()
            self._check_nothing_returns()
        finally:
            self._stop(self._workers())
            self.broker.__exit__(None, None, None)
        self._conclude(time.monotonic() - began)
        return self.report

    # --- the storm

    def _set_up(self) -> None:
        self._start()
        with self.broker.peer() as peer:
            for queue in BUSY:
                peer.create_queue(queue, ON_ENQUEUE, ON_FAILURE, VISIBILITY_MS)
            peer.create_queue(QUIET, ON_ENQUEUE)

    def _kill_once(self) -> None:
        time.sleep(self.chance.uniform(0.02, 0.6))
        self._address = None
        self.broker.kill()
        self.report.kills += 1
        while self.chance.random() < 0.2:
            # Killed while it starts, maybe before it has read its store.
            self.broker.launch()
            time.sleep(self.chance.uniform(0.0, 0.4))
            self.broker.kill()
            self.report.kills += 1
            self.report.kills_while_starting += 1
        self._start()

    def _start(self) -> None:
        began = time.monotonic()
        self.broker.start()
        self.report.start_s_max = max(self.report.start_s_max, time.monotonic() - began)
        self._address = Address(*self.broker.address)

    def _come_to_rest(self) -> None:
        """Producers stop; consumers take everything that is left."""
        self._stop([*self.producers, self.administrator])
        for keeper in self.keepers:
            keeper.finish.set()
        for consumer in self.consumers:
            consumer.finish.set()
        for keeper in self.keepers:
            keeper.join(DRAIN_S)
        with self.broker.peer() as peer:
            names = [name for name in peer.queues() if name != QUIET]
            left: dict[str, str] = {}

            def empty() -> bool:
                left.clear()
                for name in names:
                    found = peer.stats(name)
                    if found.depth + found.in_flight:
                        left[name] = f"{found.depth} pending, {found.in_flight} leased, "
                        left[name] += f"{found.active_consumers} consumers"
                return not left or any(worker.fault for worker in self._workers())

            try:
                wait_until(empty, DRAIN_S, "the queues to be drained")
            except AssertionError as error:
                self.ledger.broken.append(f"{error}: {left}")
            for name, what in left.items():
                self.ledger.broken.append(f"{name} was not drained: {what}")

    # --- what must be true now

    def _check_quiet_queue(self) -> None:
        """The queue nobody read holds exactly what was acknowledged, and maybe what was open."""
        mine = {token for token in self.ledger.sent if token.startswith("q-")}
        stored = {token for token in self.ledger.stored if token.startswith("q-")}
        with self.broker.peer() as peer:
            depth = peer.stats(QUIET).depth
            stream = peer.consume(QUIET, prefetch=1_000)
            tokens: list[str] = []
            while len(tokens) < depth:
                message = peer.take_one(stream)
                tokens.append(message.payload.decode())
                self.ledger.was_delivered([message])
                peer.post_ack(QUIET, [message.id])
            wait_until(lambda: peer.stats(QUIET).in_flight == 0, 10, "the last acks")
        self.report.quiet_stored = depth
        if len(set(tokens)) != depth:
            self.ledger.broken.append(f"{QUIET}: {depth - len(set(tokens))} messages are doubled")
        if not stored <= set(tokens) <= mine:
            self.ledger.broken.append(f"{QUIET}: {len(stored - set(tokens))} messages are missing")
        self.ledger.acking(tokens)

    def _check_nothing_returns(self) -> None:
        """One more kill: what was acked stays gone."""
        self._address = None
        self.broker.kill()
        self.report.kills += 1
        self._start()
        time.sleep(1.2)  # longer than a lease: what is held by anybody would come back
        with self.broker.peer() as peer:
            for name, one in peer.queues().items():
                if one.depth + one.in_flight:
                    left = f"{one.depth} pending and {one.in_flight} leased"
                    self.ledger.broken.append(f"{name}: {left} after all was acked")

    def _conclude(self, seconds: float) -> None:
        ledger, report = self.ledger, self.report
        for worker in self._workers():
            if worker.fault is not None:
                ledger.broken.append(f"{type(worker).__name__}: {worker.fault!r}")
        for keeper in self.keepers:
            ledger.broken += [f"{keeper.queue}: {what}" for what in keeper.model.broken[:10]]
            report.kept += keeper.model.stored
            report.kept_seen += keeper.model.seen
            for name, count in keeper.done.items():
                report.done[name] = report.done.get(name, 0) + count
        for token in ledger.missing()[:10]:
            ledger.broken.append(f"{token} was acknowledged and never delivered")
        for token in ledger.unfinished()[:10]:
            ledger.broken.append(f"{token} vanished without an ack")
        report.seconds = seconds
        report.sent = len(ledger.sent)
        report.stored = len(ledger.stored)
        report.open_sends = report.sent - report.stored
        report.open_sends_stored = len(ledger.consumed.keys() - ledger.stored.keys())
        report.deliveries = sum(ledger.consumed.values())
        report.redelivered = report.deliveries - len(ledger.consumed)
        report.acked = len(ledger.finished)
        report.broken = ledger.broken

    def _workers(self) -> list[Worker]:
        return [*self.producers, *self.consumers, *self.keepers, self.administrator]

    def _stop(self, workers: list[Worker]) -> None:
        for worker in workers:
            worker.stopping.set()
        for worker in workers:
            if worker.ident is not None:
                worker.join(30)

    def _chance(self) -> random.Random:
        return random.Random(self.chance.getrandbits(32))
