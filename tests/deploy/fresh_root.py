"""From nothing to the fair-scheduling demo, on a fresh Debian: wheel, archive, package, container.

    make binary                                       # makes the wheels, too
    python -m tests.deploy.fresh_root wheel           # pip in a root with Python
    python -m tests.deploy.fresh_root archive         # install.sh in a root
    python -m tests.deploy.fresh_root package         # apt-get install ./fila_….deb in a root
    python -m tests.deploy.fresh_root container       # deploy/Dockerfile, built and run by buildah

Each makes a root file system with debootstrap (or takes a copy of `--root DIR`), types what the
documentation says into it, and counts the strokes: less than two minutes' worth. What is typed is
what people type; only where it comes from is told by the environment, since nothing is published.
Needs root, debootstrap, and for the container buildah. Not part of `make test`: it takes minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.deploy.release import ROOT

STROKES_PER_S = 4.0  # nobody types fast what they read off a page
TYPING_S_MAX = 120.0
SUITE = "bookworm"
# With the headers that the image `python:3.11-slim` has, too.
PACKAGES = "python3,python3-venv,python3-dev,ca-certificates,curl,adduser"
BASE = "docker.io/library/python:3.11-slim-bookworm"  # what deploy/Dockerfile begins with
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def main() -> int:
    parser = argparse.ArgumentParser(description="From a fresh root to the demo.")
    parser.add_argument("way", choices=sorted(WAYS))
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="where `make binary` was")
    parser.add_argument("--root", type=Path, help="a root to copy, instead of debootstrap")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fila-fresh-") as place:
        root = Path(place) / "root"
        if arguments.root:
            subprocess.run(["cp", "-a", str(arguments.root), str(root)], check=True)
        else:
            bootstrap(root)
        surroundings(root)
        WAYS[arguments.way](root, arguments.dist.resolve())
    return 0


def bootstrap(root: Path) -> None:
    """A Debian of today, from the mirror this machine uses."""
    told = run(
        ["apt-get", "indextargets", "--format", "$(SITE) $(RELEASE)", "Created-By: Packages"]
    )
    site = next(line.split()[0] for line in told.splitlines() if line.split()[1] == SUITE)
    run(["debootstrap", "--variant=minbase", f"--include={PACKAGES}", SUITE, str(root), site])


def mirror() -> dict[str, str]:
    """Where packages come from, as this machine is told."""
    return {name: os.environ[name] for name in ("PIP_CERT", "PIP_INDEX_URL") if name in os.environ}


def surroundings(root: Path) -> None:
    """Names and certificates as this machine has them."""
    for path in (Path("/etc/resolv.conf"), Path("/etc/hosts"), CERTIFICATES):
        if path.exists():
            (root / path.relative_to("/")).write_bytes(path.read_bytes())


class Typist:
    """Types commands and counts the strokes."""

    def __init__(self, say: Callable[[str], str]) -> None:
        self._say = say
        self._typed = ""
        self._began = time.monotonic()

    def type(self, command: str) -> str:
        began = time.monotonic()
        said = self._say(command)
        self._typed += command + "\n"
        print(f"$ {command}    # {time.monotonic() - began:.1f} s", flush=True)
        return said

    def done(self, demo: str) -> None:
        """The demo was seen, and it did not take long to type."""
        print(demo.strip())
        assert "Fila after" in demo, demo
        typing_s = len(self._typed) / STROKES_PER_S
        took_s = time.monotonic() - self._began
        told = {"strokes": len(self._typed), "typing_s": round(typing_s), "took_s": round(took_s)}
        print(json.dumps(told))
        assert typing_s < TYPING_S_MAX


@contextmanager
def inside(root: Path, environment: dict[str, str]) -> Iterator[Typist]:
    """A shell in the root: its own mounts, none of this machine's variables."""
    variables = {"HOME": "/root", "PATH": PATH, "LANG": "C.UTF-8", **mirror(), **environment}
    pairs = [f"{name}={value}" for name, value in variables.items()]
    mounts = f"mount --rbind /proc {root}/proc && mount --rbind /dev {root}/dev"

    def say(command: str) -> str:
        enter = f'{mounts} && exec env -i "$@"'
        chroot = ["chroot", str(root), "bash", "-euo", "pipefail", "-c", f"cd /root; {command}"]
        return run(["unshare", "--mount", "bash", "-c", enter, "bash", *pairs, *chroot])

    yield Typist(say)


def wheel(root: Path, dist: Path) -> None:
    (root / "dist").mkdir()
    for path in dist.glob("*.whl"):
        shutil.copy(path, root / "dist")
    shutil.copy(ROOT / "constraints.txt", root / "dist")
    places = {"PIP_FIND_LINKS": "/dist", "PIP_CONSTRAINT": "/dist/constraints.txt"}
    with inside(root, places) as typist:
        typist.type("python3 -m venv fila")
        typist.type("fila/bin/pip install -q 'fila-broker[server]'")
        assert "compiled" in typist.type("fila/bin/fila version --verbose")
        typist.done(typist.type("fila/bin/fila demo"))


