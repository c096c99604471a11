"""What a client that is alone with a queue knows of it, though the broker is killed in between.

Of every message (a token that is sent once) the model holds the places where it may be: `live` in
the queue, `dead` in its dead-letter queue, `gone`. An answer leaves one place; a request whose
answer never came leaves both that of before and that of after.
"""

from __future__ import annotations

from collections.abc import Iterable

LIVE, DEAD, GONE = "live", "dead", "gone"


class Model:
    def __init__(self) -> None:
        self._places: dict[str, frozenset[str]] = {}  # of those that are not surely gone
        self._ids: dict[str, str] = {}  # as the broker told it, or as it first delivered it
        self._due_ms: dict[str, int] = {}  # not to be delivered before, by the broker's clock
        self._made = 0  # tokens below are known; what is in no dict is gone
        self.held: set[str] = set()  # leased in the open batch: no purge takes them
        self.stored = 0
        self.seen = 0
        self.broken: list[str] = []

    def make(self, count: int, label: str) -> list[str]:
        """Tokens for an Enqueue that is on its way."""
        tokens = [f"{label}-{at}" for at in range(self._made, self._made + count)]
        self._made += count
        for token in tokens:
            self._places[token] = frozenset((LIVE, GONE))
        return tokens

    def was_stored(self, token: str, id: str, delay_ms: int, asked_ms: int) -> None:
        """`asked_ms`: the time before it was sent, which no stamp of the broker's can be under."""
        known = self._ids.setdefault(token, id)
        if known != id:
            self.broken.append(f"{token} is {known} and was stored as {id}")
        self._due_ms[token] = asked_ms + delay_ms
        self._places[token] = frozenset((LIVE,))
        self.stored += 1

    def may_move(self, source: str, target: str, tokens: Iterable[str] | None = None) -> list[str]:
        """A request is on its way that moves these, or all there, unless they are leased. Those
        it is sure to move."""
        sure = []
        for token in list(self._places) if tokens is None else tokens:
            places = self._places.get(token)
            if places is None or source not in places:
                continue
            if tokens is None and token in self.held:
                continue
            if places == {source}:
                sure.append(token)
            self._places[token] = places | {target}
        return sure

    def moved(self, source: str, target: str, tokens: Iterable[str] | None = None) -> None:
        """That request was answered: what was there is not there any more."""
        for token in list(self._places) if tokens is None else tokens:
            places = self._places.get(token)
            if places is None or source not in places or (tokens is None and token in self.held):
                continue
            self._settle(token, (places - {source}) | {target})

    def stayed(self, token: str, place: str) -> None:
        self._settle(token, frozenset((place,)))

    def was_delivered(self, token: str, id: str, place: str, leased_ms: int) -> None:
        """It came from this place."""
        self.seen += 1
        places = self._places.get(token)
        if places is None or place not in places:
            told = "gone" if places is None else "/".join(sorted(places))
            self.broken.append(f"{token} came from {place} and must be {told}")
            return
        known = self._ids.setdefault(token, id)
        if known != id:
            self.broken.append(f"{token} is {known} and came as {id}")
        if leased_ms < self._due_ms.get(token, 0):
            early_ms = self._due_ms[token] - leased_ms
            self.broken.append(f"{token} came {early_ms} ms before its delay was over")
        self._settle(token, frozenset((place,)))

    def tokens(self) -> list[str]:
        """All that are not surely gone."""
        return list(self._places)

    def surely(self, place: str) -> int:
        """How many must be there."""
        return sum([places == {place} for places in self._places.values()])

    def possibly(self, place: str) -> int:
        return sum([place in places for places in self._places.values()])

    def conclude(self) -> None:
        """Both queues are empty: whatever must be somewhere is lost."""
        lost = [token for token, places in self._places.items() if GONE not in places]
        self.broken += [f"{token} was stored and is lost" for token in lost[:10]]
        self._places.clear()
        self._ids.clear()
        self._due_ms.clear()
        self.held.clear()

    def _settle(self, token: str, places: frozenset[str]) -> None:
        if places == {GONE}:
            self._places.pop(token, None)
            self.held.discard(token)
        else:
            self._places[token] = places
