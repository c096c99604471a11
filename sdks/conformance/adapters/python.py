"""The Python adapter: the requests of PROTOCOL.md as calls of the asynchronous SDK.

Run by the runner as a process of its own. The runner also uses `Session` in its own process as the
witness that looks at the broker from outside the client under test.
"""

import asyncio
import base64
import contextlib
import gc
import hashlib
import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from fila import FilaClient, NewMessage, errors, trace_context
from fila.client.aio import AsyncConsumer, AsyncFilaClient, AsyncMessage
from fila.wire import bodies, layouts, states
from fila.wire import errors as codes
from fila.wire import opcodes as op
from fila.wire.errors import InvalidBody
from fila.wire.frames import FrameDecoder, encode_frames

Json = dict[str, Any]
PAYLOAD_SHOWN_MAX = 4096

# The client's own causes; what the broker refuses has the catalogue's name.
CAUSES: dict[type[BaseException], str] = {
    errors.ConnectFailedError: "ConnectFailed",
    errors.ConnectionLostError: "ConnectionLost",
    errors.RequestTimeoutError: "Timeout",
    errors.ClientClosedError: "ClientClosed",
    asyncio.CancelledError: "Cancelled",
    InvalidBody: "InvalidFrame",
    TypeError: "InvalidArgument",
    ValueError: "InvalidArgument",
}
OPTION_NAMES = {"ca": "tls_ca", "cert": "tls_cert", "key": "tls_key"}
PLAIN_OPTIONS = (
    "tls", "api_key", "batch", "linger_ms", "in_flight_bytes_max", "reconnect",
    "reconnect_pause_min_ms", "reconnect_pause_max_ms",
)  # fmt: skip
SECONDS = ("timeout", "connect_timeout", "keepalive_interval", "keepalive_timeout")


