from __future__ import annotations

from collections.abc import Iterator

import pytest

from fila import testing


@pytest.fixture(scope="module")
def broker() -> Iterator[testing.RealBroker]:
    with testing.broker() as running:
        yield running
