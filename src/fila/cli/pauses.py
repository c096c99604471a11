"""What is paused, for the commands that show a queue: `queue list`, `queue inspect` and `stats`.

Asks the broker for its explanation, since statistics have no place for it. A broker of an earlier
version, or a key without the permission, knows of no pauses: then there is nothing to add.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fila.cli.explain import paused_text
from fila.cli.output import shown

if TYPE_CHECKING:
    from fila.client.sync import FilaClient

Pause = dict[str, Any]
_KEYS_MAX = 1_000


def of_queues(client: FilaClient) -> dict[str, Pause]:
    """The paused ones among the queues the caller may see."""
    found = _explain(client, "").get("queues", [])
    return {one["queue"]: one["paused"] for one in found if one["paused"] is not None}


def of_queue(client: FilaClient, queue: str) -> tuple[Pause | None, dict[str, Pause]]:
    """Its own pause, and those of its keys."""
    found = _explain(client, queue)
    keys = {one["key"]: one["paused"] for one in found.get("keys", []) if one["paused"] is not None}
    return found.get("paused"), keys


def lines(what: str, pauses: dict[str, Pause]) -> str:
    return "\n".join(
        f'{what} "{shown(name)}" is {shown(paused_text(pause))}' for name, pause in pauses.items()
    )


def _explain(client: FilaClient, queue: str) -> dict[str, Any]:
    from fila.client.errors import ForbiddenError, ProtocolError

    try:
        return client.explain(queue, keys_max=_KEYS_MAX)
    except (ForbiddenError, ProtocolError):
        return {}
