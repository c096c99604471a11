"""What all tests share: how property tests run, and one browser.

Property tests draw the same examples every time in the gate, and at random under `make fuzz`.

A gate that draws its examples anew fails on somebody else's change. What a random run finds becomes
an explicit `@example` of the test that found it, and so part of the gate.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# No time limit per example in either: a busy machine is no fault of what is tested.
settings.register_profile("gate", derandomize=True, deadline=None, database=None)
settings.register_profile("fuzz", derandomize=False, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("FILA_HYPOTHESIS_PROFILE", "gate"))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One for all: a process can have Playwright's loop only once."""
    from tests.dashboard.browser import chromium

    with chromium() as launched:
        yield launched
