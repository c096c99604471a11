"""Fila itself, as it is started for its users, with a hook that spreads the tenants."""

from __future__ import annotations

from pathlib import Path

from bench.rivals.servers.running import Running
from bench.system.broker import Broker
from fila import __version__


def start(place: Path, durability: str = "os", compiled: bool = False) -> Running:
    broker = Broker(place / "fila", {"storage.durability": durability}, compiled)
    broker.start()
    build = "compiled" if compiled else "pure Python"
    survives = "process death" if durability == "os" else "power loss"
    return Running(
        broker.address,
        broker.child,
        f"Fila {__version__}",
        f'{build}; durability "{durability}"; an on_enqueue hook reads the tenant of every message',
        survives,
    )
