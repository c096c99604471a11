"""Runs a coroutine on a loop of its own, in a thread of its own.

A browser test leaves its driver's loop running in the main thread of its worker, where
`asyncio.run` would refuse to start another.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

Result = TypeVar("Result")


def run(coroutine: Coroutine[Any, Any, Result]) -> Result:
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()
