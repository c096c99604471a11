"""Does an answer hold what a scenario expects?

Owns the comparison and the words in which a difference is told. An object expects its own entries
and ignores others; a list expects the same length; texts that begin with @ are conditions:

    @any  @uuid  @hex32  @contains:part  @ge:5  @le:5  @in:a|b
"""

import re
from typing import Any

_UUID = re.compile(r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}")
_HEX32 = re.compile(r"[0-9a-f]{32}")


def difference(expected: Any, got: Any, where: str = "answer") -> str:
    """What is wrong with it, or nothing."""
    if isinstance(expected, dict):
        if not isinstance(got, dict):
            return f"{where} is {_short(got)}, not an object"
        for name, value in expected.items():
            if name not in got:
                return f"{where} has no {name!r}: {_short(got)}"
            if found := difference(value, got[name], f"{where}.{name}"):
                return found
        return ""
    if isinstance(expected, list):
        if not isinstance(got, list) or len(got) != len(expected):
            return f"{where} should have {len(expected)} entries: {_short(got)}"
        for index, value in enumerate(expected):
            if found := difference(value, got[index], f"{where}[{index}]"):
                return found
        return ""
    if isinstance(expected, str) and expected.startswith("@"):
        met = _condition(expected[1:], got)
    else:
        # True is no 1 here: languages that mix them up would hide a mistake.
        met = expected == got and isinstance(expected, bool) == isinstance(got, bool)
    return "" if met else f"{where} is {_short(got)}, expected {_short(expected)}"


def _condition(condition: str, got: Any) -> bool:
    kind, _, rest = condition.partition(":")
    if kind == "any":
        return True
    if kind == "uuid":
        return isinstance(got, str) and _UUID.fullmatch(got) is not None
    if kind == "hex32":
        return isinstance(got, str) and _HEX32.fullmatch(got) is not None
    if kind == "contains":
        return isinstance(got, str) and rest in got
    if kind == "in":
        return got in rest.split("|")
    if kind in ("ge", "le"):
        if isinstance(got, bool) or not isinstance(got, int | float):
            return False
        return got >= float(rest) if kind == "ge" else got <= float(rest)
    raise ValueError(f"unknown condition @{condition}")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else text[:200] + "…"
