"""The pictures of docs/concepts.md show what the core does today."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_pictures_are_those_the_core_draws() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "concepts.py"), "--check"],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_the_page_shows_all_of_them_and_they_load_nothing() -> None:
    page = (ROOT / "docs" / "concepts.md").read_text()
    pictures = sorted((ROOT / "docs" / "pictures").glob("concepts-*.svg"))
    assert len(pictures) == 4
    for picture in pictures:
        assert page.count(f"](pictures/{picture.name})") == 1
        assert re.findall(r"(?:href|src)=|url\((?!#)", picture.read_text()) == []
