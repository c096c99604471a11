"""Turns what a producer passes in into bytes, before any lock is taken.

Owns the checks on queue, headers and payload, and cutting long lists into pieces. Never touches
state shared with the connection. What is checked here is declared loosely: a compiled function
would refuse what it does not expect before it could say what is wrong.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from fila.client.sender import Outgoing
from fila.client.trace import traced
from fila.wire.fields import string_field
from fila.wire.message import message_body

CHUNK_BYTES: Final = 4 * 1024 * 1024
CHUNK_MESSAGES: Final = 10_000
_FIELDS_MAX: Final = 1024

Headers = Mapping[str, str] | None
Payload = bytes | bytearray | memoryview | str

_fields: dict[str, bytes] = {}


def queue_field(queue: Any) -> bytes:
    """An encoded queue name; cached, because producers repeat a few often."""
    field = _fields.get(queue)
    if field is None:
        if not isinstance(queue, str):
            raise TypeError(f"queue must be a str, not {type(queue).__name__}")
        field = string_field(queue, "queue")
        if len(_fields) >= _FIELDS_MAX:
            _fields.clear()
        _fields[queue] = field
    return field


def outgoing(queue: Any, headers: Mapping[Any, Any] | None, payload: Any) -> Outgoing:
    if isinstance(payload, str):
        payload = payload.encode()
    elif not isinstance(payload, bytes):
        if not isinstance(payload, bytearray | memoryview):
            raise TypeError(f"payload must be bytes or str, not {type(payload).__name__}")
        payload = bytes(payload)
    if headers:
        for name, value in headers.items():
            if not isinstance(name, str) or not isinstance(value, str):
                raise TypeError(f"header {name!r}: {value!r} must map a str to a str")
    return queue, queue_field(queue), message_body(headers, payload)


def chunks(messages: Iterable[Any], trace: str | None = None) -> Iterator[list[Outgoing]]:
    """Encoded messages in pieces of a few MiB, so that a long list never exists twice."""
    if trace is not None:
        triples = map(_triple, messages)
        messages = ((queue, traced(headers, trace), body) for queue, headers, body in triples)
    chunk: list[Outgoing] = []
    size = 0
    for message in messages:
        item = outgoing(*_triple(message))
        chunk.append(item)
        size += len(item[2])
        if size >= CHUNK_BYTES or len(chunk) >= CHUNK_MESSAGES:
            yield chunk
            chunk = []
            size = 0
    if chunk:
        yield chunk


def _triple(message: Any) -> tuple[Any, Any, Any]:
    if isinstance(message, tuple | list) and len(message) == 3:
        queue, headers, payload = message
        return queue, headers, payload
    raise TypeError(f"each message is (queue, headers, payload), not {message!r:.80}")
