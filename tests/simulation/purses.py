"""A bank and its purses in a bad world: answers late, lost and doubled, owners that crash and
pause, banks that fail over, and clocks that go up to 5 % wrong. The auditor knows nothing of tokens
in purses: it looks at when messages went, and checks that no span saw more than burst + rate × t.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from fila.core.bank import Answer, Ask, Bank, BankRow, Recall
from fila.core.bucket import NS
from fila.core.purse import Purse, Purses

KEY = b"key"
LIVES = 1_000  # a purse is its owner's number times this, and which life of it
TURN_NS = 10_000_000
CALM_NS = 11 * NS  # from here on nothing fails any more
FED_NS = 16 * NS  # the last bank has been elected, and burnt what the one before granted
END_NS = 19 * NS
DRIFT = 0.10
SKEW_NS = NS // 2  # what a new bank allows for the clock of the one before
WRONG = 0.05  # how wrong a clock may go


class Outcome(NamedTuple):
    seed: int
    excess: float  # tokens beyond burst + rate × t, in the worst span
    used: float  # of burst + rate × t, over the whole run
    rows: int
    asks: int
    hungry: tuple[int, ...]  # owners that wanted tokens in the calm at the end and got none

    def broken(self) -> str:
        """The promise that did not hold."""
        if self.excess > 1e-6:
            return f"{self.excess:.3f} more than burst + rate × t went"
        return f"owners {self.hungry} waited for ever" if self.hungry else ""


class _Owner:
    def __init__(self, name: int, clock: float, burst: float) -> None:
        self.name = name
        self.clock = clock
        self.burst = burst
        self.life = 0
        self.up = True
        self.paused_ns = 0
        self.wanting = True
        self.start(0)

    def start(self, now: int) -> None:
        self.life += 1
        self.up = True
        self.purses = Purses(self.name * LIVES + self.life)
        self.purse = Purse(KEY, self.burst, self.now(now))
        self.purses.purses[KEY] = self.purse
        self.recalled: list[bytes] = []

    def now(self, true_ns: int) -> int:
        return int(true_ns * self.clock) + self.name * NS


class World:
    def __init__(self, seed: int, owners: int, trouble: bool) -> None:
        self.random = random.Random(seed)
        self.seed = seed
        self.rate = self.random.choice([2.0, 20.0, 200.0])
        self.burst = self.random.choice([1.0, 10.0, 100.0, 400.0])
        self.now = 0
        self.trouble = trouble
        self.spent: list[tuple[int, int]] = []  # when, by whom
        self.row: BankRow | None = None
        self.rows = 0
        self.asks = 0
        self.bank: Bank | None = None
        self.wakes_ns = 0
        self.settles = False
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._serial = 0
        self.owners = [
            _Owner(name, 1 + self.random.uniform(-WRONG, WRONG), self.burst)
            for name in range(1, owners + 1)
        ]
        if trouble:
            busy = self.random.choice([0.2, 0.9])
            for owner in self.owners:
                owner.wanting = self.random.random() < busy
        self._elect()
        for owner in self.owners:
            self._at(self.random.randrange(TURN_NS), partial(self._turn, owner))
        if trouble:
            kinds = [self._crash, self._pause, self._fail_over, self._turn_over, self._turn_over]
            for _ in range(self.random.randint(0, 24)):
                self._at(self.random.randrange(CALM_NS), self.random.choice(kinds))

    def run(self) -> Outcome:
        while self._events:
            at_ns, _, event = heapq.heappop(self._events)
            if at_ns > END_NS:
                break
            self.now = at_ns
            event()
        late = {who for at_ns, who in self.spent if at_ns > FED_NS}
        hungry = tuple(o.name for o in self.owners if o.wanting and o.name not in late)
        promised = self.burst + self.rate * END_NS / NS
        used = len(self.spent) / promised
        return Outcome(self.seed, self._excess(), used, self.rows, self.asks, hungry)

    def _at(self, at_ns: int, event: Callable[[], None]) -> None:
        self._serial += 1
        heapq.heappush(self._events, (at_ns, self._serial, event))

    def _net(self, event: Callable[[], None]) -> None:
        """Over the wire: late, sometimes lost or twice."""
        copies = 1
        if self.trouble and self.now < CALM_NS:
            copies = self.random.choices([0, 1, 2], [3, 92, 5])[0]
        for _ in range(copies):
            late = self.random.expovariate(500.0)
            if self.trouble and self.now < CALM_NS and self.random.random() < 0.05:
                late += self.random.uniform(0.0, 3.0)
            self._at(self.now + int(late * NS), event)

    def _turn(self, owner: _Owner) -> None:
        self._at(self.now + TURN_NS, partial(self._turn, owner))
        if not owner.up or self.now < owner.paused_ns:
            return
        now = owner.now(self.now)
        purse = owner.purse
        purse.refill(now)
        waiting = self.random.choice([1, 5, 50, 500]) if owner.wanting else 0
        # Consumers have room for some of them, or none: tokens lie in the purse.
        going = min(int(purse.tokens + 1e-9), waiting // self.random.choice([1, 10, 1_000]))
        if going:
            purse.tokens -= going
            self.spent.extend([(self.now, owner.name)] * going)
        recalled, owner.recalled = owner.recalled, []
        ask = owner.purses.ask({KEY: waiting}, recalled, now)
        if ask is not None:
            self.asks += 1
            self._net(lambda: self._hear(ask))

    def _hear(self, ask: Ask) -> None:
        if self.bank is None:
            return
        self.bank.ask(ask, self.now)
        if not self.settles:
            self.settles = True
            self._at(self.now + self.random.randrange(TURN_NS), self._settle)

    def _settle(self) -> None:
        """One turn of the bank, and the next one when it says so."""
        self.settles = False
        if self.bank is None:
            return
        answers, recalls, rows = self.bank.settle(self.now)
        if KEY in rows:
            self.row = rows[KEY]
            self.rows += 1
        told: list[Answer | Recall] = [*answers, *recalls]
        for one in told:
            self._net(partial(self._tell, one))
        wake_ns = self.bank.next_ns()
        if wake_ns and wake_ns != self.wakes_ns:
            self.wakes_ns = wake_ns
            self._at(wake_ns, self._settle)
        account = self.bank.accounts[KEY]
        assert account.tokens + account.outstanding() <= account.burst + 1e-6

    def _tell(self, one: Answer | Recall) -> None:
        owner = self.owners[one.purse // LIVES - 1]
        if not owner.up or owner.purses.number_of_purse != one.purse:
            return  # it is not what it was
        if self.now < owner.paused_ns:
            self._at(owner.paused_ns, lambda: self._tell(one))  # it waits in the socket
        elif isinstance(one, Recall):
            owner.recalled.append(one.key)
        else:
            owner.purses.take(one, owner.now(self.now))

    def _elect(self) -> None:
        # The bank's clock is another one: only how far it goes counts, give or take the skew.
        self.bank = Bank(DRIFT)
        self.bank.open(KEY, self.rate, self.burst, self.row, self.now, SKEW_NS)

    def _crash(self) -> None:
        owner = self.random.choice(self.owners)
        if owner.up:
            owner.up = False
            back = self.now + int(self.random.uniform(0.2, 3.0) * NS)
            self._at(back, lambda: owner.start(self.now))

    def _pause(self) -> None:
        owner = self.random.choice(self.owners)
        owner.paused_ns = self.now + int(self.random.uniform(0.1, 4.0) * NS)

    def _turn_over(self) -> None:
        owner = self.random.choice(self.owners)
        owner.wanting = not owner.wanting

    def _fail_over(self) -> None:
        if self.bank is not None:
            self.bank = None
            self._at(self.now + int(self.random.uniform(0.01, 3.0) * NS), self._elect)

    def _excess(self) -> float:
        """The worst span: how many more went in it than burst + rate × its length."""
        lowest = worst = 0.0
        for n, (at_ns, _) in enumerate(self.spent):
            level = n - self.rate * at_ns / NS
            lowest = level if n == 0 else min(lowest, level)
            worst = max(worst, level - lowest + 1.0 - self.burst)
        return worst


def run_world(seed: int, owners: int = 3, trouble: bool = True) -> Outcome:
    return World(seed, owners, trouble).run()
