"""The brokers of a run: a new one for a scenario that asks for settings, else one used before.

Owns which broker a scenario gets and what becomes of it afterwards. A plain broker is handed on
after its queues and settings are gone; a scenario that failed, or that kills, stops or freezes its
broker, leaves none behind.
"""

import asyncio
import contextlib
import tempfile
from pathlib import Path
from typing import Any

from fila import FilaClient, errors
from harness.broker import Broker
from harness.certificates import Certificates
from harness.scenario import Scenario

_HARMFUL = frozenset(("kill", "stop", "start", "freeze", "thaw"))
_TIDY_S = 15.0


class Brokers:
    def __init__(self, certificates: Certificates) -> None:
        self._certificates = certificates
        self._idle: list[Broker] = []
        self._places: dict[Broker, tempfile.TemporaryDirectory[str]] = {}

    async def take(self, scenario: Scenario) -> Broker | None:
        """A running broker for the scenario, or none when it asks for none."""
        if scenario.broker is None:
            return None
        if _plain(scenario) and self._idle:
            return self._idle.pop()
        place = tempfile.TemporaryDirectory(prefix="fila-conformance-")
        broker = Broker(Path(place.name), scenario.broker, self._certificates)
        self._places[broker] = place
        await broker.start()
        return broker

    async def give_back(self, broker: Broker, scenario: Scenario, passed: bool) -> None:
        """Its clients must be gone."""
        if passed and _plain(scenario) and await _tidied(broker.address):
            self._idle.append(broker)
        else:
            await self._end(broker)

    async def close(self) -> None:
        for broker in list(self._places):
            await self._end(broker)

    async def _end(self, broker: Broker) -> None:
        await broker.kill()
        self._places.pop(broker).cleanup()


def _plain(scenario: Scenario) -> bool:
    return scenario.broker == {} and not any(step["op"] in _HARMFUL for step in scenario.steps)


async def _tidied(address: str) -> bool:
    """Whether everything a scenario left could be removed."""
    try:
        async with asyncio.timeout(_TIDY_S), await FilaClient.connect(address) as client:
            for entry in await client.list_queues():
                with contextlib.suppress(errors.QueueNotFoundError):  # gone with its queue
                    await client.delete_queue(entry.name)
            config: dict[str, Any] = await client.list_config("")
            for key in config:
                await client.set_config(key, "")
            return not await client.list_queues()
    except (TimeoutError, errors.FilaError, OSError):
        return False
