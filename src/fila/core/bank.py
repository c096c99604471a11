"""The bank: the tokens of throttle keys whose messages wait at several owners of queues.

An owner spends from purses (`core/purse.py`), the bank fills them. It promises for every key, over
all owners together, what a bucket promises alone: no span t sees more than burst + rate × t
deliveries, whatever is lost, late, doubled, or crashes. The invariant behind that is

    tokens + outstanding <= burst

where `outstanding` is what was granted and is not known to be spent, handed back or burnt. A grant
is worth nothing `LIFE_NS` after its purse asked for it, by the purse's own clock; the bank burns it
a little later by its own. No two clocks are compared, only how fast they go (`drift`).

While one purse alone asks for a key, the bank lends it the whole bucket: it then refills by itself,
without a trip per token. A second purse that asks ends the loan.

What a new bank must know stands in a row per key, written in the same batch as the grants that rest
on it: grants come out of a reserve, which the row counts as gone. So a row is written about once a
second for a key that moves, and a crash grants no fresh burst.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from fila.core.bucket import NS, TOKEN
from fila.core.deadline import Deadlines, Sleeper

LIFE_NS: Final = NS  # how long a grant is worth something, from when it was asked for
RESERVE_NS: Final = NS  # how much time's worth of tokens one row admits
PACE_NS: Final = 10_000_000  # purses that wait are filled at most so often


class Report(NamedTuple):
    """What became of one grant: what is left, and whether that goes back."""

    grant: int  # the number of the ask it was granted for
    left: float
    done: bool


class Want(NamedTuple):
    key: bytes
    tokens: int  # how many it could spend at once; 0: it only reports
    reports: tuple[Report, ...]


class Ask(NamedTuple):
    """What one owner says in one turn, about all of its keys."""

    purse: int  # the owner in its present life: an owner that starts anew has another number
    number: int  # rises with every ask of this purse
    wants: tuple[Want, ...]


class Grant(NamedTuple):
    key: bytes
    tokens: float
    lent: bool  # the whole bucket, as it stands; else whole tokens, and no more of them
    rate: float  # how fast a lent bucket refills


class Answer(NamedTuple):
    purse: int
    number: int  # of the ask it answers
    grants: tuple[Grant, ...]


class Recall(NamedTuple):
    """Hand the lent bucket back now, somebody else asks for it."""

    purse: int
    key: bytes


class BankRow(NamedTuple):
    """What a new bank goes by: its own tokens, and what may be in purses."""

    level: float  # less than nothing where the reserve reaches into what is yet to come
    at_ns: int
    out: float


class _Granted:
    __slots__ = ("left", "lent", "until_ns")

    def __init__(self, left: float, until_ns: int, lent: bool) -> None:
        self.left = left
        self.until_ns = until_ns
        self.lent = lent


class Account(Sleeper):
    """One key at the bank."""

    __slots__ = (
        "asked",
        "at_ns",
        "blind",
        "blind_until_ns",
        "burst",
        "grants",
        "heard",
        "key",
        "last",
        "rate",
        "reserve",
        "tokens",
        "wants",
    )

    def __init__(self, key: bytes, rate: float, burst: float, now: int) -> None:
        super().__init__()
        self.key = key
        self.rate = rate
        self.burst = burst
        self.tokens = burst
        self.at_ns = now
        self.grants: dict[tuple[int, int], _Granted] = {}  # by purse and number of the ask
        self.heard: dict[int, int] = {}  # the last ask of each purse
        self.asked: dict[int, int] = {}  # when each purse last wanted tokens
        self.wants: dict[int, tuple[int, int]] = {}  # who waits: number and tokens by purse
        self.reserve = 0.0
        self.last = 0  # the purse that had the odd token last
        # What an earlier bank may have granted, until it is burnt for sure.
        self.blind = 0.0
        self.blind_until_ns = 0

    def outstanding(self) -> float:
        return sum(granted.left for granted in self.grants.values()) + self.blind

    def refill(self, now: int) -> None:
        """With the room there was: what is burnt or reported now makes room from now on."""
        room = self.burst - self.outstanding()
        for granted in self.grants.values():
            if granted.lent and granted.until_ns <= now:
                # The borrower may have spent everything up to the loan's last moment.
                self.at_ns = granted.until_ns
                self.tokens = 0.0
                room = self.burst
        if now > self.at_ns:
            tokens = self.tokens + (now - self.at_ns) * self.rate / NS
            self.tokens = min(tokens, max(room, 0.0))
            self.at_ns = now
        for name in [name for name, one in self.grants.items() if one.until_ns <= now]:
            del self.grants[name]
        if self.blind and now >= self.blind_until_ns:
            self.blind = 0.0

    def report(self, purse: int, number: int, report: Report) -> None:
        """What the ask `number` says of a grant; of one that is burnt, it says nothing."""
        name = (purse, report.grant)
        granted = self.grants.get(name)
        if granted is None and report.done:
            # The answer that renewed a loan may have been lost: handing back ends all before it.
            lent = self.loan()
            if lent is not None and lent[0] == purse and report.grant < lent[1] < number:
                name, granted = lent, self.grants[lent]
        if granted is None:
            return
        left = min(max(report.left, 0.0), granted.left)
        if report.done:
            del self.grants[name]
            self.tokens = min(self.tokens + left, max(self.burst - self.outstanding(), 0.0))
        elif not granted.lent:
            granted.left = left

    def loan(self) -> tuple[int, int] | None:
        """Who has the whole bucket, by the number of which ask."""
        for name, granted in self.grants.items():
            return name if granted.lent else None  # a loan is the only grant there is
        return None

    def wake_ns(self, now: int) -> int:
        """When those who wait may get something; 0 for not before somebody asks again."""
        if not self.wants:
            return 0
        at_ns = self.blind_until_ns if self.blind else 0
        at_ns = min([at_ns or now + LIFE_NS, *(one.until_ns for one in self.grants.values())])
        if self.tokens < TOKEN and self.rate > 0.0 and self.outstanding() < self.burst:
            at_ns = min(at_ns, now + math.ceil(min((1.0 - self.tokens) / self.rate, 1.0) * NS))
        return max(at_ns, now + PACE_NS)

    def forget(self, now: int) -> None:
        """Who has not asked for a grant's life is no rival any more, and has no grants left."""
        for purse, at_ns in [one for one in self.asked.items() if now - one[1] >= LIFE_NS]:
            self.wants.pop(purse, None)
            if now - at_ns < 2 * LIFE_NS:
                continue
            del self.asked[purse]
            if all(owner != purse for owner, _ in self.grants):
                self.heard.pop(purse, None)


