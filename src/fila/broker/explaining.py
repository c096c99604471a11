"""An explanation as it leaves the broker: the core's document, with the state of the hooks in it.

Owns the JSON form and what hooks add to a wait: while the breaker of `on_enqueue` is open, messages
get the default key and share one lane with all others.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Generator
from typing import Final

from fila.broker.broker import Broker
from fila.broker.stepping import ITEMS_OF_A_MESSAGE, STEP_ITEMS, counted
from fila.core.explain import Document, Explaining
from fila.core.rejection import MESSAGE_NOT_FOUND, Rejection
from fila.core.verdict import DEFAULT_ASSIGNMENT
from fila.hooks.breaker import CLOSED
from fila.hooks.contract import HookStats
from fila.wire.ids import parse_id

_TOLD: Final = (
    "breaker",
    "fail_mode",
    "executions",
    "errors",
    "timeouts",
    "memory",
    "bypassed",
    "late",
    "kept_out",
    "trips",
    "quarantines",
    "quarantined",
    "strangers_kept_out",
    "last_problem",
)
QUEUE_ITEMS: Final = 4  # a queue in a line costs as much as so many of another list
_DEFAULT_KEY = DEFAULT_ASSIGNMENT.fairness_key.decode()


def explanation(
    broker: Broker, queue: str, fairness_key: str | None, message_id: str, keys_max: int
) -> Generator[None, None, Document | Rejection] | Rejection:
    """Why a message, a key or a queue waits, in steps."""
    id = None
    if message_id:
        id = parse_id(message_id.encode())
        if id is None:
            return Rejection(MESSAGE_NOT_FOUND, f'"{message_id}" is no message id')
    key = None if fairness_key is None else fairness_key.encode()
    return _explanation(broker, broker.machine.view.explain_in_steps(queue, key, id, keys_max))


def _explanation(broker: Broker, steps: Explaining) -> Generator[None, None, Document | Rejection]:
    broker.begin()
    document = yield from counted(broker.work, steps)
    return document if isinstance(document, Rejection) else _with_hooks(broker, document)


def queues_in_short(
    broker: Broker, names: list[str], may: Callable[[str], bool]
) -> Generator[None, None, bytes]:
    """Those of the queues that the caller may see so, each in a line, as JSON; in steps."""
    parts: list[bytes] = []
    broker.begin()
    for start in range(0, len(names), STEP_ITEMS // QUEUE_ITEMS):
        if start:
            broker.work.done += STEP_ITEMS // ITEMS_OF_A_MESSAGE
            yield
        some = [one for one in names[start : start + STEP_ITEMS // QUEUE_ITEMS] if may(one)]
        found = broker.machine.view.overview(some)
        parts += [as_json(_with_hooks(broker, one)) for one in found]
    return b'{"queues":[' + b",".join(parts) + b"]}"


def as_json(document: Document) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def _status(one: HookStats | None) -> Document | None:
    if one is None:
        return None
    told: Document = {name: getattr(one, name) for name in _TOLD}
    return {**told, "quarantined_keys": list(one.quarantined_keys)}


def _with_hooks(broker: Broker, document: Document) -> Document:
    stats = broker.hook_stats(document["queue"])
    hooks = {
        name: one.breaker if one is not None else None
        for name, one in (("on_enqueue", stats.on_enqueue), ("on_failure", stats.on_failure))
    }
    document["hooks"] = hooks
    if "sentence" not in document:
        return document
    document["hook_status"] = {
        "on_enqueue": _status(stats.on_enqueue),
        "on_failure": _status(stats.on_failure),
    }
    key = document.get("key")
    tripped = hooks["on_enqueue"] not in (None, CLOSED)
    if tripped and (key is None or key["key"] == _DEFAULT_KEY):
        document["sentence"] += (
            f" The breaker of on_enqueue is {hooks['on_enqueue']}: its script failed too often, so "
            f'new messages get the key "{_DEFAULT_KEY}" and stand in one line.'
        )
        document.setdefault("changes", []).append(
            {
                "do": "repair_hook",
                "text": "an on_enqueue that does not fail (fila hooks test), or the one before it "
                "(fila hooks rollback); the broker's log has its last error",
                "command": f"fila hooks deploy {shlex.quote(document['queue'])} --on-enqueue @FILE",
                "eta_ms": None,
            }
        )
    return document
