"""The configuration reference says what the settings are."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from fila.server.reference import configuration_reference
from fila.server.settings import Settings

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"


def test_the_page_in_the_docs_is_the_one_made_from_the_settings() -> None:
    assert PAGE.read_text().strip() == configuration_reference().strip(), "run `make docs`"


def test_every_setting_stands_in_it_with_its_default() -> None:
    text = configuration_reference()
    for section in fields(Settings):
        if section.metadata.get("hidden"):
            continue
        assert f"## [{section.name}]" in text
        for setting in fields(getattr(Settings(), section.name)):
            assert f"`{setting.name}`" in text