class Lines:
    """A logger that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[Json] = []

    def log(self, level: int, msg: str, *args: object) -> None:
        name = {10: "debug", 20: "info", 30: "warn", 40: "error"}[level]
        self.told.append({"level": name, "text": msg % args})


class Session:
    """Clients, consumers and the messages they handed out, by the names the runner gave them."""

    def __init__(self) -> None:
        self._clients: dict[str, AsyncFilaClient] = {}
        self._events: dict[str, list[str]] = {}
        self._logs: dict[str, Lines] = {}
        self._consumers: dict[str, tuple[AsyncConsumer, AsyncFilaClient]] = {}
        self._held: dict[str, dict[str, AsyncMessage]] = {}
        self._running: dict[int, asyncio.Task[Json]] = {}

    async def handle(self, request: Json) -> Json:
        """The response to a request."""
        call: Callable[[Json], Awaitable[Json]] | None = getattr(self, "op_" + request["op"], None)
        if call is None:
            return {"id": request["id"], "error": _error("NotImplemented", request["op"])}
        task = asyncio.ensure_future(_answer(request["id"], call(request)))
        self._running[request["id"]] = task
        try:
            return await task
        except asyncio.CancelledError:
            if not task.cancelled():
                raise  # the adapter itself is ending
            return {"id": request["id"], "error": _error("Cancelled", "the call was cancelled")}
        finally:
            del self._running[request["id"]]

    async def end(self) -> None:
        for client in list(self._clients.values()):
            with contextlib.suppress(errors.FilaError, OSError):
                await client.close()

    # The adapter itself.

    async def op_hello(self, request: Json) -> Json:
        return {"protocol": 1, "language": "python", "version": "0.1.0"}

    async def op_stats(self, request: Json) -> Json:
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return {"rss_bytes": pages * os.sysconf("SC_PAGE_SIZE")}

    async def op_abort(self, request: Json) -> Json:
        task = self._running.get(request["request"])
        if task is not None:
            task.cancel()
        return {}

    # Codec.

    async def op_encode(self, request: Json) -> Json:
        body = to_record(getattr(bodies, request["operation"]), request["body"])
        raw = layouts.encode(body)
        return {"bytes": encode_frames(layouts.opcode_of(body), request["request_id"], raw).hex()}

    async def op_decode(self, request: Json) -> Json:
        ((opcode, request_id, raw),) = FrameDecoder().feed(bytes.fromhex(request["bytes"]))
        name = op.NAMES[opcode]
        body = to_meaning(layouts.decode(getattr(bodies, name), raw))
        return {"operation": name, "opcode": opcode, "request_id": request_id, "body": body}

    async def op_decode_body(self, request: Json) -> Json:
        kind = getattr(bodies, request["operation"])
        return {"body": to_meaning(layouts.decode(kind, bytes.fromhex(request["body"])))}

    async def op_decode_stream(self, request: Json) -> Json:
        limits = request["limits"]
        decoder = FrameDecoder(
            limits["frame_bytes_max"], limits["assembly_streams_max"], limits["assembly_bytes_max"]
        )
        raw = bytes.fromhex(request["bytes"])
        step = request["chunk"] or max(len(raw), 1)
        frames = [f for at in range(0, len(raw), step) for f in decoder.feed(raw[at : at + step])]
        return {
            "messages": [
                {"opcode": opcode, "request_id": request_id, "body": body.hex()}
                for opcode, request_id, body in frames
            ],
            "errors": [
                {"code": error.code, "request_id": error.request_id, "fatal": error.fatal}
                for error in decoder.take_errors()
            ],
        }

    async def op_state(self, request: Json) -> Json:
        state = states.State(request["state"])
        following = states.receive(states.CLIENT, state, request["receives"])
        if isinstance(following, states.Refusal):
            return {"refused": following.code, "fatal": following.fatal}
        return {"next": following.value}

    # Connections.

    async def op_connect(self, request: Json) -> Json:
        given = request.get("options", {})
        options: Json = {name: given[name] for name in PLAIN_OPTIONS if name in given}
        options |= {own: given[name] for name, own in OPTION_NAMES.items() if name in given}
        options |= {name: given[name + "_ms"] / 1000 for name in SECONDS if name + "_ms" in given}
        seen = self._events.setdefault(request["client"], [])
        options["on_event"] = lambda event: seen.append(event.kind)
        options["logger"] = self._logs.setdefault(request["client"], Lines())
        client = await FilaClient.connect(request["address"], **options)
        self._clients[request["client"]] = client
        return {}

    async def op_close(self, request: Json) -> Json:
        await self._clients[request["client"]].close()
        return {}

    async def op_drain(self, request: Json) -> Json:
        await self._clients[request["client"]].drain(timeout=_seconds(request, "timeout_ms"))
        return {}

    async def op_events(self, request: Json) -> Json:
        known = ("connected", "disconnected", "closed")
        return {"events": [kind for kind in self._events[request["client"]] if kind in known]}

    async def op_logs(self, request: Json) -> Json:
        return {"lines": list(self._logs[request["client"]].told)}

    # Messages.

    async def op_enqueue(self, request: Json) -> Json:
        client = self._clients[request["client"]]
        with trace_context(request.get("traceparent")):
            message_id = await client.enqueue(
                request["queue"],
                request.get("headers"),
                payload_of(request.get("payload", "")),
                delay=request.get("delay_ms", 0) / 1000,
                idempotency_key=request.get("idempotency_key", ""),
                fairness_key=request.get("fairness_key", ""),
                weight=request.get("weight", 0),
                throttle_keys=request.get("throttle_keys", ()),
                timeout=_seconds(request, "timeout_ms"),
            )
        return {"message_id": message_id}

    async def op_enqueue_many(self, request: Json) -> Json:
        with trace_context(request.get("traceparent")):
            return await self._enqueue_many(request)

    async def _enqueue_many(self, request: Json) -> Json:
        client = self._clients[request["client"]]
        messages = [
            NewMessage(
                one["queue"],
                payload_of(one.get("payload", "")),
                one.get("headers"),
                one.get("delay_ms", 0),
                one.get("idempotency_key", ""),
                one.get("fairness_key", ""),
                one.get("weight", 0),
                one.get("throttle_keys", ()),
            )
            for one in request["messages"]
        ]
        timeout = _seconds(request, "timeout_ms")
        if any(one[3:] != (0, "", "", 0, ()) for one in messages):
            stored = client.enqueue_messages(messages, timeout=timeout)
            ids = await _results(stored, lambda one: {"message_id": one.id})
        else:
            triples = [(one.queue, one.headers, one.payload) for one in messages]
            sent = client.enqueue_many(triples, timeout=timeout)
            ids = await _results(sent, lambda one: {"message_id": one})
        return {"results": ids}

    async def op_consume(self, request: Json) -> Json:
        client = self._clients[request["client"]]
        given = {name: request[name] for name in ("prefetch", "heartbeat") if name in request}
        consumer = client.consume(request["queue"], **given)
        self._consumers[request["consumer"]] = (consumer, client)
        self._held[request["consumer"]] = {}
        return {}

    async def op_next(self, request: Json) -> Json:
        consumer, _ = self._consumers[request["consumer"]]
        held = self._held[request["consumer"]]
        loop = asyncio.get_running_loop()
        end_at = loop.time() + request["timeout_ms"] / 1000
        messages: list[AsyncMessage] = []
        while len(messages) < request["max"]:
            try:
                message = await consumer.receive(max(end_at - loop.time(), 0))
            except errors.FilaError:
                if not messages:
                    raise
                break
            if message is None:
                break
            messages.append(message)
        held.update((message.id, message) for message in messages)
        return {"messages": [shown(one) for one in messages], "end": consumer.closed}

    async def op_cancel(self, request: Json) -> Json:
        consumer, _ = self._consumers[request["consumer"]]
        await consumer.close()
        return {}

    async def op_ack(self, request: Json) -> Json:
        return await self._settle(request, "ack")

    async def op_nack(self, request: Json) -> Json:
        return await self._settle(request, "nack", request.get("error", ""))

    async def op_release(self, request: Json) -> Json:
        return await self._settle(request, "release")

    async def op_extend(self, request: Json) -> Json:
        return await self._settle(request, "extend", request["visibility_ms"] / 1000 or None)

    async def _settle(self, request: Json, how: str, *given: str | float | None) -> Json:
        ids = request["ids"]
        if "consumer" in request:
            held = self._held[request["consumer"]]
            calls = [getattr(held[message_id], how)(*given) for message_id in ids]
            outcomes = await asyncio.gather(*calls, return_exceptions=True)
            return {"results": [_outcome(one, lambda _: {}) for one in outcomes]}
        client = self._clients[request["client"]]
        if len(ids) == 1:
            call = getattr(client, how)(request["queue"], ids[0], *given)
            settled = await asyncio.gather(call, return_exceptions=True)
            return {"results": [_outcome(one, lambda _: {}) for one in settled]}
        many = getattr(client, how + "_many")(request["queue"], ids, *given)
        results = await _results(many, lambda _: {})
        return {"results": results or [{} for _ in ids]}

    # Administration.

    async def op_create_queue(self, request: Json) -> Json:
        names = ("on_enqueue", "on_failure", "visibility_timeout_ms")
        given = {name: request[name] for name in names if name in request}
        client = self._clients[request["client"]]
        return {"queue_id": await client.create_queue(request["queue"], **given)}

    async def op_delete_queue(self, request: Json) -> Json:
        await self._clients[request["client"]].delete_queue(request["queue"])
        return {}

    async def op_list_queues(self, request: Json) -> Json:
        queues = await self._clients[request["client"]].list_queues()
        return {"queues": [queue._asdict() for queue in queues]}

    async def op_get_stats(self, request: Json) -> Json:
        stats = await self._clients[request["client"]].get_stats(request["queue"])
        keys = [key._asdict() for key in stats.fairness_keys]
        throttles = [key._asdict() for key in stats.throttle_keys]
        return stats._asdict() | {"fairness_keys": keys, "throttle_keys": throttles}

    async def op_set_config(self, request: Json) -> Json:
        await self._clients[request["client"]].set_config(request["key"], request["value"])
        return {}

    async def op_get_config(self, request: Json) -> Json:
        return {"value": await self._clients[request["client"]].get_config(request["key"])}

    async def op_list_config(self, request: Json) -> Json:
        client = self._clients[request["client"]]
        return {"entries": await client.list_config(request.get("prefix", ""))}

    async def op_redrive(self, request: Json) -> Json:
        client = self._clients[request["client"]]
        return {"redriven": await client.redrive(request["queue"], request.get("limit", 0))}

    async def op_explain(self, request: Json) -> Json:
        document = await self._clients[request["client"]].explain(
            request["queue"], key=request.get("fairness_key"), message_id=request.get("message_id")
        )
        return {"document": document}

    async def op_pause_queue(self, request: Json) -> Json:
        client = self._clients[request["client"]]
        await client.pause_queue(request["queue"], request.get("reason", ""))
        return {}

    async def op_resume_queue(self, request: Json) -> Json:
        await self._clients[request["client"]].resume_queue(request["queue"])
        return {}

    async def op_pause_key(self, request: Json) -> Json:
        client = self._clients[request["client"]]
        reason = request.get("reason", "")
        await client.pause_key(request["queue"], request["fairness_key"], reason)
        return {}

    async def op_resume_key(self, request: Json) -> Json:
        client = self._clients[request["client"]]
        await client.resume_key(request["queue"], request["fairness_key"])
        return {}

    async def op_purge(self, request: Json) -> Json:
        client = self._clients[request["client"]]
        return {"purged": await client.purge(request["queue"], key=request.get("fairness_key"))}

    async def op_create_api_key(self, request: Json) -> Json:
        made = await self._clients[request["client"]].create_api_key(
            request["name"],
            expires_at_ms=request.get("expires_at_ms", 0),
            is_superadmin=request.get("is_superadmin", False),
        )
        return made._asdict()

    async def op_revoke_api_key(self, request: Json) -> Json:
        await self._clients[request["client"]].revoke_api_key(request["key_id"])
        return {}

    async def op_list_api_keys(self, request: Json) -> Json:
        keys = await self._clients[request["client"]].list_api_keys()
        return {"keys": [key._asdict() for key in keys]}

    async def op_set_acl(self, request: Json) -> Json:
        permissions = [(kind, pattern) for kind, pattern in request["permissions"]]
        await self._clients[request["client"]].set_acl(request["key_id"], permissions)
        return {}

    async def op_get_acl(self, request: Json) -> Json:
        acl = await self._clients[request["client"]].get_acl(request["key_id"])
        permissions = [list(permission) for permission in acl.permissions]
        return {"permissions": permissions, "is_superadmin": acl.is_superadmin}


# Values.


def payload_of(given: Any) -> bytes:
    if isinstance(given, dict):
        return base64.b64decode(given["repeat"]) * int(given["count"])
    return base64.b64decode(given)


def shown(message: AsyncMessage) -> Json:
    payload = message.payload
    short = len(payload) <= PAYLOAD_SHOWN_MAX
    return {
        "id": message.id,
        "queue": message.queue,
        "headers": message.headers,
        "payload": base64.b64encode(payload).decode() if short else None,
        "size": len(payload),
        "sha256": hashlib.sha256(payload).hexdigest(),
        "fairness_key": message.fairness_key,
        "weight": message.weight,
        "throttle_keys": list(message.throttle_keys),
        "attempt_count": message.attempt_count,
        "enqueued_at_ms": message.enqueued_at_ms,
        "leased_at_ms": message.leased_at_ms,
        "traceparent": message.traceparent,
    }


def to_record(kind: Any, meaning: Json) -> Any:
    """The codec's record of a body written as the golden vectors write it."""
    layout = layouts.LAYOUTS.get(kind) or layouts.ITEM_LAYOUTS.get(kind, {})
    return kind(*[_to_value(how, meaning.get(name)) for name, how in layout.items()])


