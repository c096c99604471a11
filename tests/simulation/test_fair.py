"""The auditor's own rules for the fair order, where a seed once showed that they asked too much."""

from __future__ import annotations

import pytest

from fila.core.command import SetConfig
from fila.core.settings import Settings

from . import fair
from .books import Books
from .commands import follow
from .model import Consumer, Lane, Message, Queue
from .turn import Step, Violation

QUANTUM = 5


def behind_one_empty_bucket() -> tuple[Books, Queue, Lane]:
    """A key of weight 2 that waits for a bucket's token, in a queue with a consumer."""
    books = Books(Settings(quantum=QUANTUM), journal=False)
    books.now = 1_000_000_000
    books.add_queue("q", 30_000, "")
    queue = books.queues["q"]
    queue.gain_credit(Consumer("c", 1, 100, 10_000), books.now)
    follow(books, Step(SetConfig("throttle.t", "0.5,1"), None, None))
    cut_off = books.lane(queue, b"cut off", (b"t",))
    cut_off.key.weight = 2
    books.tokens.take(cut_off, books.now)
    fill(books, cut_off)
    fair.turn_ends(queue, complete=True)
    return books, queue, cut_off


def fill(books: Books, lane: Lane) -> None:
    for number in range(40):
        id = lane.key.name.ljust(15, b".") + bytes((number,))
        books.store(Message(id, lane.key.weight, books.now, b"body"), lane, 0)


def newcomer_of(books: Books, queue: Queue) -> Lane:
    newcomer = books.lane(queue, b"newcomer", (b"t",))
    newcomer.key.weight = 3
    fill(books, newcomer)
    return newcomer


def serve_before_the_cut_off_visit(newcomer: Lane, cut_off: Lane) -> None:
    """The newcomer's visit begins while the other's, of which 8 are left, is not over."""
    for lane, messages in ((newcomer, 4), (cut_off, 8), (newcomer, 11), (cut_off, 10)):
        for _ in range(messages):
            fair.delivered_behind(lane, QUANTUM)


def test_who_comes_while_nobody_has_credit_may_go_before_a_visit_that_was_cut_off() -> None:
    books, queue, cut_off = behind_one_empty_bucket()
    consumer = next(iter(queue.credit))
    queue.lose_credit(consumer, books.now)
    newcomer = newcomer_of(books, queue)
    fair.turn_ends(queue, complete=False)
    queue.gain_credit(consumer, books.now)
    serve_before_the_cut_off_visit(newcomer, cut_off)


def test_who_comes_while_the_bucket_is_short_waits_behind_it() -> None:
    books, queue, cut_off = behind_one_empty_bucket()
    newcomer = newcomer_of(books, queue)
    fair.turn_ends(queue, complete=True)
    with pytest.raises(Violation, match=r"differs by 5\.333, more than is owed \(5\)"):
        serve_before_the_cut_off_visit(newcomer, cut_off)
