"""How many bytecode instructions a piece of the core executes: a cost that no busy machine changes.

Instructions differ in cost, so this complements a clock; it does not replace one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType, FrameType


def count(work: Callable[[], object], counts: Callable[[CodeType], bool]) -> int:
    """Instructions executed while `work` runs, in the functions that count."""
    total = 0

    def enter(frame: FrameType, event: str, argument: object) -> object:
        if not counts(frame.f_code):
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        return step

    def step(frame: FrameType, event: str, argument: object) -> object:
        nonlocal total
        if event == "opcode":
            total += 1
        return step

    before = sys.gettrace()
    sys.settrace(enter)  # type: ignore[arg-type]
    try:
        work()
    finally:
        sys.settrace(before)
    return total
