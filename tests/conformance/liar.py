"""An adapter with one planted fault, to prove that the conformance programme finds it.

python tests/conformance/liar.py lost-message
"""

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

CONFORMANCE = Path(__file__).resolve().parents[2] / "sdks" / "conformance"
sys.path.insert(0, str(CONFORMANCE))

from adapters.python import Json, Session, main  # noqa: E402


class Liar(Session):
    def __init__(self, fault: str) -> None:
        super().__init__()
        self._alter: Callable[[Json, Json], Json] = FAULTS[fault]
        self._hoard: list[bytearray] = []
        self._trace = ""

    async def handle(self, request: Json) -> Json:
        return self._alter(request, await super().handle(request))

    async def op_stats(self, request: Json) -> Json:
        if self._alter is _hoard:
            self._hoard.append(bytearray(b"x") * (256 << 20))
        return await super().op_stats(request)

    async def op_enqueue(self, request: Json) -> Json:
        if self._alter is _one_trace and "traceparent" in request:
            self._trace = self._trace or request["traceparent"]
            request = {**request, "traceparent": self._trace}
        return await super().op_enqueue(request)

    async def op_connect(self, request: Json) -> Json:
        if self._alter is _plaintext:
            options = request.get("options", {})
            request = {**request, "options": {**options, "ca": None}}
            for name in ("tls", "ca", "cert", "key"):
                request["options"].pop(name, None)
        return await super().op_connect(request)


def _only(op: str, change: Callable[[Json], Json]) -> Callable[[Json, Json], Json]:
    """Change what succeeded at one operation."""

    def alter(request: Json, response: Json) -> Json:
        if request["op"] == op and "ok" in response:
            return {**response, "ok": change(response["ok"])}
        return response

    return alter


def _swallow(request: Json, response: Json) -> Json:
    if request["op"] == "enqueue" and "error" in response:
        return {"id": response["id"], "ok": {"message_id": str(uuid4())}}
    return response


def _always_drained(request: Json, response: Json) -> Json:
    return {"id": response["id"], "ok": {}} if request["op"] == "drain" else response


def _one_too_many(answer: Json) -> Json:
    return {"results": [*answer["results"], {"message_id": str(uuid4())}]}


def _anonymous(request: Json, response: Json) -> Json:
    if "error" in response:
        error = {**response["error"], "code": "InternalError"}
        return {"id": response["id"], "error": error}
    return response


def _retry_all(request: Json, response: Json) -> Json:
    if "error" in response:
        return {"id": response["id"], "error": {**response["error"], "retryable": True}}
    return response


def _without_text(request: Json, response: Json) -> Json:
    if "error" in response:
        return {"id": response["id"], "error": {**response["error"], "message": ""}}
    return response


def _twice(request: Json, response: Json) -> Json:
    if request["op"] == "enqueue":
        sys.stdout.write(json.dumps(response) + "\n")
    return response


def _chatter(request: Json, response: Json) -> Json:
    sys.stdout.write("connected!\n")
    return response


def _hoard(request: Json, response: Json) -> Json:
    return response


def _plaintext(request: Json, response: Json) -> Json:
    return response


class _YieldAgain:
    """A message that was acknowledged is handed out once more."""

    def __init__(self) -> None:
        self._seen: dict[str, Json] = {}
        self._acked: list[str] = []

    def __call__(self, request: Json, response: Json) -> Json:
        if request["op"] == "ack" and "ok" in response:
            self._acked += request["ids"]
        elif request["op"] == "next" and "ok" in response:
            answer = response["ok"]
            again = [self._seen[one] for one in self._acked if one in self._seen]
            self._acked.clear()
            self._seen |= {message["id"]: message for message in answer["messages"]}
            return {**response, "ok": {**answer, "messages": again + answer["messages"]}}
        return response


def _one_trace(request: Json, response: Json) -> Json:
    return response


def _lose_first(answer: Json) -> Json:
    return {**answer, "messages": answer["messages"][1:]}


def _reverse(answer: Json) -> Json:
    return {**answer, "messages": answer["messages"][::-1]}


def _all_good(answer: Json) -> Json:
    return {"results": [one if "message_id" in one else {"message_id": str(uuid4())}
                        for one in answer["results"]]}  # fmt: skip


def _first_attempt(answer: Json) -> Json:
    return {**answer, "messages": [{**one, "attempt_count": 0} for one in answer["messages"]]}


def _without_trace(answer: Json) -> Json:
    return {**answer, "messages": [{**one, "traceparent": None} for one in answer["messages"]]}


def _tells_the_payload(answer: Json) -> Json:
    line = {"level": "debug", "text": "sent confidential-payload"}
    return {"lines": [*answer["lines"], line]}


def _flip_last_byte(answer: Json) -> Json:
    raw = answer["bytes"]
    return {"bytes": raw[:-1] + ("0" if raw[-1] != "0" else "1")}


FAULTS: dict[str, Callable[[Json, Json], Json]] = {
    "none": lambda request, response: response,
    "wrong-order": _only("next", _reverse),
    "lost-message": _only("next", _lose_first),
    "swallowed-error": _swallow,
    "one-error-for-all": _anonymous,
    "everything-retryable": _retry_all,
    "errors-without-text": _without_text,
    "partial-failure-hidden": _only("enqueue_many", _all_good),
    "drain-always-done": _always_drained,
    "one-result-too-many": _only("enqueue_many", _one_too_many),
    "attempts-not-told": _only("next", _first_attempt),
    "yields-what-was-acked": _YieldAgain(),
    "trace-not-read": _only("next", _without_trace),
    "one-trace-for-all": _one_trace,
    "logs-the-payload": _only("logs", _tells_the_payload),
    "wrong-byte": _only("encode", _flip_last_byte),
    "malformed-accepted": lambda request, response: (
        {"id": response["id"], "ok": {"body": {}}}
        if request["op"] == "decode_body" else response
    ),
    "answers-twice": _twice,
    "prints-to-stdout": _chatter,
    "hoards-memory": _hoard,
    "falls-back-to-plaintext": _plaintext,
}  # fmt: skip


if __name__ == "__main__":
    asyncio.run(main(Liar(sys.argv[1])))
