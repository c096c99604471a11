"""How the C library's allocator treats what the broker frees.

Frames of a megabyte come and go with every turn. By default the allocator gives such memory back
to the system at once and asks for it again a moment later, page by page, each page a fault: 4 % of
the throughput. What is kept is bounded, and nothing happens where the C library is not glibc, or
where the operator has set the same by the environment.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Mapping
from typing import Final

MiB: Final = 1 << 20
KEPT_BYTES: Final = 64 * MiB  # free memory at the heap's end that is not given back
LARGE_BYTES: Final = 32 * MiB  # what is larger has pages of its own: the most glibc allows

_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3


def keep_freed_memory(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the allocator took it."""
    if "glibc.malloc" in environment.get("GLIBC_TUNABLES", ""):
        return False
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        return bool(mallopt(_TRIM_THRESHOLD, KEPT_BYTES) and mallopt(_MMAP_THRESHOLD, LARGE_BYTES))
    return False
