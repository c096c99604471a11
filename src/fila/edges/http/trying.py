"""Hooks tried on sample messages before they decide anything: `fila hooks test` for the dashboard.

Owns what may be asked of it. Scripts run as in the broker, with its runtime settings and limits,
but on a thread of their own, one trial at a time, and nothing is kept.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import Any, Final

from fila.broker.clock import elapsed_ns
from fila.broker.session import Sessions
from fila.edges.http.actions import refuse, text_of
from fila.edges.http.message import HttpError
from fila.hooks.contract import HookError
from fila.hooks.rehearsal import Sample, document_of, read_samples, rehearse
from fila.security.guard import Identity

SAMPLES_MAX: Final = 20


class Trying:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._one = asyncio.Lock()

    async def try_hooks(self, identity: Identity, peer: str, fields: dict[str, Any]) -> Any:
        """What scripts would decide about samples: JSON lines, one empty message without."""
        queue = text_of(fields, "queue")
        refuse(self._sessions.guard.permit_admin(identity, queue))
        on_enqueue, on_failure = [
            text_of(fields, name) if fields.get(name) else None
            for name in ("on_enqueue", "on_failure")
        ]
        lines = text_of(fields, "messages") if fields.get("messages") else ""
        try:
            samples = read_samples(lines.splitlines()) or [Sample({})]
            if len(samples) > SAMPLES_MAX:
                raise HookError(f"at most {SAMPLES_MAX} sample messages can be tried at once")
            async with self._one:
                tried = await asyncio.to_thread(
                    lambda: rehearse(
                        on_enqueue,
                        on_failure,
                        samples,
                        queue=queue,
                        config=self._sessions.broker.machine.view.config,
                        clock=elapsed_ns,
                        seed=secrets.randbits(63),
                    )
                )
        except HookError as fault:
            raise HttpError(400, "LuaCompilationError", str(fault)) from fault
        return {"messages": [document_of(one) for one in tried]}
