"""Fixtures: one browser, a busy broker and a locked one per worker; every page is watched."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.dashboard.browser import DESK, Watched, origin_of, watched
from tests.dashboard.traffic import Traffic
from tests.http.visitor import HttpBroker, Visitor

ROOT = "the-bootstrap-key"
_names = itertools.count(1)

Open = Callable[..., Watched]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpBroker]:
    """A broker that is busy."""
    with HttpBroker(tmp_path_factory.mktemp("dashboard") / "data") as broker:
        assert isinstance(broker, HttpBroker)
        with Traffic(broker):
            broker.visitor().wait(_sees_orders, "the traffic to be seen")
            yield broker


@pytest.fixture(scope="session")
def locked_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpBroker]:
    settings = {"auth.bootstrap_apikey": ROOT}
    with HttpBroker(tmp_path_factory.mktemp("locked") / "data", settings=settings) as broker:
        assert isinstance(broker, HttpBroker)
        yield broker


@pytest.fixture
def open_page(browser: Browser, site: HttpBroker) -> Iterator[Open]:
    """Open a page of the busy broker; in the end it has complained of nothing, and stayed home."""
    with ExitStack() as stack:
        pages: list[Watched] = []

        def opened(path: str = "/", size: tuple[int, int] = DESK, **options: Any) -> Watched:
            origin = origin_of(site.http_address)
            seen = stack.enter_context(watched(browser, origin, size, **options))
            pages.append(seen)
            seen.go(path)
            return seen

        yield opened
        for seen in pages:
            assert seen.errors == []
            assert seen.strays == []


@pytest.fixture
def queue() -> str:
    return f"page-{next(_names)}"


def _sees_orders(visitor: Visitor) -> bool:
    rows = {row["name"]: row for row in visitor.api("overview")["queues"]}
    return bool(rows.get("orders") and rows["orders"]["depth"] and rows["orders"]["rates"])
