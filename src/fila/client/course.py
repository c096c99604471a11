"""Which broker to connect to: the one that was named, or the leader it sent us to.

Owns the addresses and the bound on redirects. A leader that cannot be reached is forgotten,
and the broker that was named is asked again. TLS and key are the client's own, whichever it is:
nothing here can switch them off.
"""

from typing import Final

from fila.client.address import Address, parse_address

MOVES_MAX: Final = 5
WINDOW_S: Final = 5.0  # so many moves in this time, and the refusals are the callers'


class Course:
    def __init__(self, home: Address) -> None:
        self.current = home
        self._home = home
        self._next: Address | None = None
        self._moves: list[float] = []

    def follow(self, leader: str | None, now: float) -> bool:
        """Whether to go there; `turn` does it."""
        if not leader:
            return False
        try:
            there = parse_address(leader)
        except ValueError:
            return False
        if (there.host, there.port) == (self.current.host, self.current.port):
            return False
        if self._next is None:
            self._moves = [at for at in self._moves if now - at < WINDOW_S]
            if len(self._moves) >= MOVES_MAX:
                return False
            self._moves.append(now)
        self._next = there
        return True

    def turn(self) -> None:
        if self._next is not None:
            self.current, self._next = self._next, None

    def unreachable(self) -> None:
        """The present one could not be connected to."""
        self.current, self._next = self._home, None
