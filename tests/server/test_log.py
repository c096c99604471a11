"""Log lines: JSON for machines, short lines for people."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fila import FilaClient
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
    lines = logs.set_up(level, format)
    log = logging.getLogger("fila.test")
    log.debug("in detail")
    log.info("ready", extra={"port": 5555, "name_of_queue": "größe"})
    try:
        raise ValueError("broken")
    except ValueError:
        log.error("failed", exc_info=True)
    lines.close(wait_s=30)
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


HOSTILE = "orders\r\n00:00:00.000 info    all is well \x1b[2J\x9b31m\u2028 who=admin"


@pytest.mark.parametrize("format", ["human", "json"])
def test_a_name_can_neither_fake_a_line_nor_a_field_nor_reach_the_terminal(
    monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    lines = logs.set_up("info", format)
    logging.getLogger("fila.test").info(f'create queue "{HOSTILE}"', extra={"action": HOSTILE})
    lines.close(wait_s=30)
    text = stream.getvalue()
    assert len(text.splitlines()) == 1
    assert text.removesuffix("\n").isprintable()
    if format == "json":
        assert json.loads(text)["action"] == HOSTILE
    else:
        assert ' action="orders\\r\\n' in text
        assert text.rstrip().endswith('who=admin"')


def test_a_reader_that_does_not_read_costs_lines_and_never_time() -> None:
    reading = threading.Event()
    written: list[str] = []

    def write(line: str) -> None:
        reading.wait(60)
        written.append(line)

    writer = logs.LineWriter(100, write)
    for number in range(1_000):
        writer.say(f"line {number}")  # would wait for ever if it waited at all
    assert 890 <= writer.dropped <= 900
    writer.close(wait_s=0.01)  # gives up: nobody reads
    reading.set()
    writer.close(wait_s=30)
    assert any("log lines were dropped" in line for line in written)
    assert len([line for line in written if line.startswith("line ")]) == 1_000 - writer.dropped


def test_a_broker_whose_log_nobody_reads_serves_and_stops(tmp_path: Path) -> None:
    """The pipe is full from the start and stays so. `fila.testing` gives a broker a file to write
    to, so this one is started by hand."""
    reader, into = os.pipe()
    os.set_blocking(into, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(into, b"x" * 65_536)
    os.set_blocking(into, True)
    port_file = tmp_path / "port"
    server = subprocess.Popen(
        [sys.executable, "-m", "fila.server.main", "--listen", "127.0.0.1:0"],
        env={
            **os.environ,
            "FILA_DATA_DIR": str(tmp_path / "data"),
            "FILA_PORT_FILE": str(port_file),
            "FILA_LOG__LEVEL": "debug",
        },
        stderr=into,
    )
    try:
        limit = time.monotonic() + 60
        while not port_file.exists() and time.monotonic() < limit:
            time.sleep(0.02)
        with FilaClient(port_file.read_text()) as client:
            for number in range(50):
                client.create_queue(f"queue-{number}")  # each is a line of the audit log
            assert len(client.list_queues()) == 100
        server.terminate()
        assert server.wait(60) == 0
    finally:
        server.kill()
        os.close(reader)
        os.close(into)
