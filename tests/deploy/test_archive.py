"""What goes into the archive beside the programs: complete, well-formed manual pages."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.deploy.release import ROOT

TOOLS = ROOT / "tools" / "binary"
CLI = ROOT / "docs" / "cli.md"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("pages") / "man1"
    code = f"import sys, pathlib; sys.path.insert(0, {str(TOOLS)!r}); import manual; "
    subprocess.run(
        [sys.executable, "-c", f"{code}manual.write(pathlib.Path({str(place)!r}))"], check=True
    )
    return place


def test_the_manual_knows_every_command_and_option(pages: Path) -> None:
    text = (pages / "fila.1").read_text().replace("\\-", "-")
    for heading in re.findall(r"^###+ (fila .+)$", CLI.read_text(), re.MULTILINE):
        assert f".SS {heading}\n" in text, heading
    assert "--on-enqueue SCRIPT\n" in text and ".B --addr HOST:PORT\n" in text
    server = (pages / "fila-server.1").read_text().replace("\\-", "-")
    assert ".B --check-config" in server


def test_nothing_in_a_manual_page_is_taken_for_a_request(pages: Path) -> None:
    known = {"TH", "SH", "SS", "TP", "B", "nf", "fi"}
    for page in pages.iterdir():
        requests = set(re.findall(r"^[.'](\w*)", page.read_text(), re.MULTILINE))
        assert requests <= known, requests - known
        if shutil.which("man") and shutil.which("groff"):
            shown = subprocess.run(
                ["man", "--warnings", str(page)], capture_output=True, text=True, check=True
            )
            assert shown.stderr == ""


def test_the_archive_holds_what_the_broker_needs_and_nothing_for_spark() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = {
        re.match(r"[\w-]+", one)[0]  # type: ignore[index]
        for one in project["optional-dependencies"]["server"]
    }
    inside = set(re.findall(r'^    "([\w-]+)",$', (TOOLS / "engines.py").read_text(), re.MULTILINE))
    assert needed <= inside
    assert not inside & {"pyspark", "pyarrow", "numpy", "pandas"}
