"""Modules stay small enough to be read in one sitting."""

from __future__ import annotations

from pathlib import Path

import pytest

import fila

SOURCE = Path(next(iter(fila.__path__)))
GENERATED = "v1"  # what protoc makes of the .proto files
LINES_MAX = 450


def longer(root: Path) -> dict[str, int]:
    """The modules with more lines than there may be."""
    lines = {
        str(path.relative_to(root)): len(path.read_text().splitlines())
        for path in sorted(root.rglob("*"))
        if path.suffix in (".py", ".lua") and GENERATED not in path.parts
    }
    assert lines
    return {name: count for name, count in lines.items() if count > LINES_MAX}


def test_no_module_is_longer_than_450_lines() -> None:
    assert longer(SOURCE) == {}


@pytest.mark.parametrize("more", [0, 1])
def test_a_module_that_is_too_long_is_found(tmp_path: Path, more: int) -> None:
    (tmp_path / "some.py").write_text("x = 1\n" * (LINES_MAX + more))
    assert len(longer(tmp_path)) == more
