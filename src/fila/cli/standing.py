"""What keeps a queue or a key from being served, for the commands that show queues: pauses and
quarantine.

Asks the broker for its explanation, since statistics have no place for it. A broker of an earlier
version, or a key without the permission, tells nothing: then there is nothing to add.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from fila.cli.explain import paused_text
from fila.cli.output import shown

if TYPE_CHECKING:
    from fila.client.sync import FilaClient

Pause = dict[str, Any]
Quarantine = dict[str, Any]
_KEYS_MAX = 1_000


class Standing(NamedTuple):
    """Queues that are not served, by name."""

    paused: dict[str, Pause]
    quarantined: dict[str, Quarantine]

    def lines(self) -> str:
        """A line for each; empty when all are served."""
        found = [pause_lines("Queue", self.paused)] if self.paused else []
        found += [
            f'Queue "{shown(name)}" is quarantined: {shown(one["cause"])}'
            for name, one in self.quarantined.items()
        ]
        if self.quarantined:
            found.append("Quarantined queues are not served: run `fila explain QUEUE`.")
        return "\n".join(found)


def of_queues(client: FilaClient) -> Standing:
    """Those among the queues the caller may see."""
    found = _explain(client, "").get("queues", [])
    return Standing(
        {one["queue"]: one["paused"] for one in found if one["paused"] is not None},
        {one["queue"]: one["quarantined"] for one in found if one.get("quarantined") is not None},
    )


class OfQueue(NamedTuple):
    """A queue's own pause, and those of its keys; which version its settings have; what operators
    said of its keys."""

    paused: Pause | None
    paused_keys: dict[str, Pause]
    version: int | None  # None: not told
    overrides: dict[str, dict[str, Any]]


def of_queue(client: FilaClient, queue: str) -> OfQueue:
    found = _explain(client, queue)
    keys = {one["key"]: one["paused"] for one in found.get("keys", []) if one["paused"] is not None}
    said = _overrides(client, queue) if found.get("overridden_keys") else {}
    return OfQueue(found.get("paused"), keys, found.get("version"), said)


def _overrides(client: FilaClient, queue: str) -> dict[str, dict[str, Any]]:
    return {one.pop("key"): one for one in client.list_overrides(queue)}


def pause_lines(what: str, pauses: dict[str, Pause]) -> str:
    return "\n".join(
        f'{what} "{shown(name)}" is {shown(paused_text(pause))}' for name, pause in pauses.items()
    )


def _explain(client: FilaClient, queue: str) -> dict[str, Any]:
    from fila.client.errors import ForbiddenError, ProtocolError

    try:
        return client.explain(queue, keys_max=_KEYS_MAX)
    except (ForbiddenError, ProtocolError):
        return {}
