"""Which Java runs Spark: found in JAVA_HOME, on the PATH or among the system's, newest last resort.

Owns the search and the words for its failure. Never starts Spark.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

VERSION_MIN: Final = 17
HOW_TO_INSTALL: Final = (
    "install one: `apt-get install openjdk-17-jre-headless` (Debian, Ubuntu), "
    "`dnf install java-17-openjdk-headless` (Fedora, RHEL), `brew install openjdk@17` (macOS); "
    "or set JAVA_HOME to one that is there"
)
_SYSTEM_HOMES: Final = (Path("/usr/lib/jvm"), Path("/Library/Java/JavaVirtualMachines"))
_ASK_S: Final = 20.0


class Java(NamedTuple):
    home: Path
    version: int


class JavaMissing(Exception):  # noqa: N818  says what is the case, as the others do
    """No Java that can run Spark."""


def find_java(
    environ: Mapping[str, str] | None = None, homes: tuple[Path, ...] = _SYSTEM_HOMES
) -> Java:
    """The first Java of version 17 or newer; JavaMissing says what was found instead."""
    seen = []
    for home in _candidates(os.environ if environ is None else environ, homes):
        version = version_of(home)
        if version >= VERSION_MIN:
            return Java(home, version)
        if version:
            seen.append(f"Java {version} in {home}")
    found = f"found only {', '.join(seen)}" if seen else "no Java was found"
    raise JavaMissing(f"Spark needs Java {VERSION_MIN} or newer; {found}. Please {HOW_TO_INSTALL}.")


def version_of(home: Path) -> int:
    """The major version of the Java in this directory; 0 if there is none that runs."""
    try:
        done = subprocess.run(
            [home / "bin" / "java", "-version"],
            capture_output=True,
            text=True,
            timeout=_ASK_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return 0
    found = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(found[1]) if found else 0


def _candidates(environ: Mapping[str, str], homes: tuple[Path, ...]) -> Iterator[Path]:
    if named := environ.get("JAVA_HOME"):
        yield Path(named)
    if on_path := shutil.which("java", path=environ.get("PATH", "")):
        yield Path(on_path).resolve().parent.parent
    for folder in homes:
        for home in sorted(folder.glob("*")):
            if (home / "bin" / "java").exists():
                yield home
            elif (home / "Contents" / "Home" / "bin" / "java").exists():
                yield home / "Contents" / "Home"


def main() -> int:
    """Say which Java there is; set-up asks this way."""
    try:
        java = find_java()
    except JavaMissing as missing:
        sys.stderr.write(f"{missing}\n")
        return 1
    sys.stdout.write(f"Java {java.version} in {java.home}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
