"""The auditor's own rules for a wait, where a seed once showed that they asked too much."""

from __future__ import annotations

import pytest

from fila.core.command import PauseQueue, ResumeQueue, SetConfig
from fila.core.settings import Settings
from fila.core.waits import Waits

from . import pauses, waits
from .books import Books
from .commands import follow
from .model import Consumer, Message
from .turn import Step, Violation

SECOND = 1_000_000_000


def behind_an_empty_bucket() -> tuple[Books, Message]:
    """One message, its key's first, that came when its only bucket was empty."""
    books = Books(Settings(), journal=False)
    books.now = SECOND
    books.add_queue("q", 30_000, "")
    queue = books.queues["q"]
    queue.gain_credit(Consumer("c", 1, 10, 1_000), books.now)
    lane = books.lane(queue, b"k", (b"t",))
    follow(books, Step(SetConfig("throttle.t", "0.5,1"), None, None))
    books.tokens.take(lane, books.now)
    message = Message(b"m" * 16, 1, books.now, b"body")
    books.store(message, lane, 0)
    return books, message


def throttled_for(ns: int) -> Waits:
    return Waits(0, ns, 0, 0, 0, 0)


def test_a_wait_for_a_token_counts_as_throttled_until_the_token_came() -> None:
    books, message = behind_an_empty_bucket()
    now = books.now + 2 * SECOND
    waits.check(message, throttled_for(2 * SECOND), now, books.tokens)
    with pytest.raises(Violation, match="its token took 2000000000"):
        waits.check(message, Waits(0, SECOND, 0, 0, SECOND, 0), now, books.tokens)


def test_a_bucket_no_pass_has_looked_at_counts_for_nothing() -> None:
    books, message = behind_an_empty_bucket()
    assert books.at_tokens == [message]
    waits.not_looked_at(message)
    now = books.now + 2 * SECOND
    waits.check(message, Waits(0, SECOND, 0, 0, SECOND, 0), now, books.tokens)


def test_a_limit_that_was_lifted_and_set_again_is_another_bucket() -> None:
    books, message = behind_an_empty_bucket()
    books.now += 5
    follow(books, Step(SetConfig("throttle.t", ""), None, None))
    follow(books, Step(SetConfig("throttle.t", "0.5,4"), None, None))
    books.tokens.take(message.lane, books.now)  # as many changes as the old one had
    waits.check(message, throttled_for(5), books.now, books.tokens)


def test_while_a_queue_is_paused_nobody_sees_that_a_bucket_is_short() -> None:
    books, message = behind_an_empty_bucket()
    pauses.pause_queue(books, PauseQueue("q"), 1, None)
    books.now += 9 * SECOND
    pauses.resume_queue(books, ResumeQueue("q"), 1, None)
    waits.check(message, Waits(0, 0, 0, 0, 0, 9 * SECOND), books.now, books.tokens)
