"""ReceiveMessage: a consumer that lives for one request, with credit for what the request takes.

It stands among the queue's other consumers for its turns, waits if the request does, and leaves
with the first delivery; what it got stays leased. A client that goes away before it is answered
gets nothing: what was on its way to it is handed back at once. Owns the bound on requests that
wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from hashlib import md5
from typing import Any, Final

from fila.broker.session import Session
from fila.core.effect import Delivery
from fila.core.entry import ATTEMPTS, BODY, ENQUEUED_NS, KEY, Entry, message_id
from fila.core.rejection import Rejection
from fila.edges.sqs import faults, message, messages
from fila.edges.sqs.caller import Caller, number_of
from fila.edges.sqs.faults import SqsError, invalid
from fila.edges.sqs.forms import Parameters
from fila.edges.sqs.handle import handle_of
from fila.edges.sqs.queues import own_of
from fila.wire.ids import id_text

COUNT_MAX: Final = 10
WAIT_S_MAX: Final = 20
BYTES_MAX: Final = 1024 * 1024  # of one answer; one message always fits
_CONSUME_COST: Final = 2
_MS: Final = 1_000_000


class Poll:
    """The session's connection while it receives: takes what is delivered."""

    def __init__(self) -> None:
        self.got: list[tuple[Entry, int]] = []  # with when it was leased
        self.why: Rejection | None = None  # it ended without an answer
        self._woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def wait(self, seconds: float) -> None:
        """Until there is something, or the time is over."""
        if not self.got and self.why is None:
            await asyncio.wait([self._woken], timeout=seconds)

    # --- what the broker and the session send (ClientConnection)

    def send(self, data: bytes) -> None:
        raise AssertionError("answers are made by the request itself")

    def deliver(self, delivery: Delivery) -> None:
        self.got += [(entry, delivery.leased_ns) for entry in delivery.entries]

    def consumer_ended(self, consumer: str, why: Rejection) -> None:
        self._end(why)

    def flush(self) -> None:
        self._wake()

    def expelled(self, why: Rejection) -> None:
        self._end(why)

    def takes_more(self) -> bool:
        return True

    def _end(self, why: Rejection) -> None:
        self.why = why
        self._wake()

    def _wake(self) -> None:
        if not self._woken.done():
            self._woken.set_result(None)


class Receiving:
    def __init__(self, polls_max: int) -> None:
        self.polls_max = polls_max
        self.polls = 0  # requests that wait
        self.refused = 0  # since the start

    async def receive_message(self, caller: Caller, parameters: Parameters) -> Parameters:
        queue = caller.queue(parameters)
        own = own_of(caller, queue)
        count = number_of(parameters, "MaxNumberOfMessages", 1, COUNT_MAX, 1)
        wait_s = number_of(
            parameters,
            "WaitTimeSeconds",
            0,
            WAIT_S_MAX,
            own.number("ReceiveMessageWaitTimeSeconds"),
        )
        wished = number_of(parameters, "VisibilityTimeout", 0, messages.VISIBILITY_S_MAX, -1)
        names = _names(parameters)
        poll = Poll()
        session = caller.open(poll)
        try:
            await self._take(caller, session, poll, queue, count, wait_s)
            if wished >= 0 and poll.got:
                deliveries = [(entry[KEY], wished) for entry, _ in poll.got]
                act = lambda: messages.changed(session, queue, deliveries)  # noqa: E731
                await caller.carried(len(deliveries), act)
        except BaseException:
            session.leave_all(release=True)
            raise
        finally:
            session.close()
        told = [_told(caller, entry, leased_ns, names) for entry, leased_ns in poll.got]
        return {"Messages": told} if told else {}

    async def _take(
        self, caller: Caller, session: Session, poll: Poll, queue: str, count: int, wait_s: int
    ) -> None:
        """Consume until there is something, or nothing for so long; then leave."""
        consumer = await caller.carried(
            _CONSUME_COST, lambda: session.consume(queue, count, BYTES_MAX)
        )
        if wait_s and not poll.got:
            if self.polls >= self.polls_max:
                self.refused += 1
                text = f"{self.polls} requests wait for messages already (sqs.max_polls)"
                raise SqsError("RequestThrottled", text)
            self.polls += 1
            try:
                await poll.wait(wait_s)
            finally:
                self.polls -= 1
        if poll.why is None:
            # What is on its way still comes with this commit, or before.
            await caller.carried(1, lambda: session.depart(consumer))
        if poll.why is not None:
            raise faults.of(poll.why)


class _Names:
    """Which attributes a request wants to be told."""

    def __init__(self, names: Iterable[str]) -> None:
        self._all = False
        self._exact: set[str] = set()
        self._prefixes: list[str] = []
        for name in names:
            if name in ("All", ".*", "*"):
                self._all = True
            elif name.endswith(".*"):
                self._prefixes.append(name[:-1])
            else:
                self._exact.add(name)

    def __bool__(self) -> bool:
        return bool(self._all or self._exact or self._prefixes)

    def __contains__(self, name: str) -> bool:
        return self._all or name in self._exact or any(map(name.startswith, self._prefixes))


def _names(parameters: Parameters) -> tuple[_Names, _Names]:
    """Of message attributes, and of what SQS itself tells."""
    found = []
    for name in ("MessageAttributeNames", "AttributeNames", "MessageSystemAttributeNames"):
        names = parameters.get(name) or []
        if not isinstance(names, list) or not all(isinstance(one, str) for one in names):
            raise invalid(name, "it is no list of names")
        found.append(names)
    return _Names(found[0]), _Names([*found[1], *found[2]])


def _told(
    caller: Caller, entry: Entry, leased_ns: int, names: tuple[_Names, _Names]
) -> dict[str, Any]:
    kept = message.kept(entry[BODY])
    told: dict[str, Any] = {
        "MessageId": id_text(message_id(entry)).decode(),
        "ReceiptHandle": handle_of(entry[KEY]),
        "MD5OfBody": md5(kept.text.encode(), usedforsecurity=False).hexdigest(),
        "Body": kept.text,
    }
    own, system = names
    if own:
        chosen = {name: one for name, one in kept.attributes.items() if name in own}
        if chosen:
            told["MD5OfMessageAttributes"] = message.digest_of(chosen)
            told["MessageAttributes"] = chosen
    if system:
        every = _system(caller, entry, leased_ns, kept.headers)
        found = {name: value for name, value in every.items() if name in system}
        if found:
            told["Attributes"] = found
    return told


def _system(
    caller: Caller, entry: Entry, leased_ns: int, headers: dict[str, str]
) -> dict[str, str]:
    found = {
        "SenderId": caller.identity.key_id or "fila",
        "SentTimestamp": str(entry[ENQUEUED_NS] // _MS),
        "ApproximateReceiveCount": str(entry[ATTEMPTS] + 1),
    }
    if entry[ATTEMPTS] == 0:  # when an earlier one was is not kept
        found["ApproximateFirstReceiveTimestamp"] = str(leased_ns // _MS)
    for header, name in ((message.GROUP, "MessageGroupId"), (message.TRACE, message.TRACE_NAME)):
        if header in headers:
            found[name] = headers[header]
    if "fila.dead.queue" in headers:
        found["DeadLetterQueueSourceArn"] = caller.arn(headers["fila.dead.queue"])
    return found
