"""A Debian package of the programs: the archive's content, where Debian expects it.

    python tools/binary/debian.py HOME --dist DIST      # HOME: the unpacked archive, fila-VERSION

Programs below /usr/lib/fila with links in /usr/bin, manual pages, completions, the systemd unit,
and /etc/fila/fila.toml, which an upgrade leaves as you changed it. Installing makes the user `fila`
and starts nothing; removing stops the broker and never touches /var/lib/fila.
"""

from __future__ import annotations

import argparse
import gzip
import os
import platform
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
MOVED = {
    "share/bash-completion": "usr/share/bash-completion",
    "share/zsh/site-functions": "usr/share/zsh/vendor-completions",
    "share/fish": "usr/share/fish",
}
# The glibc it was built with is the oldest it runs on.
CONTROL = """\
Package: fila
Version: {version}
Architecture: {machine}
Maintainer: The Fila project <https://github.com/faiscadev/fila/issues>
Section: net
Priority: optional
Installed-Size: {size_kib}
Depends: libc6 (>= {glibc}), adduser
Homepage: https://github.com/faiscadev/fila
Description: message broker with fair scheduling and per-key rate limits
 The broker (fila-server) and the command line (fila), which need no Python.
 .
 Tenants take turns, message by message; a noisy one does not delay the others.
"""
AFTER_INSTALL = """\
#!/bin/sh
set -e
if [ "$1" = configure ]; then
  getent passwd fila >/dev/null \\
    || adduser --system --group --no-create-home --home /var/lib/fila --quiet fila
  if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi
  if [ -z "$2" ]; then echo "start the broker: systemctl enable --now fila"; fi
fi
"""
BEFORE_REMOVAL = """\
#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then systemctl disable --now fila || true; fi
"""


def main() -> None:
    parser = argparse.ArgumentParser(description="Build a Debian package of the programs.")
    parser.add_argument("home", type=Path)
    parser.add_argument("--dist", type=Path, default=ROOT / "dist")
    arguments = parser.parse_args()
    print(build(arguments.home.resolve(), arguments.dist.resolve()))


def build(home: Path, dist: Path) -> Path:
    """The package of what is in `home`, below `dist`."""
    version = home.name.partition("-")[2]
    machine = MACHINES[platform.machine()]
    with tempfile.TemporaryDirectory(prefix="fila-deb-") as place:
        tree = Path(place) / "tree"
        fill(tree, home)
        size = sum(one.stat().st_size for one in tree.rglob("*") if not one.is_symlink())
        control = CONTROL.format(
            version=debian_version(version),
            machine=machine,
            glibc=platform.libc_ver()[1],
            size_kib=size // 1024,
        )
        scripts = {"postinst": AFTER_INSTALL, "prerm": BEFORE_REMOVAL}
        write(tree / "DEBIAN" / "control", control)
        write(tree / "DEBIAN" / "conffiles", "/etc/fila/fila.toml\n")
        for name, script in scripts.items():
            write(tree / "DEBIAN" / name, script, 0o755)
        dist.mkdir(parents=True, exist_ok=True)
        package = dist / f"fila_{debian_version(version)}_{machine}.deb"
        command = ["dpkg-deb", "--build", "--root-owner-group", "-Zxz", str(tree), str(package)]
        epoch = os.environ.get("SOURCE_DATE_EPOCH", "0")
        told = {**os.environ, "SOURCE_DATE_EPOCH": epoch}
        subprocess.run(command, check=True, env=told, stdout=subprocess.DEVNULL)
    return package


def fill(tree: Path, home: Path) -> None:
    left_out = shutil.ignore_patterns("bin", "share", "deploy", "licences", "LICENSE", "README.md")
    shutil.copytree(home, tree / "usr/lib/fila", symlinks=True, ignore=left_out)
    (tree / "usr/bin").mkdir()
    for name in ("fila", "fila-server"):
        (tree / "usr/bin" / name).symlink_to(f"../lib/fila/{name}")
    for source, place in MOVED.items():
        shutil.copytree(home / source, tree / place)
    for page in (home / "share/man").rglob("*.1"):
        packed = tree / "usr/share/man/man1" / f"{page.name}.gz"
        packed.parent.mkdir(parents=True, exist_ok=True)
        packed.write_bytes(gzip.compress(page.read_bytes(), mtime=0))
    about = tree / "usr/share/doc/fila"
    shutil.copytree(home / "licences", about / "licences")
    shutil.copy(home / "LICENSE", about / "copyright")
    unit = (home / "deploy/fila.service").read_text()
    write(tree / "lib/systemd/system/fila.service", unit.replace("/usr/local/bin/", "/usr/bin/"))
    write(tree / "etc/fila/fila.toml", (home / "deploy/fila.toml").read_text())


def debian_version(version: str) -> str:
    """0.2.0.dev1 comes before 0.2.0: Debian sorts what follows a tilde first."""
    return re.sub(r"\.?(dev|rc|a|b)(?=\d)", r"~\1", version, count=1)


def write(path: Path, text: str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


if __name__ == "__main__":
    main()
