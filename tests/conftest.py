"""How property tests run: the same examples every time in the gate, at random under `make fuzz`.

A gate that draws its examples anew fails on somebody else's change. What a random run finds becomes
an explicit `@example` of the test that found it, and so part of the gate.
"""

from __future__ import annotations

import os

from hypothesis import settings

# No time limit per example in either: a busy machine is no fault of what is tested.
settings.register_profile("gate", derandomize=True, deadline=None, database=None)
settings.register_profile("fuzz", derandomize=False, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("FILA_HYPOTHESIS_PROFILE", "gate"))
