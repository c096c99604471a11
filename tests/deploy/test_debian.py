"""The Debian package: what is in it, where it puts it, and what it leaves alone."""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.deploy.release import ROOT

pytestmark = pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="needs dpkg-deb")
MAKER = runpy.run_path(str(ROOT / "tools" / "binary" / "debian.py"))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """What the archive holds, with programs that are shell scripts."""
    home = tmp_path / "fila-0.2.0.dev3"
    for name in (
        *("fila", "fila-server", "_internal/libz.so.1", "licences/python.txt"),
        *("share/man/man1/fila.1", "share/bash-completion/completions/fila"),
        *("share/zsh/site-functions/_fila", "share/fish/vendor_completions.d/fila.fish"),
    ):
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\necho {path.name} 0.2.0\n")
        path.chmod(0o755)
    (home / "bin").mkdir()
    (home / "bin/fila").symlink_to("../fila")
    (home / "deploy").mkdir()
    for source in ("LICENSE", "README.md", "deploy/fila.service", "deploy/fila.toml"):
        shutil.copy(ROOT / source, home / source)
    return home


def unpacked(package: Path, place: Path) -> Path:
    subprocess.run(["dpkg-deb", "--raw-extract", str(package), str(place)], check=True)
    return place


def field(package: Path, name: str) -> str:
    told = subprocess.run(
        ["dpkg-deb", "--field", str(package), name], capture_output=True, text=True, check=True
    )
    return told.stdout.strip()


def test_programs_pages_unit_and_configuration_are_where_debian_wants_them(
    home: Path, tmp_path: Path
) -> None:
    package = MAKER["build"](home, tmp_path / "dist")
    assert package.name.startswith("fila_0.2.0~dev3_") and field(package, "Package") == "fila"
    assert field(package, "Depends").startswith("libc6 (>= 2.")
    tree = unpacked(package, tmp_path / "tree")
    for name in ("fila", "fila-server"):
        link = tree / "usr/bin" / name
        assert link.is_symlink() and os.access(link, os.X_OK)
        assert (tree / "usr/lib/fila" / name).is_file()
    for name in (
        *("usr/share/man/man1/fila.1.gz", "usr/share/bash-completion/completions/fila"),
        *("usr/share/doc/fila/copyright", "usr/share/doc/fila/licences/python.txt"),
    ):
        assert (tree / name).is_file(), name
    unit = (tree / "lib/systemd/system/fila.service").read_text()
    assert "ExecStart=/usr/bin/fila-server --config /etc/fila/fila.toml" in unit
    assert "/usr/local" not in unit
    assert (tree / "DEBIAN/conffiles").read_text() == "/etc/fila/fila.toml\n"
    assert not (tree / "var").exists()


def test_the_same_content_makes_the_same_package(home: Path, tmp_path: Path) -> None:
    one, other = (MAKER["build"](home, tmp_path / name) for name in ("one", "other"))
    assert one.read_bytes() == other.read_bytes()


def test_scripts_are_plain_shell_and_touch_no_data(home: Path, tmp_path: Path) -> None:
    tree = unpacked(MAKER["build"](home, tmp_path / "dist"), tmp_path / "tree")
    for name in ("postinst", "prerm"):
        script = tree / "DEBIAN" / name
        assert subprocess.run(["sh", "-n", str(script)]).returncode == 0
        assert "rm " not in script.read_text()
    assert not (tree / "DEBIAN/postrm").exists()


@pytest.mark.parametrize(
    ("version", "debian"), [("0.2.0.dev1", "0.2.0~dev1"), ("0.2.0rc2", "0.2.0~rc2")]
)
def test_what_comes_before_a_release_is_older_for_debian_too(version: str, debian: str) -> None:
    assert MAKER["debian_version"](version) == debian
    assert MAKER["debian_version"]("0.2.0") == "0.2.0"
    assert subprocess.run(["dpkg", "--compare-versions", debian, "lt", "0.2.0"]).returncode == 0
