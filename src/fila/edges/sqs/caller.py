"""One request of one caller: its identity, its session, and how what it asks is carried out.

Owns that a request takes its place in a turn like everybody's: at once where the turn has room,
else in the rota; and that it is answered when the turn is committed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote, unquote

from fila.broker import stepping
from fila.broker.no_connection import NoConnection
from fila.broker.session import ClientConnection, Session, Sessions
from fila.broker.stepping import Steps
from fila.core.reader import StoreDamagedError
from fila.core.rejection import Rejection
from fila.edges.sqs import faults
from fila.edges.sqs.faults import invalid, missing
from fila.edges.sqs.forms import Parameters
from fila.error_codes import FORBIDDEN
from fila.security.guard import Identity

Found = TypeVar("Found")

ACCOUNT = "000000000000"  # Fila has no accounts; ARNs and URLs have a place for one


class Caller:
    def __init__(
        self, sessions: Sessions, identity: Identity, peer: str, base_url: str, region: str
    ) -> None:
        self.sessions = sessions
        self.broker = sessions.broker
        self.guard = sessions.guard
        self.identity = identity
        self.peer = peer
        self.region = region
        self._base_url = base_url

    def open(self, connection: ClientConnection | None = None) -> Session:
        """A session for what the request does; who opens it closes it."""
        session = self.sessions.open(connection or NoConnection(), self.peer)
        session.welcome(self.identity)
        return session

    # --- names

    def queue(self, parameters: Parameters) -> str:
        """The queue a request is about, by its URL: of that only the last part counts."""
        url = text_of(parameters, "QueueUrl")
        return unquote(url.rstrip("/").rpartition("/")[2])

    def url(self, queue: str) -> str:
        return f"{self._base_url}/{ACCOUNT}/{quote(queue, safe='')}"

    def arn(self, queue: str) -> str:
        return f"arn:aws:sqs:{self.region}:{ACCOUNT}:{queue}"

    def sees(self, queue: str) -> None:
        """Raise unless the caller may know of the queue, and it is there."""
        if not self.guard.sees(self.identity, queue):
            refused = Rejection(FORBIDDEN, f'no permission on queue "{queue}"')
            raise faults.of(refused)
        if not self.broker.machine.view.has_queue(queue):
            raise faults.of(self.broker.machine.view.no_queue(queue))

    # --- turns

    async def carried(self, cost: int, act: Callable[[], Found | Rejection]) -> Found:
        """Do it within a turn that has room, and come back when that is committed."""
        broker = self.broker
        committed: asyncio.Future[Found] = asyncio.get_running_loop().create_future()

        def steps() -> Steps:
            if not committed.cancelled():
                act_now()
            yield from ()

        def act_now() -> None:
            found: Found | Rejection
            try:
                found = act()
            except StoreDamagedError as error:
                found = broker.set_apart(error)
            except Exception as error:
                committed.set_exception(error)
                return
            broker.work.done += cost
            if isinstance(found, Rejection):
                committed.set_exception(faults.of(found))
            else:
                broker.after_commit(partial(_settle, committed, found))

        stepping.run(broker, steps())
        return await committed

    async def operation(self, request: Any) -> Any:
        """Carry out an operation of the table, audited and permitted as over the other doors."""
        broker = self.broker
        session = self.open()
        committed: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def done(result: Any) -> None:
            broker.begin()
            broker.after_commit(partial(_settle, committed, result))

        try:
            fault = session.carry_out(request, done)
            if fault is not None:
                raise faults.of(fault)
            result = await committed
            if isinstance(result, Rejection):
                raise faults.of(result)
            return result
        finally:
            session.close()


def text_of(parameters: Parameters, name: str) -> str:
    """A parameter that has to be there."""
    value = parameters.get(name)
    if value is None or value == "":
        raise missing(name)
    return as_text(value, name)


def as_text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise invalid(name, "it is no text")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise invalid(name, f"character {error.start} is half of a surrogate pair") from None
    return value


def number_of(parameters: Parameters, name: str, low: int, high: int, default: int) -> int:
    """A whole number: digits in the query form, either in the JSON form."""
    value = parameters.get(name)
    if value is None or value == "":
        return default
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 12:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise invalid(name, f"it is a whole number from {low} to {high}")
    return value


def _settle(committed: asyncio.Future[Any], found: Any) -> None:
    if not committed.done():  # the client may have gone
        committed.set_result(found)
