"""The archive with programs, where there is nothing: a root with glibc in it, no Python, no shell.

    make binary && python -m tests.deploy.empty_root dist/fila-*-linux-amd64.tar.gz

Runs `fila` and `fila-server` of the archive in that root and the fair-scheduling demo with them,
then installs the archive by install.sh as a release and runs the demo again from there. Measures
start-up, size and memory, and fails above what is promised. On a machine that is busy with other
things the processor's time counts instead of the clock's. Root, or user namespaces, are needed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.deploy.release import INSTALL

READY_S_MAX = 1.0  # from start to an accepted connection
HELP_S_MAX = 0.25
UNPACKED_BYTES_MAX = 80_000_000
# Into /lib, where the loader looks by itself.
GLIBC = ("libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libutil.so.1")
PLACES = ("/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/lib64", "/usr/lib64", "/usr/lib")
LOADERS = ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1")
TRIES = 5  # the best of them counts


def main() -> int:
    parser = argparse.ArgumentParser(description="Try the archive in an empty root.")
    parser.add_argument("archive", type=Path)
    archive = parser.parse_args().archive.resolve()
    with tempfile.TemporaryDirectory(prefix="fila-root-") as place:
        root = Path(place) / "root"
        home = prepare(root, archive)
        inside = [*changing_root(root), f"/{home}/bin/"]
        told = in_empty_root(inside, root)
        told["unpacked_mb"] = size_of(root / home) / 1e6
        told["archive_mb"] = archive.stat().st_size / 1e6
        told["installed"] = by_install_script(Path(place), archive)
    print(json.dumps(told, indent=2))
    busy = os.getloadavg()[0] > (os.cpu_count() or 1)
    clock = "cpu_s" if busy else "s"
    faults = [
        f"{name} is {told[name]:.3f}, at most {most} is promised"
        for name, most in (
            (f"ready_{clock}", READY_S_MAX),
            (f"help_{clock}", HELP_S_MAX),
            ("unpacked_mb", UNPACKED_BYTES_MAX / 1e6),
        )
        if told[name] > most
    ]
    print("\n".join(faults) or "all as promised")
    return 1 if faults else 0


def prepare(root: Path, archive: Path) -> str:
    """The root: glibc, devices, a place for temporary files, the archive, and nothing else."""
    for name in ("lib64", "lib", "dev", "tmp", "proc", "data"):
        (root / name).mkdir(parents=True)
    for loader in filter(os.path.exists, LOADERS):
        shutil.copy(loader, root / loader[1:])
    for name in GLIBC:
        found = next((Path(at) / name for at in PLACES if (Path(at) / name).exists()), None)
        if found is not None:
            (root / "lib" / name).write_bytes(found.read_bytes())
            (root / "lib" / name).chmod(0o755)
    for name, minor in (("null", 3), ("urandom", 9)):
        try:
            os.mknod(root / "dev" / name, 0o666 | 0o020000, os.makedev(1, minor))
        except PermissionError:  # without root an empty file has to do
            (root / "dev" / name).touch()
    with tarfile.open(archive) as tar:
        tar.extractall(root, filter="tar")
    (home,) = [one.name for one in root.iterdir() if one.name.startswith("fila-")]
    return home


def changing_root(root: Path) -> list[str]:
    """Into the root, with /proc as every container has it, and without any variable of ours."""
    chroot = shutil.which("chroot", path="/usr/sbin:/usr/bin:/sbin:/bin")
    enter = f'mount --rbind /proc {root}/proc && exec env -i {chroot} {root} "$@"'
    unshare = ["unshare", "--mount"]
    if os.geteuid() != 0:
        unshare += ["--user", "--map-root-user"]
    return [*unshare, "sh", "-c", enter, "sh"]


def in_empty_root(inside: list[str], root: Path) -> dict[str, Any]:
    *before, bin = inside
    assert subprocess.run([*before, "/bin/sh"], capture_output=True).returncode != 0
    for name in ("fila", "fila-server"):
        told = run([*before, bin + name, "--version"])
        assert told.startswith(f"{name} "), told
    verbose = json.loads(run([*before, bin + "fila", "version", "--verbose", "--json"]))
    assert verbose["form"] == "compiled", verbose
    helps = [timed([*before, bin + "fila", "--help"]) for _ in range(TRIES)]
    starts = [started(before, bin, root, number) for number in range(TRIES)]
    demo = json.loads(run([*before, bin + "fila", "demo", "--json"]))
    return {
        "version": verbose["version"],
        "help_s": min(wall for wall, _ in helps),
        "help_cpu_s": min(cpu for _, cpu in helps),
        "ready_s": min(wall for wall, _, _ in starts),
        "ready_cpu_s": min(cpu for _, cpu, _ in starts),
        "memory_mb": max(kib for _, _, kib in starts) / 1000,
        "demo_fifo_last": max(one["fifo"]["delivered"]["last"] for one in quiet(demo)),
        "demo_fila_last": max(one["fila"]["delivered"]["last"] for one in quiet(demo)),
    }


def quiet(demo: dict[str, Any]) -> list[dict[str, Any]]:
    """All tenants but the noisy one."""
    return list(demo["tenants"][1:])


def started(before: list[str], bin: str, root: Path, number: int) -> tuple[float, float, int]:
    """A broker: seconds until it accepts a connection, by the clock and of the processor, and its
    resident memory then, in KiB."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    listen = ["--listen", f"127.0.0.1:{port}", "--data-dir", f"/data/{number}"]
    log = root.parent / "server.log"
    began = time.monotonic()
    with log.open("wb") as output:
        server = subprocess.Popen(
            [*before, bin + "fila-server", *listen], stdout=output, stderr=output
        )
    try:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert server.poll() is None, log.read_text()
                assert time.monotonic() - began < 30, log.read_text()
                time.sleep(0.005)
        took_s = time.monotonic() - began
        fields = Path(f"/proc/{server.pid}/stat").read_text().rpartition(") ")[2].split()
        cpu_s = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        status = Path(f"/proc/{server.pid}/status").read_text()
        resident = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        assert "answers in" in run([*before, bin + "fila", "--addr", f"127.0.0.1:{port}", "ping"])
    finally:
        server.send_signal(signal.SIGTERM)
        code = server.wait(10)
    assert code == 0, log.read_text()
    return took_s, cpu_s, int(resident.split()[1])