class Bank:
    """All accounts. One turn: `ask` for what arrived, then `settle`; nothing of what that says may
    leave before the rows it gives are committed."""

    __slots__ = ("_burn_ns", "_deadlines", "_turn", "accounts", "drift")

    def __init__(self, drift: float) -> None:
        """`drift`: by how much of themselves two clocks may go apart; 0 within one machine."""
        self.accounts: dict[bytes, Account] = {}
        self.drift = drift
        self._burn_ns = int(LIFE_NS * (1.0 + drift)) + 1
        self._turn: dict[bytes, Account] = {}  # accounts that somebody asked in this turn
        self._deadlines = Deadlines()  # of accounts for which somebody waits

    def open(
        self, key: bytes, rate: float, burst: float, row: BankRow | None, now: int, skew_ns: int
    ) -> None:
        """An account as its row has it; without a row nothing was ever granted.

        `skew_ns`: by how much the clock of the bank that wrote the row may have been ahead.
        """
        account = self.accounts[key] = Account(key, rate, burst, now)
        if row is None:
            return
        elapsed = max(now - row.at_ns - skew_ns, 0)
        account.blind = min(row.out, burst)
        account.blind_until_ns = now + self._burn_ns
        account.tokens = min(row.level + elapsed * rate / NS, burst - account.blind)

    def change(self, key: bytes, rate: float, burst: float, now: int) -> list[Recall]:
        """A changed key keeps its tokens, cut to the new burst; a loan on the old terms ends."""
        account = self.accounts.get(key)
        if account is None:
            self.open(key, rate, burst, None, now, 0)
            return []
        account.refill(now)
        account.rate = rate
        account.burst = burst
        account.tokens = min(account.tokens, max(burst - account.outstanding(), 0.0))
        loan = account.loan()
        return [Recall(loan[0], key)] if loan is not None else []

    def close(self, key: bytes) -> None:
        """The key has no limit any more."""
        account = self.accounts.pop(key, None)
        if account is not None:
            self._deadlines.disarm(account)
            self._turn.pop(key, None)

    def ask(self, ask: Ask, now: int) -> None:
        """Take in what a purse reports and wants. An ask that arrives twice counts once."""
        for want in ask.wants:
            account = self.accounts.get(want.key)
            if account is None:
                continue
            account.refill(now)
            for report in want.reports:
                account.report(ask.purse, ask.number, report)
            if account.wants:
                self._turn[want.key] = account  # what came back is for those who wait
            if account.heard.get(ask.purse, 0) >= ask.number:
                continue
            account.heard[ask.purse] = ask.number
            if want.tokens > 0:
                account.asked[ask.purse] = now
                account.wants[ask.purse] = (ask.number, want.tokens)
                self._turn[want.key] = account

    def next_ns(self) -> int:
        """When `settle` next has something to do though nobody asks; 0 for never."""
        return self._deadlines.next_ns()

    def settle(self, now: int) -> tuple[list[Answer], list[Recall], dict[bytes, BankRow]]:
        """Who gets what, who hands back, and the rows on which that rests."""
        given: dict[tuple[int, int], list[Grant]] = {}
        recalls: list[Recall] = []
        rows: dict[bytes, BankRow] = {}
        while 0 < self._deadlines.next_ns() <= now:
            account = self._deadlines.pop()
            assert isinstance(account, Account)
            account.refill(now)
            self._turn[account.key] = account
        for account in self._turn.values():
            account.forget(now)
            recall = self._serve(account, now, given, rows)
            if recall is not None:
                recalls.append(recall)
            wake_ns = account.wake_ns(now)
            if wake_ns:
                self._deadlines.arm(account, wake_ns)
            else:
                self._deadlines.disarm(account)
        self._turn = {}
        answers = [Answer(purse, number, tuple(one)) for (purse, number), one in given.items()]
        return answers, recalls, rows

    def _serve(
        self,
        account: Account,
        now: int,
        given: dict[tuple[int, int], list[Grant]],
        rows: dict[bytes, BankRow],
    ) -> Recall | None:
        wants = account.wants
        loan = account.loan()
        if loan is not None:
            borrower = loan[0]
            want = wants.pop(borrower, None)
            if len(account.asked) > 1 or borrower not in account.asked:
                return Recall(borrower, account.key) if wants else None
            if want is not None:
                self._renew(account, borrower, want[0], now)
                given.setdefault((borrower, want[0]), []).append(self._loan(account, 0.0))
            return None
        if len(wants) == len(account.asked) == 1 and not account.grants and not account.blind:
            purse, (number, _) = wants.popitem()
            level, account.tokens, account.reserve = account.tokens, 0.0, 0.0
            account.grants[purse, number] = _Granted(account.burst, now + self._burn_ns, True)
            rows[account.key] = BankRow(0.0, now, account.burst)
            given.setdefault((purse, number), []).append(self._loan(account, level))
            return None
        for purse, tokens in _shared(account, now, rows).items():
            number, _ = wants.pop(purse)
            account.grants[purse, number] = _Granted(tokens, now + self._burn_ns, False)
            given.setdefault((purse, number), []).append(Grant(account.key, tokens, False, 0.0))
        return None

    def _loan(self, account: Account, level: float) -> Grant:
        """A borrower whose clock goes fast refills no faster than was promised."""
        return Grant(account.key, level, True, account.rate / (1.0 + self.drift))

    def _renew(self, account: Account, purse: int, number: int, now: int) -> None:
        """The loan goes on under the number of the ask that renewed it."""
        for name in [name for name, one in account.grants.items() if one.lent]:
            del account.grants[name]
        account.grants[purse, number] = _Granted(account.burst, now + self._burn_ns, True)


