"""Programs that tests run and pip does not bring: `make tools` builds them into `.tools`.

They come from the Go module proxy. Go is found, or installed by apt where that is possible. One
that is too old (Debian 12 has 1.19) fetches a newer one from the same proxy, for this alone.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[1] / ".tools"
PROGRAMS = {
    "h2spec": "github.com/summerwind/h2spec/cmd/h2spec",
    "grpcurl": "github.com/fullstorydev/grpcurl/cmd/grpcurl",
    "actionlint": "github.com/rhysd/actionlint/cmd/actionlint",
    "chart": "./chart",  # our own, from tests/deploy/chart
}
# One module for all, so that the versions below them stay what they are. A Go from 1.21 on fetches
# the toolchain this asks for by itself; an older one is told to.
MODULE = """module tools

go 1.25.0

require (
\tgithub.com/Masterminds/sprig/v3 v3.3.0
\tgithub.com/fatih/color v1.18.0
\tgithub.com/fullstorydev/grpcurl v1.9.4
\tgithub.com/rhysd/actionlint v1.7.12
\tgithub.com/spf13/cobra v1.9.1
\tgithub.com/summerwind/h2spec v2.2.1+incompatible
\tsigs.k8s.io/yaml v1.4.0
)
"""
SWITCHES = 21
TOOLCHAIN = "golang.org/toolchain@v0.0.1-go1.25.0"
HOW = (
    "h2spec, grpcurl, actionlint and chart are built with Go, which is missing: install it "
    "(apt-get install golang-go, or https://go.dev/dl), then `make tools`"
)


def tool(name: str) -> str:
    """Where the program is. Without it the test is skipped, but never in CI."""
    found = shutil.which(name, path=str(TOOLS / "bin")) or shutil.which(name)
    if found is not None:
        return found
    if os.environ.get("CI"):
        pytest.fail(f"{name} is not there: run `make tools`")
    pytest.skip(f"{name} is not there: `make tools` builds it")


def main() -> int:
    if all((TOOLS / "bin" / name).exists() for name in PROGRAMS):
        return 0
    go = shutil.which("go") or _installed()
    if go is None:
        print(HOW)
        return 1 if os.environ.get("CI") else 0
    print("building h2spec, grpcurl, actionlint and chart …", flush=True)
    TOOLS.mkdir(exist_ok=True)
    if _minor(go) < SWITCHES:
        go = _newer(go)
    (TOOLS / "bin").mkdir(parents=True, exist_ok=True)
    (TOOLS / "go.mod").write_text(MODULE)
    (TOOLS / "chart").mkdir(exist_ok=True)
    shutil.copy(Path(__file__).parent / "deploy" / "chart" / "main.go", TOOLS / "chart")
    _run([go, "build", "-mod=mod", "-o", "bin/", *PROGRAMS.values()])
    return 0


def _installed() -> str | None:
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        return None
    print("installing Go …", flush=True)
    subprocess.run(["apt-get", "update", "-qq"], stdout=subprocess.DEVNULL, check=False)
    install = ["apt-get", "install", "-y", "-qq", "golang-go"]
    subprocess.run(install, stdout=subprocess.DEVNULL, check=False)
    return shutil.which("go")


def _minor(go: str) -> int:
    found = re.match(r"go1\.(\d+)", _run([go, "env", "GOVERSION"]))
    return int(found[1]) if found else 0


def _newer(go: str) -> str:
    """A Go of our own, unpacked by the old one as if it were a module."""
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    named = f"{TOOLCHAIN}.{platform.system().lower()}-{machine}"
    modules = TOOLS / "modules"
    told = _run([go, "mod", "download", "-json", named], GOMODCACHE=str(modules))
    root = Path(json.loads(told)["Dir"])
    for program in (*root.glob("bin/*"), *root.glob("pkg/tool/*/*")):
        program.chmod(0o755)
    return str(root / "bin" / "go")


def _run(command: list[str], **environ: str) -> str:
    own = os.environ | {"GOFLAGS": "-modcacherw", "GOTOOLCHAIN": "auto"} | environ
    done = subprocess.run(command, env=own, cwd=TOOLS, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr[-2_000:]}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
