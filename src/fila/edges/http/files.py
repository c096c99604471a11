"""The dashboard's own files, read once at start: no path of a request ever reaches the disk."""

from __future__ import annotations

import mimetypes
from pathlib import Path
from typing import Final

from fila.edges.http.message import HttpError, Response

STATIC_DIR: Final = Path(__file__).with_name("static")
_HASHED: Final = "/assets/"  # names that change with their content
_FOR_EVER: Final = ("Cache-Control", "public, max-age=31536000, immutable")
_ASK_AGAIN: Final = ("Cache-Control", "no-cache")


class Files:
    def __init__(self, directory: Path = STATIC_DIR) -> None:
        self._files: dict[str, Response] = {}
        for path in sorted(directory.rglob("*")):
            if path.is_file() and not path.name.startswith("."):
                name = "/" + path.relative_to(directory).as_posix()
                kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
                if kind.startswith("text/") or kind.endswith(("javascript", "json")):
                    kind += "; charset=utf-8"
                age = _FOR_EVER if name.startswith(_HASHED) else _ASK_AGAIN
                self._files[name] = Response(200, path.read_bytes(), kind, (age,))

    def find(self, path: str) -> Response:
        """A file, or the page for a path without a dot: the dashboard knows its own paths."""
        found = self._files.get(path)
        if found is None and "." not in path.rpartition("/")[2]:
            found = self._files.get("/index.html")
        if found is None:
            raise HttpError(404, "NotFound", "no such path")
        return found
