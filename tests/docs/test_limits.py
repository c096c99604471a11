"""The page of limits: every limit of the settings is on it, as it is, with a test that exists."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

from fila.core.settings import Settings as CoreSettings
from fila.server.settings import Settings

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "limits.md").read_text()
ROW = re.compile(r"^\| `([a-z]+)\.([a-z_]+)` \| ([^|]+) \|", re.MULTILINE)
CORE_ROW = re.compile(r"^\| `([a-z_]+_max)` \| ([\d,]+) \|", re.MULTILINE)
# Not limits on what clients can make the broker hold.
ELSEWHERE = {"scheduler.max_weight", "idempotency.max_keys", "fibp.max_frame_size"}
SIZES = {"MiB": 1 << 20}


def stated() -> dict[str, int]:
    found = {}
    for section, name, text in ROW.findall(PAGE):
        number, _, unit = text.strip().partition(" ")
        found[f"{section}.{name}"] = int(number.replace(",", "")) * SIZES.get(unit, 1)
    return found


def test_every_limit_of_the_settings_is_on_the_page_with_its_default() -> None:
    settings: Any = Settings()
    found = stated()
    assert len(found) > 20
    for name, value in found.items():
        section, _, key = name.partition(".")
        assert getattr(getattr(settings, section), key) == value, name
    for part in dataclasses.fields(settings):
        own: Any = getattr(settings, part.name)
        if dataclasses.is_dataclass(own):
            for one in dataclasses.fields(own):
                name = f"{part.name}.{one.name}"
                if one.name.startswith("max_") and name not in ELSEWHERE:
                    assert name in found, f"docs/limits.md says nothing of {name}"


def test_every_limit_of_the_core_is_on_the_page_with_its_number() -> None:
    found = {name: int(text.replace(",", "")) for name, text in CORE_ROW.findall(PAGE)}
    settings = CoreSettings()._asdict()
    assert found == {name: value for name, value in settings.items() if name.endswith("_max")}


def test_every_row_names_its_test() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| `")]
    assert len(rows) >= 40 and [one for one in rows if "`tests/" not in one] == []


def test_every_promise_against_abuse_names_its_test() -> None:
    page = (ROOT / "docs" / "security.md").read_text()
    section = page.partition("\n## What the broker does against abuse\n")[2].partition("\n## ")[0]
    promises = section.partition("\nWhat Fila does not do")[0].split("\n- ")[1:]
    assert len(promises) >= 15 and [one for one in promises if "`tests/" not in one] == []


def test_every_promise_of_security_has_a_row_with_its_test() -> None:
    page = (ROOT / "docs" / "security.md").read_text()
    section = page.partition("\n## What this page promises, and its tests\n")[2].partition("\n## ")[
        0
    ]
    rows = [line for line in section.splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 15 and [one for one in rows if "`tests/" not in one] == []


def test_every_test_that_is_named_exists() -> None:
    pages = PAGE + (ROOT / "docs" / "security.md").read_text()
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", pages)
    assert len(named) > 20
    for path, name in named:
        source = (ROOT / path).read_text()
        assert f"def {name or 'test_'}" in source, f"{path}::{name}"
        assert not name or name.startswith("test_"), f"{path}::{name} is no test"
        assert not name or f"def {name}(" in source, f"{path}::{name}"
