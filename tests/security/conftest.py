"""Fixtures: a broker that asks for keys, its superadmin, and keys of every kind."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from tests.e2e.process import Broker
from tests.grpc.talkers import FibpTalker, GrpcTalker, Talker

ROOT = "the-bootstrap-key"
TALKERS: dict[str, Callable[..., Any]] = {"fibp": FibpTalker, "grpc": GrpcTalker}

_names = itertools.count(1)


class Key(NamedTuple):
    id: str
    secret: str


@pytest.fixture(scope="session")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    place = tmp_path_factory.mktemp("locked") / "data"
    # Tests show many wrong keys, and want each answered at once and in the log.
    settings = {
        "auth.bootstrap_apikey": ROOT,
        "auth.max_wrong_keys": 10_000,
        "log.level": "debug",
        "backup.target": str(place.with_name("backups")),
    }
    with Broker(place, settings=settings) as started:
        yield started


@pytest.fixture(scope="session")
def root(locked: Broker) -> Iterator[Talker]:
    with FibpTalker(locked.address, ROOT) as talker:
        yield talker


@pytest.fixture(scope="session")
def expired(root: Talker) -> Key:
    """A superadmin's key that ran out a moment ago."""
    made = root.create_key("expired", int(time.time() * 1000) + 300, superadmin=True)
    time.sleep(0.5)
    return Key(made.key_id, made.key)


@pytest.fixture
def key(root: Talker) -> Callable[..., Key]:
    """Makes keys with these permissions."""

    def make(*permissions: tuple[str, str], superadmin: bool = False, expires_ms: int = 0) -> Key:
        made = root.create_key("test", expires_ms, superadmin)
        if permissions:
            root.set_acl(made.key_id, *permissions)
        return Key(made.key_id, made.key)

    return make


@pytest.fixture
def connect(locked: Broker) -> Iterator[Callable[..., Talker]]:
    """Opens connections of either protocol that are closed with the test."""
    opened: list[Talker] = []

    def open(protocol: str, secret: str | None) -> Talker:
        talker: Talker = TALKERS[protocol](locked.address, secret)
        opened.append(talker)
        return talker

    yield open
    for talker in opened:
        talker.close()


@pytest.fixture
def queue() -> str:
    """A queue name no other test uses."""
    return f"safe-{next(_names)}"
