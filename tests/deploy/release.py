"""A directory of releases as the workflow publishes them, with programs that are shell scripts.

FILA_RELEASES=file:///…/releases      latest/download/SHA256SUMS
                                      download/v0.1.0/SHA256SUMS, fila-0.1.0-linux-amd64.tar.gz
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
INSTALL = ROOT / "install.sh"
MACHINE = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
# Beyond what the shell has in itself.
TOOLS = (
    "awk", "cat", "cp", "curl", "find", "gzip", "head", "ln", "mkdir", "mktemp", "mv", "readlink",
    "rm", "sed", "sha256sum", "sh", "tar", "uname",
)  # fmt: skip


def archive_name(version: str, system: str = "linux") -> str:
    return f"fila-{version}-{system}-{MACHINE}.tar.gz"


def publish(releases: Path, version: str, *, says: str | None = None) -> Path:
    """A release, now the latest; `says` is the version its program tells."""
    home = releases.parent / "build" / f"fila-{version}"
    shutil.rmtree(home, ignore_errors=True)
    for name in ("bin/fila", "bin/fila-server", "share/man/man1/fila.1"):
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'#!/bin/sh\necho "{path.name} {says or version}"\n')
        path.chmod(0o755)
    place = releases / "download" / f"v{version}"
    place.mkdir(parents=True, exist_ok=True)
    archive = place / archive_name(version)
    subprocess.run(["tar", "-czf", archive, "-C", home.parent, home.name], check=True)
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    sums = f"{'0' * 64}  install.sh\n{digest}  {archive.name}\n"
    (place / "SHA256SUMS").write_text(sums)
    latest = releases / "latest" / "download"
    latest.mkdir(parents=True, exist_ok=True)
    (latest / "SHA256SUMS").write_text(sums)
    return archive


def tools(place: Path, *without: str, **instead: str) -> Path:
    """A directory to be the whole PATH: what the script needs, without some of it; `instead` gives
    a tool's name and the shell script that stands in for it."""
    place.mkdir()
    for name in TOOLS:
        if name not in without:
            found = shutil.which(name)
            assert found or name == "curl", f"{name} is needed for this test"
            if found:
                (place / name).symlink_to(found)
    for name, script in instead.items():
        (place / name).unlink(missing_ok=True)
        (place / name).write_text(f"#!/bin/sh\n{script}\n")
        (place / name).chmod(0o755)
    return place


def everything(place: Path) -> dict[str, str]:
    """What is below a directory: names, and what they hold or lead to."""
    return {
        str(path.relative_to(place)): os.readlink(path) if path.is_symlink() else path.read_text()
        for path in sorted(place.rglob("*"))
        if path.is_symlink() or path.is_file()
    }
