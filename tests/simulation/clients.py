"""Clients of the simulated broker: what each consumer was handed and has not answered yet.

They know only what was released to them. Some answer at once, some slowly, some never.
"""

from __future__ import annotations

from collections import deque
from random import Random

TEMPERS = ("quick", "quick", "quick", "steady", "steady", "slow", "stuck")


class Client:
    """One consumer on one connection."""

    __slots__ = ("connection", "held", "id", "queue", "temper")

    def __init__(self, id: str, queue: str, connection: int, temper: str) -> None:
        self.id = id
        self.queue = queue
        self.connection = connection
        self.temper = temper
        self.held: dict[bytes, None] = {}

    def answers(self, rng: Random) -> list[bytes]:
        """Ids it answers now; it forgets them."""
        if not self.held or self.temper == "stuck":
            return []
        if self.temper == "quick":
            count = len(self.held) if rng.random() < 0.7 else 1
        elif self.temper == "steady":
            count = rng.randint(0, min(len(self.held), 5))
        else:
            count = 1 if rng.random() < 0.15 else 0
        if count == 0:
            return []
        ids = list(self.held)[:count] if rng.random() < 0.7 else rng.sample(list(self.held), count)
        for id in ids:
            del self.held[id]
        return ids


class Clients:
    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.alive: dict[str, Client] = {}
        # Messages somebody once held: late and repeated answers come from here.
        self.remembered: deque[tuple[str, bytes]] = deque(maxlen=60)
        self._serial = 0
        self._connection = 0

    def connect(self, queue: str) -> Client:
        self._serial += 1
        shared = [client.connection for client in self.alive.values()]
        if shared and self.rng.random() < 0.2:
            connection = self.rng.choice(shared)
        else:
            self._connection += 1
            connection = self._connection
        client = Client(f"c{self._serial}", queue, connection, self.rng.choice(TEMPERS))
        self.alive[client.id] = client
        return client

    def remove(self, id: str) -> None:
        client = self.alive.pop(id, None)
        if client is not None:
            self.remembered.extend((client.queue, one) for one in client.held)

    def receive(self, consumer: str, ids: list[bytes]) -> None:
        client = self.alive.get(consumer)
        if client is not None:
            client.held.update(dict.fromkeys(ids))
        if ids and self.rng.random() < 0.2:
            queue = client.queue if client is not None else "q0"
            self.remembered.append((queue, self.rng.choice(ids)))

    def lose_all(self) -> None:
        for id in list(self.alive):
            self.remove(id)
