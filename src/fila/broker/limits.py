"""A limit on what everybody shares: what is used of it, and how often it was reached."""

from __future__ import annotations

from typing import NamedTuple


class Limit(NamedTuple):
    name: str  # of the setting
    used: int
    max: int
    reached: int = 0  # how often somebody was refused or closed over it, since the start
