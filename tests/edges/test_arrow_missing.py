"""A broker that cannot make Arrow bodies says so, and goes on."""

from __future__ import annotations

import subprocess
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


_FIRST_BODY = """
import subprocess
import sys
from fila.core.browse import BROWSE_ALL, StoredPage
from fila.core.rows import MESSAGE_HEAD_BYTES, LaneRow
from fila.edges import arrow

assert arrow.preload() is None
before = set(sys.modules)
value = b"\\1" + bytes(MESSAGE_HEAD_BYTES - 1) + b"\\0\\1\\0\\1k\\0\\1v\\0\\0\\0\\1x"
lane = LaneRow(1, 0, 0, 0, 0, b"key", (b"throttle",))
count, _ = arrow.browsed_stream("q", StoredPage([(bytes(36), value)], [(lane, 1)], [], 0, b""), 7)
print(count, sorted(set(sys.modules) - before))
"""


def test_after_a_preload_the_first_body_loads_nothing() -> None:
    done = subprocess.run([sys.executable, "-c", _FIRST_BODY], capture_output=True, text=True)
    assert done.stdout == "1 []\n", done.stderr