def _shared(account: Account, now: int, rows: dict[bytes, BankRow]) -> dict[int, float]:
    """Whole tokens for those who wait, nobody's share above another's that wants more."""
    wants = account.wants
    whole = min(sum(tokens for _, tokens in wants.values()), int(account.tokens + 1e-9))
    if whole <= 0:
        return {}
    if whole > account.reserve:
        account.reserve = account.tokens + account.rate * RESERVE_NS / NS
        out = min(account.burst, account.outstanding() + account.reserve)
        rows[account.key] = BankRow(account.tokens - account.reserve, now, out)
    account.reserve -= whole
    account.tokens -= whole
    shares = dict.fromkeys(wants, 0)
    hungry = sorted(wants)
    while whole and hungry:
        each = whole // len(hungry)
        if each == 0:
            # Odd tokens go round: nobody is always the last one.
            turn = [p for p in hungry if p > account.last] + [
                p for p in hungry if p <= account.last
            ]
            for purse in turn[:whole]:
                shares[purse] += 1
                account.last = purse
            break
        for purse in hungry:
            more = min(each, wants[purse][1] - shares[purse])
            shares[purse] += more
            whole -= more
        hungry = [purse for purse in hungry if shares[purse] < wants[purse][1]]
    return {purse: float(tokens) for purse, tokens in shares.items() if tokens}
