"""One version: the sources have it, and everything that is released says the same."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from fila import __version__
from tools import version

ROOT = Path(__file__).parents[1]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for name in {*(name.partition("#")[0] for name in version.PLACES), "CHANGELOG.md"}:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_everything_that_is_released_has_the_version_of_the_source() -> None:
    assert set(version.told().values()) == {__version__}


def test_one_command_sets_it_everywhere_and_heads_the_changelog(copy: Path) -> None:
    version.set_everywhere("9.8.7", copy)
    assert set(version.told(copy).values()) == {"9.8.7"}
    text = (copy / "CHANGELOG.md").read_text()
    assert re.search(
        r"^## \[Unreleased\]\n\n## \[9\.8\.7\] - \d{4}-\d\d-\d\d\n", text, re.MULTILINE
    )
    version.set_everywhere("9.8.7", copy)  # again: nothing changes
    assert (copy / "CHANGELOG.md").read_text() == text


def test_a_file_that_disagrees_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], copy: Path
) -> None:
    crate = copy / "sdks/rust/Cargo.toml"
    crate.write_text(crate.read_text().replace(f'"{__version__}"', '"9.9.9"', 1))
    found = version.told(copy)
    assert found["sdks/rust/Cargo.toml"] == "9.9.9" and found[version.SOURCE] == __version__
    monkeypatch.setattr(version, "told", lambda: found)
    monkeypatch.setattr("sys.argv", ["version.py"])
    assert version.main() == 1
    assert "sdks/rust/Cargo.toml says 9.9.9" in capsys.readouterr().err


def test_the_changelog_keeps_its_form() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    for heading in headings[1:]:
        assert re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", heading), heading
    kinds = set(re.findall(r"^### (.+)$", text, re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
