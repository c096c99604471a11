"""Readers of lease batches: they ask, ask again, finish, extend, hand back, and forget."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from fila.core.command import AckBatch, ExtendBatch, Lease, ReleaseBatch, Withdraw
from fila.core.effect import BatchLeased

if TYPE_CHECKING:
    from .world import World


class BatchReaders:
    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.request = 0
        self.waiting: dict[int, tuple[str, str]] = {}  # request → queue and name

    def act(self, world: World, queue: str) -> None:
        rng = self.rng
        name = f"s{rng.randint(0, 1)}/{rng.randint(0, 4)}" + rng.choice(("", "", "/a", "/b"))
        roll = rng.random()
        if roll < 0.55:
            self._lease(world, queue, name)
            return
        if roll < 0.6 and self.waiting:
            request = rng.choice(list(self.waiting))
            world.apply(Withdraw(*self.waiting.pop(request), request))
            return
        below = None
        if rng.random() < 0.5:
            name = name.partition("/")[0]
            below = rng.randint(0, 6)
        if roll < 0.8:
            world.apply(AckBatch(queue, name, below))
        elif roll < 0.9:
            world.apply(ExtendBatch(queue, name, rng.choice((0, 1_000, 5_000, 999)), below))
        else:
            world.apply(ReleaseBatch(queue, name, below))

    def answered(self, leased: BatchLeased) -> None:
        self.waiting.pop(leased.request, None)

    def lose_all(self) -> None:
        self.waiting.clear()

    def _lease(self, world: World, queue: str, name: str) -> None:
        rng = self.rng
        self.request += 1
        if rng.random() < 0.02:
            name = rng.choice(("", "a\nb", "x" * 300))
        command = Lease(
            queue,
            name,
            self.request,
            rng.choice((0, 1, 5, 20, 20, 5_000)),
            rng.choice((0, 1, 300, 1 << 20)),
            rng.choice((0, 0, 1_000, 4_000, 500)),
            rng.choice((0, 0, 10, 3_000)),
            rng.random() < 0.3,
        )
        if world.apply(command) is None:
            self.waiting[self.request] = (queue, name)
