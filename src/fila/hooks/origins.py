"""Whose message it is, guessed before the script has said so.

A hook is what gives a message its fairness key, so a message it fails for has none. Its origin is
the key it would most likely have got: most policies make the key of header values, and how shows in
messages they decided before (`learn`). Where it does not show, the raw headers are the origin.

Owns the guess and the memory of which keys a policy has given. Nothing here runs for a message that
is simply decided, but for one set operation per batch. Shared by both hooks of a queue.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

from fila.hooks.body import headers_end, headers_of
from fila.hooks.limits import (
    HEADER_BYTES_MAX,
    HEADERS_MAX,
    KEYS_KNOWN_MAX,
    LESSONS_MAX,
)

Piece = tuple[bool, bytes]
"""Of a key: the name of the header whose value stands here (True), or plain text."""
Lesson = tuple[dict[bytes, bytes], bytes]
"""Headers of a message, and the key it got."""


class Origins:
    """What the messages of one queue say of whose they are."""

    __slots__ = ("_lessons", "_older", "_pieces", "given")

    def __init__(self) -> None:
        self._lessons: dict[bytes, dict[bytes, bytes]] = {}  # by key
        self._pieces: tuple[Piece, ...] | None = ()
        self.given: set[bytes] = set()  # packed assignments
        self._older: set[bytes] = set()

    def learn(self, body: bytes, key: bytes) -> None:
        """Remember how one message came to its key."""
        headers = headers_of(body, HEADER_BYTES_MAX, HEADERS_MAX)
        if headers is not None:
            self._lessons.pop(key, None)
            if len(self._lessons) >= LESSONS_MAX:
                del self._lessons[next(iter(self._lessons))]
            self._lessons[key] = headers
            self._pieces = ()

    def of(self, body: bytes) -> bytes:
        """The key a message would most likely get; else a digest that stands for its headers."""
        key = self.key_of(body)
        return key if key is not None else digest(body)

    def key_of(self, body: bytes) -> bytes | None:
        """The key a message would most likely get, if that can be told."""
        pieces = self._learned()
        if pieces is None:
            return None
        headers = headers_of(body, HEADER_BYTES_MAX, HEADERS_MAX)
        return None if headers is None else _joined(pieces, headers)

    def gave(self, packed: Iterable[bytes]) -> None:
        """These assignments were given: their keys are no strangers."""
        self.given.update(packed)
        if len(self.given) > KEYS_KNOWN_MAX:
            self._older, self.given = self.given, set()

    def known(self) -> list[bytes]:
        """Assignments given before, packed."""
        return [*self.given, *self._older]

    def _learned(self) -> tuple[Piece, ...] | None:
        if self._pieces == ():
            self._pieces = _pieces_of(list(self._lessons.items()))
        return self._pieces


def digest(body: bytes) -> bytes:
    """Stands for the headers of a message, whatever they are."""
    end = headers_end(body, HEADER_BYTES_MAX, HEADERS_MAX) or HEADER_BYTES_MAX
    return b"headers:" + blake2b(body[:end], digest_size=8).hexdigest().encode()


def _pieces_of(lessons: list[tuple[bytes, dict[bytes, bytes]]]) -> tuple[Piece, ...] | None:
    """The simplest recipe that explains every lesson; a single key could be a constant."""
    lessons = [(key, headers) for key, headers in lessons if key != b"default"]
    if len(lessons) < 2:
        return None
    key, headers = lessons[-1]
    recipes = [((True, name),) for name, value in headers.items() if value == key]
    for pieces in (*recipes, _split(key, headers)):
        if all(_joined(pieces, headers) == key for key, headers in lessons):
            return pieces
    return None


def _split(key: bytes, headers: dict[bytes, bytes]) -> tuple[Piece, ...]:
    """The key with every header's value that occurs in it replaced by its name, longest first."""
    pieces: list[Piece] = [(False, key)]
    for name, value in sorted(headers.items(), key=lambda pair: -len(pair[1])):
        for at, (is_header, text) in enumerate(pieces):
            if value and not is_header and value in text:
                before, after = text.split(value, 1)
                pieces[at : at + 1] = [(False, before), (True, name), (False, after)]
                break
    return tuple(piece for piece in pieces if piece[1])


def _joined(pieces: tuple[Piece, ...], headers: dict[bytes, bytes]) -> bytes | None:
    parts = [headers.get(text) if is_header else text for is_header, text in pieces]
    return None if None in parts else b"".join(part for part in parts if part is not None)
