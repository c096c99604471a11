"""Properties run without a time limit per example: a busy machine is no fault of the store."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
