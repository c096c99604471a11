"""Which form of the package is measured: the sources as they are, or the compiled build.

The choice travels in the environment, so that the server and every load process take the same one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from bench.record import ROOT

_CHOICE = "BENCH_COMPILED"


def build() -> None:
    """Make the compiled form if it is not there or older than the sources."""
    subprocess.run(["make", "--no-print-directory", "compile"], cwd=ROOT, check=True)


def choose_compiled() -> None:
    """Measure the compiled form, wherever nothing else is said."""
    build()
    os.environ[_CHOICE] = "1"


def compiled() -> bool:
    return bool(os.environ.get(_CHOICE))


def package(of_compiled: bool | None = None) -> Path:
    """The directory to import `fila` from."""
    if not (compiled() if of_compiled is None else of_compiled):
        return ROOT / "src"
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return ROOT / ".venv-compiled" / "lib" / version / "site-packages"
