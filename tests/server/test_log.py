"""Log lines: JSON for machines, short lines for people."""

from __future__ import annotations

import io
import json
import logging
import re
import sys
from collections.abc import Iterator

import pytest

from fila.server import log as logs


@pytest.fixture(autouse=True)
def _restore() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def written(
    monkeypatch: pytest.MonkeyPatch, format: str, stream: io.StringIO, level: str = "info"
) -> str:
    monkeypatch.setattr(sys, "stderr", stream)
    logs.set_up(level, format)
    log = logging.getLogger("fila.test")
    log.debug("in detail")
    log.info("ready", extra={"port": 5555, "name_of_queue": "größe"})
    try:
        raise ValueError("broken")
    except ValueError:
        log.error("failed", exc_info=True)
    return stream.getvalue()


def test_json_lines_carry_time_level_logger_message_and_extras(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = written(monkeypatch, "auto", io.StringIO()).splitlines()
    first, second = (json.loads(line) for line in lines)
    assert first.pop("ts").endswith("+00:00")
    assert first == {
        "level": "info",
        "logger": "fila.test",
        "message": "ready",
        "port": 5555,
        "name_of_queue": "größe",
    }
    assert second["level"] == "error"
    assert "ValueError: broken" in second["error"]


def test_people_get_lines_they_can_read_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    first = written(monkeypatch, "auto", Terminal()).splitlines()[0]
    pattern = r"\d\d:\d\d:\d\d\.\d{3} info    ready port=5555 name_of_queue=größe"
    assert re.fullmatch(pattern, first)


def test_a_format_can_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert written(monkeypatch, "human", io.StringIO())[0].isdigit()
    assert written(monkeypatch, "json", Terminal())[0] == "{"


def test_the_level_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "in detail" in written(monkeypatch, "json", io.StringIO(), "debug")
    assert "ready" not in written(monkeypatch, "json", io.StringIO(), "error")
