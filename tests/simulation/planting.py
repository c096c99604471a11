"""Planted faults: one wrong line in the core at a time, to see whether the auditor notices.

A fault is a piece of a function's source and what stands there instead. It is planted at run time,
in the function's module and wherever else the function was imported, and taken out again. When the
core is rewritten and the piece is no longer there, planting says so; write the fault anew then.
"""

from __future__ import annotations
import __future__

import importlib
import inspect
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from fila.core import delivery

# A compiled core cannot be changed line by line; its pure form is what the faults are planted in.
COMPILED = not (delivery.__file__ or "").endswith(".py")


class Fault(NamedTuple):
    name: str
    where: str  # module:function or module:Class.method
    swaps: tuple[tuple[str, str], ...]  # what stands there, and what the fault makes of it
    first: int = 0  # the seed from which on it is looked for


def fault(name: str, where: str, *swaps: str, first: int = 0) -> Fault:
    return Fault(name, where, tuple(zip(swaps[::2], swaps[1::2], strict=True)), first)


@contextmanager
def planted(one: Fault) -> Iterator[None]:
    """The core with this fault in it."""
    module_name, _, path = one.where.partition(":")
    module = importlib.import_module(module_name)
    owner: Any = module
    *outer, name = path.split(".")
    for part in outer:
        owner = getattr(owner, part)
    sound = getattr(owner, name)
    broken = _broken(module.__dict__, sound, one)
    # A method lives in its class; a function lives wherever it was imported to, and in the tables
    # that say which function follows which command.
    homes = [owner] if outer else [m for m in _modules() if m.__dict__.get(name) is sound]
    rows = [] if outer else [(table, key) for table, key in _table_rows() if table[key] is sound]
    for home in homes:
        setattr(home, name, broken)
    for table, key in rows:
        table[key] = broken
    try:
        yield
    finally:
        for home in homes:
            setattr(home, name, sound)
        for table, key in rows:
            table[key] = sound


def _broken(namespace: dict[str, Any], sound: Any, one: Fault) -> Any:
    source = textwrap.dedent(inspect.getsource(sound))
    for old, new in one.swaps:
        assert source.count(old) == 1, (
            f'planted fault "{one.name}": {one.where} holds {old!r} {source.count(old)} times, not '
            "once; write the fault anew"
        )
        source = source.replace(old, new)
    flags = __future__.annotations.compiler_flag
    code = compile(source, f"<{one.where} with {one.name}>", "exec", flags, dont_inherit=True)
    found: dict[str, Any] = {}
    exec(code, namespace, found)
    return found[sound.__name__]


def _modules() -> list[Any]:
    ours = ("fila.", "tests.simulation.")
    return [module for name, module in sys.modules.items() if name.startswith(ours)]


def _table_rows() -> list[tuple[dict[Any, Any], Any]]:
    tables = [
        value
        for module in _modules()
        for name, value in module.__dict__.items()
        if name.startswith("_ON_") and isinstance(value, dict)
    ]
    return [(table, key) for table in tables for key in table]
