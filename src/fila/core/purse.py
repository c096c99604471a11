"""Purses: the buckets of an owner of queues whose tokens come from the bank (`core/bank.py`).

A purse is a bucket that does not refill by itself: it holds grants, each worth something until
`LIFE_NS` after the ask that it answers was sent. Lent the whole bucket, it refills for as long as
the loan lasts. Where a bucket stands in the core, a purse can stand.
"""

from __future__ import annotations

from typing import Final

from fila.core.bank import LIFE_NS, Answer, Ask, Grant, Report, Want
from fila.core.bucket import TOKEN, Bucket

AGAIN_NS: Final = LIFE_NS // 10  # who has no answer asks again after so long
RENEW_NS: Final = LIFE_NS // 2  # a loan that is used is renewed when it is so old


class _Held:
    """A grant in the purse."""

    __slots__ = ("left", "until_ns")

    def __init__(self, left: float, until_ns: int) -> None:
        self.left = left
        self.until_ns = until_ns


class Purse(Bucket):
    __slots__ = ("asked_ns", "held", "known", "lent", "lent_ns", "refuses", "until_ns", "used")

    def __init__(self, name: bytes, burst: float, now: int) -> None:
        super().__init__(name, 0.0, burst, now)
        self.tokens = 0.0
        self.known = 0.0  # tokens when last looked at: what is missing since then was spent
        self.held: dict[int, _Held] = {}  # grants by the number of their ask
        self.asked_ns = -LIFE_NS
        self.lent = 0  # the ask that the loan answers; 0: there is none
        self.lent_ns = 0
        self.until_ns = 0  # of the loan
        self.used = False  # something was spent of the loan since it was renewed
        self.refuses = 0  # what answers asks up to this one comes too late: the loan went back

    def refill(self, now: int) -> None:
        self._count()
        if self.lent:
            if now < self.until_ns:
                Bucket.refill(self, now)
            else:
                self._end_loan()
        for number in [number for number, one in self.held.items() if one.until_ns <= now]:
            self.tokens -= self.held.pop(number).left
        self.at_ns = max(self.at_ns, now)
        if not self.held and not self.lent:
            self.tokens = 0.0  # no rounding is left over
        self.known = self.tokens

    def tokens_at(self, now: int) -> float:
        if self.lent:
            return super().tokens_at(now) if now < self.until_ns else 0.0
        late = sum(one.left for one in self.held.values() if one.until_ns <= now)
        return max(self.tokens - late, 0.0)

    def next_token_ns(self) -> int:
        """Within a loan as in a bucket; else the bank's answer wakes who waits."""
        at_ns = super().next_token_ns()
        return at_ns if self.tokens >= TOKEN or at_ns < self.until_ns else 0

    def _count(self) -> None:
        """What was taken since the last look comes off the grants that end first."""
        spent = self.known - self.tokens
        if spent > 0.0:
            self.used = True
            for number in sorted(self.held):
                one = self.held[number]
                taken = min(one.left, spent)
                one.left -= taken
                spent -= taken
        self.known = self.tokens

    def _end_loan(self) -> None:
        self.lent = 0
        self.rate = 0.0
        self.tokens = 0.0

    def want(self, tokens: int, number: int, now: int) -> Want | None:
        """What to say in ask `number` when `tokens` more could go at once; None: nothing."""
        self.refill(now)
        if self.lent:
            if tokens > 0 or self.used:
                if now - self.lent_ns < RENEW_NS or now - self.asked_ns < AGAIN_NS:
                    return None
                self.asked_ns = now
                return Want(self.name, max(tokens, 1), ())
            return self._hand_back(number) if now - self.lent_ns >= RENEW_NS else None
        more = tokens - int(self.tokens + 1e-9)
        if tokens <= 0 and self.held:
            return self._hand_back(number)
        if more <= 0 or now - self.asked_ns < AGAIN_NS:
            return None
        self.asked_ns = now
        return Want(self.name, more, self._reports())

    def recalled(self, number: int, now: int) -> Want | None:
        """Give the loan back in ask `number`: somebody else is short."""
        self.refill(now)
        return self._hand_back(number) if self.lent else None

    def _reports(self) -> tuple[Report, ...]:
        reports = tuple(
            Report(number, one.left, one.left <= 0.0) for number, one in self.held.items()
        )
        for report in reports:
            if report.done:
                del self.held[report.grant]
        return reports

    def _hand_back(self, number: int) -> Want:
        reports: tuple[Report, ...]
        if self.lent:
            reports = (Report(self.lent, self.tokens, True),)
            self._end_loan()
        else:
            reports = tuple(Report(name, one.left, True) for name, one in self.held.items())
            self.held = {}
        self.refuses = number
        self.tokens = self.known = 0.0
        return Want(self.name, 0, reports)

    def take(self, number: int, grant: Grant, sent_ns: int, now: int) -> None:
        """A grant arrived, for the ask `number` that was sent then."""
        self.refill(now)
        until_ns = sent_ns + LIFE_NS
        if number <= self.refuses or until_ns <= now:
            return
        if grant.lent:
            self._borrow(number, grant, sent_ns)
        elif not self.lent:
            self.held[number] = _Held(grant.tokens, until_ns)
            self.tokens += grant.tokens
        self.known = self.tokens
        self.asked_ns = now - AGAIN_NS  # who needs more may say so at once

    def _borrow(self, number: int, grant: Grant, sent_ns: int) -> None:
        if number <= self.lent:
            return
        if not self.lent:
            self.held = {}
            self.tokens = min(grant.tokens, self.burst)
        self.lent = number
        self.lent_ns = sent_ns
        self.until_ns = sent_ns + LIFE_NS
        self.rate = grant.rate
        self.used = False


class Purses:
    """All purses of one owner: one ask per turn, and the answers to it."""

    __slots__ = ("_number", "_sent", "number_of_purse", "purses")

    def __init__(self, number_of_purse: int) -> None:
        self.number_of_purse = number_of_purse
        self.purses: dict[bytes, Purse] = {}
        self._number = 0
        self._sent: dict[int, int] = {}  # when the asks were sent that may still be answered

    def ask(self, wants: dict[bytes, int], recalled: list[bytes], now: int) -> Ask | None:
        """`wants`: how many messages of each key could go at once, for keys with a purse."""
        number = self._number + 1
        said = [self.purses[key].recalled(number, now) for key in recalled if key in self.purses]
        said += [
            self.purses[key].want(tokens, number, now)
            for key, tokens in wants.items()
            if key not in recalled
        ]
        parts = tuple(want for want in said if want is not None)
        if not parts:
            return None
        self._number = number
        self._sent = {one: at for one, at in self._sent.items() if now - at < LIFE_NS}
        self._sent[number] = now
        return Ask(self.number_of_purse, number, parts)

    def take(self, answer: Answer, now: int) -> list[Purse]:
        """The purses that have more now. An answer counts once, to an old ask not at all."""
        sent_ns = self._sent.pop(answer.number, None)
        if sent_ns is None or answer.purse != self.number_of_purse:
            return []
        filled: list[Purse] = []
        for grant in answer.grants:
            purse = self.purses.get(grant.key)
            if purse is not None:
                purse.take(answer.number, grant, sent_ns, now)
                filled.append(purse)
        return filled
