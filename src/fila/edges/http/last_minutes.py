"""What the pipeline says of the last minutes: the document it leaves in the journal's directory.

The broker computes none of it. `fila pipeline run` replaces the file after each batch; this reads
it away from the loop, and no more of it than such a document can have.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, Final

NAME: Final = "_live.json"
BYTES_MAX: Final = 256 * 1024


class LastMinutes:
    def __init__(self, journal: Path | None) -> None:
        self._path = None if journal is None else journal / NAME

    async def read(self) -> dict[str, Any]:
        """`found` is null if nothing was left there; `journal` says whether anything could be."""
        found = None
        if self._path is not None:
            found = await asyncio.to_thread(_document, self._path)
        return {"journal": self._path is not None, "found": found}


def _document(path: Path) -> Any:
    try:
        with path.open("rb") as file:
            text = file.read(BYTES_MAX + 1)
        return json.loads(text) if len(text) <= BYTES_MAX else None
    except (OSError, ValueError):
        return None  # not there, or not ours
