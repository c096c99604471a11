"""The items of a request by queue, and their answers back in order."""

from __future__ import annotations

from fila.core.rejection import Rejection
from fila.wire.ids import parse_id


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


def spread(
    reply: list[int] | Rejection, known: list[int], places: list[int], codes: list[int]
) -> None:
    if isinstance(reply, Rejection):
        for place in places:
            codes[place] = reply.code
    else:
        for place, code in zip(known, reply, strict=True):
            codes[place] = code
