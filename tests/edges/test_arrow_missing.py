"""A broker that cannot make Arrow bodies says so, and goes on."""

from __future__ import annotations

import sys

import pytest

from fila.edges import arrow


@pytest.mark.parametrize("package", ["pyarrow", "numpy"])
def test_a_missing_package_is_named_before_anything_is_leased(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    refused = arrow.unavailable()
    assert refused is not None
    assert f"has no {package} to make Arrow bodies with" in refused.message
    assert "fila-broker[journal]" in refused.message
