"""How Python's cycle collector runs in a broker.

The loop makes few cycles, and what makes them and lives long takes them apart itself when it ends
(a queue in `core/remains.py`, a connection when it is lost). So there is little to find, and every
collection holds the loop. What it costs is what was made since the last one and still lives: few
objects at a time are a fraction of a millisecond, all keys of a queue would be tens of them. So
young objects are looked at often, a few thousand at a time, and everything hardly ever.
"""

from __future__ import annotations

import gc
from typing import Final

YOUNG_OBJECTS: Final = 5_000  # made and not freed, after which the youngest are looked at
YOUNG_ROUNDS: Final = 2  # after so many of these, those that were left over, too
ALL_ROUNDS: Final = 10_000  # and after so many of those, everything


def collect_little() -> None:
    """From now on."""
    gc.set_threshold(YOUNG_OBJECTS, YOUNG_ROUNDS, ALL_ROUNDS)
