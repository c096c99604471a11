"""What the Python distribution is called, how its extras are installed, and which form of it runs.

The import package is `fila`; on the Python index that name belongs to somebody else.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

NAME: Final = "fila-broker"


def requirement(*extras: str) -> str:
    """What to ask an installer for: `fila-broker[server]`."""
    return f"{NAME}[{','.join(extras)}]" if extras else NAME


def install(*extras: str) -> str:
    """The command that installs it: `pip install 'fila-broker[server]'`."""
    return f"pip install '{requirement(*extras)}'" if extras else f"pip install {NAME}"


def form() -> str:
    """`compiled` where the hot modules were turned into C (see setup.py), else `pure`."""
    spec = find_spec("fila.wire.layouts")
    return "compiled" if spec and spec.origin and spec.origin.endswith(".so") else "pure"