def _to_value(kind: Any, value: Any) -> Any:
    if isinstance(kind, layouts.ListOf):
        return tuple(to_record(kind.item, item) for item in value)
    kind = kind.removeprefix("optional ")
    if value is None:
        return None
    if kind in ("u64", "i64"):
        return int(value)
    if kind == "bytes":
        return bytes.fromhex(value)
    if kind == "map":
        return dict(value)
    return tuple(value) if kind == "string[]" else value


def to_meaning(record: tuple[Any, ...]) -> Json:
    layout = layouts.LAYOUTS.get(type(record)) or layouts.ITEM_LAYOUTS.get(type(record), {})
    pairs = zip(layout.items(), record, strict=True)
    return {name: _to_json(kind, value) for (name, kind), value in pairs}


def _to_json(kind: Any, value: Any) -> Any:
    if isinstance(kind, layouts.ListOf):
        return [to_meaning(item) for item in value]
    kind = kind.removeprefix("optional ")
    if value is None:
        return None
    if kind in ("u64", "i64"):
        return str(value)
    if kind == "bytes":
        return bytes(value).hex()
    if kind == "map":
        return [list(pair) for pair in value.items()]
    return list(value) if kind == "string[]" else value


# Errors.


async def _answer(request_id: int, call: Awaitable[Json]) -> Json:
    try:
        return {"id": request_id, "ok": await call}
    except Exception as error:
        return {"id": request_id, "error": told(error)}