def archive(root: Path, dist: Path) -> None:
    (path,) = dist.glob("fila-*-linux-*.tar.gz")
    version = path.name.split("-")[1]
    releases = root / "releases"
    for place in (releases / "latest" / "download", releases / "download" / f"v{version}"):
        place.mkdir(parents=True)
        for each in (path, dist / "SHA256SUMS", ROOT / "install.sh"):
            shutil.copy(each, place)
    # No Python of its own is used: there is none on this path.
    for name in (root / "usr" / "bin").glob("python3*"):
        name.unlink()
    with inside(root, {"FILA_RELEASES": "file:///releases"}) as typist:
        typist.type('curl -fsSL "$FILA_RELEASES/latest/download/install.sh" | sh')
        typist.done(typist.type("fila demo"))


def package(root: Path, dist: Path) -> None:
    (path,) = dist.glob("fila_*.deb")
    shutil.copy(path, root / "root" / "fila.deb")
    for name in (root / "usr" / "bin").glob("python3*"):
        name.unlink()
    with inside(root, {"DEBIAN_FRONTEND": "noninteractive"}) as typist:
        typist.type("dpkg -i fila.deb")
        demo = typist.type("fila demo")
        run(
            [
                "chroot",
                str(root),
                "fila-server",
                "--config",
                "/etc/fila/fila.toml",
                "--check-config",
            ]
        )
        assert run(["chroot", str(root), "id", "-u", "fila"]).strip() != "0"
        assert run(["chroot", str(root), "dpkg", "--verify", "fila"]) == ""
        run(["chroot", str(root), "dpkg", "--purge", "fila"])
        left = [
            one for one in ("usr/bin/fila", "usr/lib/fila", "etc/fila") if (root / one).exists()
        ]
        assert left == []
        typist.done(demo)


def container(root: Path, dist: Path) -> None:
    """The Dockerfile as it stands, on a base that is the fresh root with Python in it."""
    (root / "usr" / "local" / "bin" / "python").symlink_to("/usr/bin/python3")
    store = root.parent / "store"
    buildah = ["buildah", "--storage-driver", "vfs", "--root", str(store / "root")]
    buildah += ["--runroot", str(store / "run")]
    base = run([*buildah, "from", "scratch"]).strip()
    run([*buildah, "add", "--quiet", base, str(root), "/"])
    run([*buildah, "config", "--env", f"PATH={PATH}", base])
    run([*buildah, "commit", "--quiet", base, BASE])
    shutil.rmtree(root)
    arguments = ["--isolation", "chroot", "--pull=never", "--format", "docker"]
    for name, value in mirror().items():
        arguments += ["--env", f"{name}={value}"]
    began = time.monotonic()
    run(
        [*buildah, "bud", *arguments, "--file", "deploy/Dockerfile", "--tag", "fila", "."], cwd=ROOT
    )
    print(f"built in {time.monotonic() - began:.0f} s")
    try_image(buildah)


def try_image(buildah: list[str]) -> None:
    """What `docker run` and `docker exec` would do: the image's user, environment and commands."""
    made = json.loads(run([*buildah, "inspect", "--type", "image", "fila"]))["Docker"]["config"]
    assert made["User"] == "10001:10001" and list(made["Volumes"]) == ["/var/lib/fila"], made
    assert set(made["ExposedPorts"]) == {"5555/tcp", "8080/tcp"}, made
    box = run([*buildah, "from", "--pull=never", "fila"]).strip()
    enter = [*buildah, "run", "--isolation", "chroot", box, "--"]
    assert run([*enter, "id", "-u"]).strip() == "10001"
    server = subprocess.Popen([*enter, *made["Cmd"]], stderr=subprocess.PIPE, text=True)
    check = made["Healthcheck"]["Test"][1:]
    try:
        for _ in range(120):
            if subprocess.run([*enter, *check], capture_output=True).returncode == 0:
                break
            time.sleep(0.5)
        else:
            raise AssertionError("the health check never passed")
        typist = Typist(lambda command: run([*enter, *command.split()]))
        about = json.loads(typist.type("fila version --verbose --json"))
        assert about["form"] == "compiled" and about["server"]["version"] == about["version"]
        demo = typist.type("fila demo")
        began = time.monotonic()
        run(
            [
                *enter,
                "sh",
                "-c",
                "kill -TERM $(cat /proc/[0-9]*/stat | awk '/fila-server/{print $1}')",
            ]
        )
        assert server.wait(10) == 0
        print(f"stopped in {time.monotonic() - began:.1f} s")
        typist.done(demo)
    finally:
        if server.poll() is None:
            server.kill()


def run(command: list[str], cwd: Path | None = None) -> str:
    ran = subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=3600)
    assert ran.returncode == 0, f"{command}: {ran.stdout[-3000:]}{ran.stderr[-3000:]}"
    return ran.stdout


WAYS = {"wheel": wheel, "archive": archive, "package": package, "container": container}


if __name__ == "__main__":
    sys.exit(main())
