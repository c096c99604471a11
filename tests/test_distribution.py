"""The distribution has one name, and nothing tells people to install somebody else's package."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

from fila import distribution

ROOT = Path(__file__).parents[1]
# `pip install fila`, `fila[server]`, `pip install "fila"`, but not `fila-broker` or `fila_client`.
STRANGER = re.compile(r"""pip3? install (-\S+ )*['"]?fila(?![-\w./])|(?<![-\w@/.])fila\[[a-z]""")


def test_the_project_has_the_name_that_the_source_knows() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["name"] == distribution.NAME
    assert distribution.install() == "pip install fila-broker"
    assert distribution.install("server", "spark") == "pip install 'fila-broker[server,spark]'"


def test_no_text_tells_people_to_install_a_strangers_package() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True
    ).stdout
    found = []
    for name in listed.decode().split("\0"):
        path = ROOT / name
        if not name or path == Path(__file__) or path.suffix in {".png", ".svg"}:
            continue
        if not path.is_file():
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            if STRANGER.search(line):
                found.append(f"{name}:{number}: {line.strip()[:100]}")
    assert found == []
    assert STRANGER.search("pip install fila") and STRANGER.search("install 'fila[server]'")
