"""Readers of lease batches: they ask, ask again, finish, extend, hand back, and forget."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from fila.core.command import AckBatch, ExtendBatch, Lease, ReleaseBatch, Withdraw
from fila.core.effect import BatchLeased
from fila.core.rejection import Rejection

if TYPE_CHECKING:
    from .world import World


class BatchReaders:
    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.request = 0
        self.waiting: dict[int, tuple[str, str]] = {}  # request → queue and name
        self.rests: list[AckBatch | ReleaseBatch] = []  # steps to come
        # Batches that were told in part: queue, name, and where the next part begins.
        self.parts: list[tuple[str, str, int, int]] = []

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
        if self.rests and rng.random() < 0.5:
            self._end(world, self.rests.pop(rng.randrange(len(self.rests))))
            return
        below = None
        if rng.random() < 0.5:
            name = name.partition("/")[0]
            below = rng.randint(0, 6)
        if roll < 0.8:
            self._end(world, AckBatch(queue, name, below))
        elif roll < 0.9:
            world.apply(ExtendBatch(queue, name, rng.choice((0, 1_000, 5_000, 999)), below))
        else:
            self._end(world, ReleaseBatch(queue, name, below))

    def _end(self, world: World, step: AckBatch | ReleaseBatch) -> None:
        """One step; those to come, some time."""
        reply = world.apply(step)
        assert isinstance(reply, tuple)
        if not isinstance(reply, Rejection) and len(reply) == 3 and reply[2]:
            self.rests.append(step._replace(before=reply[2]))

    def answered(self, leased: BatchLeased) -> None:
        asked = self.waiting.pop(leased.request, None)
        if asked is not None and leased.rest:
            self.parts.append((*asked, leased.opened, leased.rest))

    def lose_all(self) -> None:
        self.waiting.clear()
        self.rests.clear()
        self.parts.clear()

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
        if self.parts and rng.random() < 0.5:
            queue, name, opened, after = self.parts.pop(rng.randrange(len(self.parts)))
            command = Lease(queue, name, self.request, 0, opened=opened, after=after)
        if world.apply(command) is None:
            self.waiting[self.request] = (queue, name)