async def _results(call: Awaitable[Any], told_as: Callable[[Any], Json]) -> list[Json]:
    """One entry per item of a call for many, whether some were refused or not."""
    try:
        results = await call
    except errors.BatchError as partial:
        results = partial.results
    return [_outcome(one, told_as) for one in results or ()]


def _outcome(result: Any, told_as: Callable[[Any], Json]) -> Json:
    return {"error": told(result)} if isinstance(result, BaseException) else told_as(result)


def told(error: BaseException) -> Json:
    if isinstance(error, errors.FilaError) and error.code is not None:
        return _error(codes.name_of(error.code), str(error), error.retryable, error.metadata)
    for cause, name in CAUSES.items():
        if isinstance(error, cause):
            return _error(name, str(error), getattr(error, "retryable", False))
    return _error("Unexpected", f"{type(error).__name__}: {error}")


def _error(
    code: str, message: str, retryable: bool = False, metadata: dict[str, str] | None = None
) -> Json:
    return {"code": code, "message": message, "retryable": retryable, "metadata": metadata or {}}


def _seconds(request: Json, name: str) -> float | None:
    return request[name] / 1000 if name in request else None


# The process.


async def main(session: Session) -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=1 << 26)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    tasks: set[asyncio.Task[None]] = set()

    async def serve(line: bytes) -> None:
        response = await session.handle(json.loads(line))
        sys.stdout.write(json.dumps(response) + "\n")
        sys.stdout.flush()

    while line := await reader.readline():
        task = asyncio.create_task(serve(line))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    for task in tasks:
        task.cancel()
    await session.end()


if __name__ == "__main__":
    asyncio.run(main(Session()))
