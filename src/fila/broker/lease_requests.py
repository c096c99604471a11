"""The requests of one connection that wait for a lease batch.

Owns which request is answered when a batch is leased, and which is refused when the caller loses
its permission or its connection ends. A batch that is open, or came over several turns, is read
from the store for its answer: that waits until the connection has taken the answer before it
(`telling.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from fila.core.command import TOLD_COUNTED, TOLD_ENTRIES
from fila.core.effect import BatchLeased
from fila.core.rejection import Rejection

if TYPE_CHECKING:
    from fila.broker.broker import Sink
    from fila.broker.session import Session

# Takes the answer; of a batch that is told in parts, one after the other (`BatchLeased.rest`).
Done = Callable[[BatchLeased | Rejection], "Sink"]


class Wanted(NamedTuple):
    """What a request for a batch asks for; zero: the default."""

    max_messages: int
    max_bytes: int
    visibility_ms: int
    wait_ms: int
    count_attempt: bool
    told: int = TOLD_ENTRIES


class LeaseRequest:
    """One request, from when it was asked until it is answered."""

    __slots__ = ("done", "fresh", "name", "number", "part", "queue", "wanted")

    def __init__(self, queue: str, name: str, wanted: Wanted, done: Done) -> None:
        self.queue = queue
        self.name = name
        self.wanted = wanted
        self.done = done
        self.number = 0  # the machine's, while it waits there
        self.part = (0, 0)  # what of the batch is told next: `opened` and `after` of a Lease
        self.fresh = False  # the batch was made for it: it is not given again, but read late


class LeaseRequests:
    def __init__(self, session: Session) -> None:
        self._session: Session | None = session
        self._broker = session.broker
        self._telling = session.broker.telling
        self._waiting: dict[LeaseRequest, None] = {}
        self._reading: LeaseRequest | None = None  # whose batch is being read
        self._read_bytes = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def close(self) -> None:
        """The connection is gone, and nobody waits here any more."""
        self._session = None

    def _open_session(self) -> Session:
        assert self._session is not None, "nobody asks for a batch whose connection is gone"
        return self._session

    def lease(self, queue: str, name: str, wanted: Wanted, done: Done) -> Rejection | LeaseRequest:
        """Ask for a batch. `done` gets it once it is committed; the request is for `withdraw`."""
        refused = self._open_session().may_consume(queue)
        if refused is not None:
            return refused
        request = LeaseRequest(queue, name, wanted, done)
        if wanted.told != TOLD_COUNTED and self._size(request) is not None:
            self._waiting[request] = None
            self._telling.ask(self, request)
            return request
        fault = self._ask(request)
        return request if fault is None else fault

    def withdraw(self, request: LeaseRequest) -> None:
        """The answer is no longer waited for."""
        if request in self._waiting:
            del self._waiting[request]
            self._telling.leave(self, request)
            if request.number:
                self._broker.withdraw(request.queue, request.name, request.number)
            if request is self._reading:
                self._read_ended()

    def withdraw_all(self) -> None:
        for request in list(self._waiting):
            self.withdraw(request)

    def recheck(self) -> None:
        """Turn away who waits for a batch it may no longer have."""
        for request in list(self._waiting):
            refused = self._open_session().may_consume(request.queue)
            if refused is not None:
                self.withdraw(request)
                self._broker.begin()
                self._broker.after_commit(partial(_refuse, request.done, refused))

    # --- batches that are read

    def takes_more(self, request: LeaseRequest) -> bool:
        """Whether the connection has taken what it was told, and may be told more; what it is being
        told is told to its end."""
        if self._reading is not None:
            return self._reading is request
        return self._open_session().takes_more()

    def is_told(self, request: LeaseRequest) -> bool:
        """Whether parts of its batch were told already."""
        return self._reading is request

    def read(self, request: LeaseRequest) -> int:
        """Its turn has come: read a part of the batch, and tell it with this turn's commit. Returns
        about how much that is."""
        size = self._size(request)
        if size is not None and self._reading is None:
            self._reading = request
            self._read_bytes = size
            self._telling.begun(size)
        fault = self._ask(request)
        if fault is not None:
            self._waiting.pop(request, None)
            if request is self._reading:
                self._read_ended()
            self._broker.after_commit(partial(_refuse, request.done, fault))
        return min(size or 0, self._broker.machine.view.settings.tell_bytes)

    def _ask(self, request: LeaseRequest) -> Rejection | None:
        self._waiting[request] = None
        wanted = request.wanted
        if request.part[0]:
            wanted = wanted._replace(max_messages=0)  # if it ended meanwhile, make no new one
        done = partial(self._answered, request)
        number = self._broker.lease_batch(request.queue, request.name, wanted, done, request.part)
        if isinstance(number, Rejection):
            del self._waiting[request]
            return number
        request.number = number
        return None

    def _answered(self, request: LeaseRequest, leased: BatchLeased) -> Sink | None:
        request.number = 0
        if leased.rest:
            request.part = (leased.opened, leased.rest)
            self._telling.go_on(self, request)
            return request.done(leased)
        if request is self._reading:
            self._read_ended()
        if leased.unread and request.wanted.told != TOLD_COUNTED:
            request.fresh = not leased.again
            self._telling.ask(self, request)
            return None
        self._waiting.pop(request, None)
        if leased.gone is not None:
            return request.done(leased.gone)
        return request.done(leased._replace(again=False) if request.fresh else leased)

    def _read_ended(self) -> None:
        self._reading = None
        self._telling.told(self._read_bytes)

    def _size(self, request: LeaseRequest) -> int | None:
        return self._broker.machine.view.batch_bytes(request.queue, request.name)


def _refuse(done: Done, refused: Rejection) -> None:
    done(refused).flush()
