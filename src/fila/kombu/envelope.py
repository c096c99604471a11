"""A Kombu message as a Fila message, and back.

Owns which header says what. The body is the payload, byte for byte. Everything else of Kombu's
message is one header, `kombu`, as JSON; what a hook may want to read (the task's name, and headers
the application has set itself) is there again as headers of their own.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from kombu.utils import json

from fila.task_keys import KEY, THROTTLE, WEIGHT, Keys

ENVELOPE: Final = "kombu"
_VALUE_MAX: Final = 1_024
# Headers of Celery's task messages that are about the task's bookkeeping, not about its tenant.
_CELERYS: Final = frozenset((
    "argsrepr", "kwargsrepr", "compression", "delivery_info", "eta", "expires", "group",
    "group_index", "ignore_result", "lang", "meth", "origin", "parent_id", "properties",
    "replaced_task_nesting", "shadow", "stamped_headers", "stamps", "timelimit", "callbacks",
    "errbacks", "chain", "chord", "taskset", "utc",
))  # fmt: skip


def packed(message: Mapping[str, Any]) -> tuple[dict[str, str], bytes]:
    """The headers and the payload of what Kombu publishes."""
    headers = message.get("headers") or {}
    body = b"" if message.get("body") is None else message["body"]
    properties = dict(message["properties"])
    properties.pop("delivery_tag", None)  # the message's id, once it is received
    rest = {
        "content-type": message.get("content-type"),
        "content-encoding": message.get("content-encoding"),
        "headers": headers,
        "properties": properties,
        "text": isinstance(body, str),
    }
    found = {ENVELOPE: json.dumps(rest)}
    for name, value in headers.items():
        if name not in _CELERYS and isinstance(value, str | int | float | bool):
            text = str(value)
            if len(text) <= _VALUE_MAX and name != ENVELOPE:
                found[name] = text
    return found, body.encode() if isinstance(body, str) else bytes(body)


def unpacked(tag: str, headers: Mapping[str, str], payload: bytes, attempts: int) -> dict[str, Any]:
    """What Kombu makes its message of. A message that Kombu did not publish is bytes with the
    headers it has, so that any producer can feed a consumer."""
    rest = json.loads(headers[ENVELOPE]) if ENVELOPE in headers else {}
    properties = rest.get("properties") or {"delivery_info": {}}
    properties["delivery_tag"] = tag
    info = properties.setdefault("delivery_info", {})
    info["redelivered"] = attempts > 0
    return {
        "body": payload.decode() if rest.get("text") else payload,
        "content-type": rest.get("content-type") or "application/data",
        "content-encoding": rest.get("content-encoding") or "binary",
        "headers": rest["headers"] if rest else dict(headers),
        "properties": properties,
    }


def keys(message: Mapping[str, Any]) -> Keys:
    """Whose message it is, by its headers; a priority is a weight."""
    headers = message.get("headers") or {}
    throttle = headers.get(THROTTLE) or ()
    if isinstance(throttle, str):
        throttle = (throttle,)
    priority = message["properties"].get("priority") or 0
    return Keys(
        str(headers.get(KEY) or ""),
        int(headers.get(WEIGHT) or (priority + 1 if priority else 0)),
        tuple(str(one) for one in throttle),
    )


def delay_s(message: Mapping[str, Any]) -> float:
    """Seconds until a task's ETA; the broker keeps it until then, and no worker holds it."""
    eta = (message.get("headers") or {}).get("eta")
    if not eta:
        return 0.0
    try:
        moment = datetime.fromisoformat(eta)
    except (TypeError, ValueError):
        return 0.0  # Celery reads it again, and tells what is wrong with it
    if moment.tzinfo is None:
        return 0.0
    return max(moment.timestamp() - time.time(), 0.0)
