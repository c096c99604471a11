"""What the allocator does with freed memory."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fila.server.malloc import keep_freed_memory

_FAULTS = """
import resource, sys
from fila.server.malloc import keep_freed_memory
if sys.argv[1] == "kept":
    assert keep_freed_memory({})
for _ in range(20):
    bytes(4 << 20)  # grows the limits by itself, as far as it does
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    parts = [bytearray(1 << 20) for _ in range(8)]
    del parts
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", _FAULTS, how], capture_output=True, text=True, check=True
    )
    return int(done.stdout)


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="mallopt is glibc's: Linux alone has it"
)
def test_memory_that_comes_and_goes_is_kept() -> None:
    kept = faults("kept")
    assert kept < 8 * 256 * 4  # a few times the pages of one round, not twenty
    assert kept < faults("by default") / 2


def test_what_the_operator_has_set_is_left_alone() -> None:
    assert not keep_freed_memory({"GLIBC_TUNABLES": "glibc.malloc.trim_threshold=1"})
