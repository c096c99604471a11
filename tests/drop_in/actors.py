"""Actors of a Dramatiq program; which broker they use is said by the environment."""

from __future__ import annotations

import os
from pathlib import Path

import dramatiq

from fila.dramatiq import FilaBroker

dramatiq.set_broker(FilaBroker(os.environ["PROJECT_BROKER"], visibility_timeout_ms=5_000))
LOG = Path(os.environ["PROJECT_LOG"])


def note(text: str) -> None:
    with LOG.open("a") as log:
        log.write(text + "\n")


@dramatiq.actor(fila_key="tenant", fila_throttle="provider:{provider}", max_retries=0)
def send(tenant: str, number: int, provider: str = "none") -> None:
    note(f"{tenant} {number}")


@dramatiq.actor(max_retries=2, min_backoff=100, max_backoff=200)
def fail(name: str) -> None:
    note(f"fail {name}")
    raise RuntimeError(name)
