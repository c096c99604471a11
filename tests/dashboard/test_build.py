"""The dashboard in the package is what its sources say, needs nothing else, and stays small."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from fila.edges.http.files import STATIC_DIR

SOURCE = Path(__file__).parents[2] / "dashboard"
GZIPPED_BYTES_MAX = 150_000


def test_the_build_was_made_from_these_sources() -> None:
    """Without Node: the build carries a digest of what it was made from (build.mjs)."""
    names = ["build.mjs", "package-lock.json", "package.json", "tsconfig.json"]
    names += [f"src/{path.name}" for path in (SOURCE / "src").iterdir()]
    digest = hashlib.sha256()
    for name in sorted(names):
        content = (SOURCE / name).read_bytes()
        digest.update(f"{name}\n{len(content)}\n".encode() + content)
    recorded = (STATIC_DIR / "sources.sha256").read_text().strip()
    assert recorded == digest.hexdigest(), "the dashboard's sources changed: run `make dashboard`"


def test_building_again_gives_the_same_bytes(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None or not (SOURCE / "node_modules" / "esbuild").is_dir():
        missing = "needs Node and its modules: make dashboard"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    subprocess.run([node, "build.mjs", str(tmp_path)], cwd=SOURCE, check=True, timeout=120)
    assert _contents(tmp_path) == _contents(STATIC_DIR)


def test_the_page_names_files_that_exist() -> None:
    page = (STATIC_DIR / "index.html").read_text()
    named = re.findall(r'(?:href|src)="(/(?:assets/)?[^"/]+\.\w+)"', page)
    assert len(named) == 3
    for name in named:
        assert (STATIC_DIR / name.removeprefix("/")).is_file(), name
    assert "://" not in page and "<style" not in page and "<script>" not in page


def test_the_whole_dashboard_is_small() -> None:
    packed = sum(len(gzip.compress(content)) for content in _contents(STATIC_DIR).values())
    assert packed < GZIPPED_BYTES_MAX


def test_the_lock_file_names_versions_and_digests_but_no_addresses() -> None:
    lock = json.loads((SOURCE / "package-lock.json").read_text())
    packages = {name: one for name, one in lock["packages"].items() if name}
    assert packages
    for name, one in packages.items():
        assert one["version"] and one["integrity"].startswith("sha512-"), name
        assert "resolved" not in one, name


def _contents(directory: Path) -> dict[str, bytes]:
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }
