"""The rota: who waits for room in a turn is served in turn, and nobody waits for ever."""

from __future__ import annotations

from fila.broker.rota import DONE, FIRST, FULL, MORE, RESERVE, Rota
from fila.core.work import Work

LIMIT = 512


class Client:
    """Has requests of these sizes, and notes in which turn each was carried out."""

    def __init__(self, work: Work, *sizes: int) -> None:
        self.credit = 0
        self.work = work
        self.sizes = list(sizes)
        self.done: list[int] = []
        self.turn = 0

    def go_on(self) -> int:
        until = self.work.done + self.credit
        while self.sizes:
            if self.work.done >= until:
                self.credit = until - self.work.done
                return MORE
            if self.work.done and self.sizes[0] > self.work.limit - self.work.done:
                self.credit = until - self.work.done
                return FULL
            self.work.done += self.sizes[0]
            self.done.append(self.turn)
            del self.sizes[0]
        self.credit = until - self.work.done
        return DONE


def serve(rota: Rota, work: Work, clients: list[Client], turns: int) -> list[int]:
    """So many turns; how much was done in each."""
    seen = []
    for turn in range(turns):
        for client in clients:
            client.turn = turn
        rota.serve()
        seen.append(work.done)
        work.done = 0
    return seen


def test_no_turn_takes_more_than_its_work_however_many_wait() -> None:
    work = Work(LIMIT)
    rota = Rota(work)
    clients = [Client(work, *[100] * 50) for _ in range(20)]
    for client in clients:
        rota.join(client)
    assert max(serve(rota, work, clients, 400)) <= LIMIT + 100
    assert not rota.waiting
    assert sum(len(client.done) for client in clients) == 1_000


def test_those_who_wait_get_equal_shares_whatever_the_size_of_their_requests() -> None:
    work = Work(LIMIT)
    rota = Rota(work)
    small, large = Client(work, *[1] * 20_000), Client(work, *[LIMIT] * 40)
    rota.join(small)
    rota.join(large)
    serve(rota, work, [small, large], 40)
    moved = len(small.done), len(large.done) * LIMIT
    assert abs(moved[0] - moved[1]) <= 2 * LIMIT


def test_a_request_as_large_as_a_turn_gets_one_of_its_own() -> None:
    work = Work(LIMIT)
    rota = Rota(work)
    clients = [Client(work, *[10] * 10_000), Client(work, LIMIT)]
    for client in clients:
        rota.join(client)
    serve(rota, work, clients, 6)
    assert clients[1].done == [1]


def test_a_newcomer_with_little_is_served_though_the_turn_is_full() -> None:
    work = Work(LIMIT)
    rota = Rota(work)
    assert rota.newcomer() == LIMIT
    work.done = 2 * LIMIT  # as far as one request may fill it
    assert rota.newcomer() == FIRST
    rota.came(FIRST, RESERVE - 10)
    assert rota.newcomer() == 10
    rota.came(10, 10)
    assert rota.newcomer() <= 0
    rota.begin()
    assert rota.newcomer() == FIRST
    work.done = 0
    rota.came(rota.newcomer(), LIMIT)
    work.done = LIMIT
    assert rota.newcomer() == FIRST, "who had room took nothing of the reserve"


def test_who_leaves_is_not_served() -> None:
    work = Work(LIMIT)
    rota = Rota(work)
    client = Client(work, 1)
    rota.join(client)
    rota.leave(client)
    rota.leave(client)
    rota.serve()
    assert client.done == [] and not rota.waiting
