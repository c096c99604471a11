"""The endpoint: who asks, for what, and the answer in the form of the question."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from time import gmtime, strftime
from typing import Final

from fila.broker.session import Sessions
from fila.edges.http.message import EventStream, HttpError, Request, Response
from fila.edges.sqs import forms, messages, queues, signature
from fila.edges.sqs.caller import Caller
from fila.edges.sqs.faults import SqsError, unsupported
from fila.edges.sqs.forms import Parameters
from fila.edges.sqs.receiving import Receiving
from fila.edges.sqs.signature import Signatures
from fila.security.guard import Identity

audit = logging.getLogger("fila.audit")

Handler = Callable[[Caller, Parameters], Awaitable[Parameters]]

# Operations of SQS that Fila has nothing for.
NOT_THERE: Final = (
    "AddPermission",
    "CancelMessageMoveTask",
    "ListQueueTags",
    "RemovePermission",
    "TagQueue",
    "UntagQueue",
)


class Endpoint:
    def __init__(self, sessions: Sessions, polls_max: int) -> None:
        self._sessions = sessions
        self._guard = sessions.guard
        self._signatures = Signatures(sessions.guard)
        self.receiving = Receiving(polls_max)
        tasks = queues.MoveTasks()
        self._handlers: dict[str, Handler] = {
            "ChangeMessageVisibility": messages.change_message_visibility,
            "ChangeMessageVisibilityBatch": messages.change_message_visibility_batch,
            "CreateQueue": queues.create_queue,
            "DeleteMessage": messages.delete_message,
            "DeleteMessageBatch": messages.delete_message_batch,
            "DeleteQueue": queues.delete_queue,
            "GetQueueAttributes": queues.get_queue_attributes,
            "GetQueueUrl": queues.get_queue_url,
            "ListDeadLetterSourceQueues": queues.list_dead_letter_source_queues,
            "ListMessageMoveTasks": tasks.list,
            "ListQueues": queues.list_queues,
            "PurgeQueue": queues.purge_queue,
            "ReceiveMessage": self.receiving.receive_message,
            "SendMessage": messages.send_message,
            "SendMessageBatch": messages.send_message_batch,
            "SetQueueAttributes": queues.set_queue_attributes,
            "StartMessageMoveTask": tasks.start,
        }

    async def serve(self, request: Request) -> Response | EventStream:
        request_id = self._sessions.random_hex(16)
        try:
            call = forms.read(request)
            caller = self._caller(request)
            return forms.answered(call, await self._do(caller, call), request_id)
        except HttpError as error:
            return error.response()
        except SqsError as error:
            now_s = self._sessions.now_ms() // 1000
            date = strftime("%a, %d %b %Y %H:%M:%S GMT", gmtime(now_s))
            return forms.refused(forms.is_json(request), error, request_id, date)

    async def _do(self, caller: Caller, call: forms.Call) -> Parameters:
        handler = self._handlers.get(call.action)
        if handler is not None:
            return await handler(caller, call.parameters)
        if call.action in NOT_THERE:
            raise unsupported(f"{call.action} is not supported")
        raise SqsError("InvalidAction", f"{call.action[:100]} is no action of SQS")

    def _caller(self, request: Request) -> Caller:
        scheme = "https" if request.secure else "http"
        base = f"{scheme}://{request.headers.get('host', 'localhost')}"
        identity = self._identity(request)
        region = signature.region_of(request)
        return Caller(self._sessions, identity, request.peer, base, region)

    def _identity(self, request: Request) -> Identity:
        """Where authentication is off, anybody; but not a page in somebody's browser."""
        if "origin" in request.headers:
            raise SqsError("AccessDenied", "requests of web pages are not served")
        now_ms = self._sessions.now_ms()
        if not self._guard.enabled:
            anybody = self._guard.admit(None, now_ms)
            assert isinstance(anybody, Identity)
            return anybody
        try:
            return self._signatures.caller(request, now_ms)
        except SqsError as error:
            raise self._wrong(request.peer, error, now_ms) from None

    def _wrong(self, peer: str, error: SqsError, now_ms: int) -> SqsError:
        """A wrong signature counts as a wrong key does, over every door."""
        attempts = self._sessions.attempts
        wait_ms = attempts.wrong(peer, now_ms)
        if attempts.may_tell(wait_ms, now_ms):
            told = {"who": "nobody yet", "peer": peer, "action": "sign", "why": str(error)}
            audit.warning("refused", extra=told)
        if wait_ms:
            wait_s = wait_ms // 1000 + 1
            text = f"too many wrong signatures from {peer}; try again in {wait_s} s"
            return SqsError("RequestThrottled", text, wait_s)
        return error
