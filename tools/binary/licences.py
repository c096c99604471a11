"""The licence texts of what is inside the archive, from what is installed where it was built."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from engines import DISTRIBUTIONS

WORDS = ("licen", "copying", "notice")  # how such a file's name begins, in any case


def write(place: Path, libraries: list[Path]) -> list[str]:
    """One file for each part, and a list of them; gives back the parts without a text."""
    place.mkdir(parents=True)
    parts = {f"{name} {metadata.version(name)}": list(_of(name)) for name in DISTRIBUTIONS}
    parts[f"PyInstaller {metadata.version('pyinstaller')} (its loader)"] = list(_of("pyinstaller"))
    parts[f"Python {platform.python_version()}"] = _of_python()
    for package, text in _of_libraries(libraries):
        parts.setdefault(package, []).append(text)
    lines = ["What is inside this archive, and under which licence.\n"]
    for part, texts in parts.items():
        name = part.partition(" ")[0].lower() + ".txt"
        (place / name).write_text("\n\n".join(texts) or _expression(part.partition(" ")[0]))
        lines.append(f"{part}: {name}")
    (place / "README.txt").write_text("\n".join(lines) + "\n")
    return [part for part, texts in parts.items() if not texts]


def _of(distribution: str) -> Iterator[str]:
    for one in metadata.files(distribution) or []:
        if ".dist-info" in str(one) and one.name.lower().startswith(WORDS):
            yield Path(str(one.locate())).read_text(errors="replace")


def _of_python() -> list[str]:
    major, minor = sys.version_info[:2]
    places = [
        Path(sys.base_prefix) / f"lib/python{major}.{minor}/LICENSE.txt",
        Path(f"/usr/share/doc/python{major}.{minor}/copyright"),
    ]
    return [place.read_text() for place in places if place.is_file()][:1]


def _of_libraries(libraries: list[Path]) -> Iterator[tuple[str, str]]:
    """Of what came from the system: OpenSSL, zlib and the like, where dpkg knows them."""
    if shutil.which("dpkg") is None:
        return
    for library in libraries:
        told = subprocess.run(["dpkg", "-S", f"*/{library.name}"], capture_output=True, text=True)
        package = told.stdout.partition(":")[0]
        text = Path(f"/usr/share/doc/{package}/copyright")
        if package and text.is_file():
            yield package, text.read_text(errors="replace")


def _expression(distribution: str) -> str:
    """What its metadata says, where no text is installed."""
    about = metadata.metadata(distribution).json
    told = about.get("license_expression") or about.get("license") or "unknown"
    return f"{distribution}: {told}. Its distribution holds no text.\n"
