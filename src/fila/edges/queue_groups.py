"""The items of a request by queue, and their answers back in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fila.core.rejection import Rejection
from fila.wire.ids import parse_id

if TYPE_CHECKING:
    from fila.broker.session import Session

Run = tuple[int, int, int]  # from this item to before that one, of so many bytes


def by_queue(queues: list[bytes]) -> list[tuple[str, list[int]]]:
    """The places of each queue, in order of first appearance. Nearly always one queue."""
    if not queues:
        return []
    first = queues[0]
    if queues.count(first) == len(queues):
        return [(first.decode(), list(range(len(queues))))]
    places: dict[bytes, list[int]] = {}
    for place, queue in enumerate(queues):
        places.setdefault(queue, []).append(place)
    return [(queue.decode(), found) for queue, found in places.items()]


def parse_ids(texts: list[bytes], places: list[int]) -> tuple[list[int], list[bytes]]:
    """The places whose text is an id, and those ids."""
    known = []
    ids = []
    for text, place in zip(texts, places, strict=True):
        id = parse_id(text)
        if id is not None:
            known.append(place)
            ids.append(id)
    return known, ids


def runs(session: Session, items: Sequence[tuple[bytes, ...]], bytes_max: int) -> list[Run]:
    """Items (queue, id, …) of leased messages that are to be read and stored anew, cut where they
    become too large to be done in one go."""
    found: list[Run] = []
    start = size = 0
    sizes = [0] * len(items)
    for queue, places in by_queue([item[0] for item in items]):
        known, ids = parse_ids([items[place][1] for place in places], places)
        for place, one in zip(known, session.leased_bytes(queue, ids), strict=True):
            sizes[place] = one
    for place, one in enumerate(sizes):
        if size and size + one > bytes_max:
            found.append((start, place, size))
            start, size = place, 0
        size += one
    found.append((start, len(items), size))
    return found


def spread(
    reply: list[int] | Rejection, known: list[int], places: list[int], codes: list[int]
) -> None:
    if isinstance(reply, Rejection):
        for place in places:
            codes[place] = reply.code
    else:
        for place, code in zip(known, reply, strict=True):
            codes[place] = code
