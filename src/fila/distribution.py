"""What the Python distribution is called, and how its extras are installed.

The import package is `fila`; on the Python index that name belongs to somebody else.
"""

from __future__ import annotations

from typing import Final

NAME: Final = "fila-broker"


def requirement(*extras: str) -> str:
    """What to ask an installer for: `fila-broker[server]`."""
    return f"{NAME}[{','.join(extras)}]" if extras else NAME


def install(*extras: str) -> str:
    """The command that installs it: `pip install 'fila-broker[server]'`."""
    return f"pip install '{requirement(*extras)}'" if extras else f"pip install {NAME}"