def by_install_script(place: Path, archive: Path) -> str:
    """install.sh and a release with this archive: two commands to the demo."""
    version = archive.name.split("-")[1]
    release = place / "releases" / "download" / f"v{version}"
    release.mkdir(parents=True)
    shutil.copy(archive, release)
    sums = subprocess.run(["sha256sum", archive.name], cwd=release, capture_output=True, check=True)
    (release / "SHA256SUMS").write_bytes(sums.stdout)
    latest = place / "releases" / "latest" / "download"
    latest.mkdir(parents=True)
    shutil.copy(release / "SHA256SUMS", latest)
    surroundings = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(place),
        "FILA_RELEASES": f"file://{place}/releases",
    }
    run(["sh", str(INSTALL), "--prefix", f"{place}/local"], surroundings)
    bare = {"PATH": f"{place}/local/bin", "HOME": str(place)}
    told = run([f"{place}/local/bin/fila", "demo"], bare)
    assert "Fila after" in told, told
    return told.strip().splitlines()[-1]


def run(command: list[str], environment: dict[str, str] | None = None) -> str:
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert ran.returncode == 0, f"{command}: {ran.stdout}{ran.stderr}"
    return ran.stdout


def timed(command: list[str]) -> tuple[float, float]:
    """How long it takes, by the clock and of the processor."""
    began, before = time.monotonic(), os.times()
    run(command)
    took_s, after = time.monotonic() - began, os.times()
    cpu_s = after.children_user + after.children_system
    return took_s, cpu_s - before.children_user - before.children_system


def size_of(place: Path) -> int:
    return sum(one.stat().st_size for one in place.rglob("*") if not one.is_symlink())


if __name__ == "__main__":
    sys.exit(main())
