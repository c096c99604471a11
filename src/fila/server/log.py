"""Structured logs on standard error: lines for people on a terminal, JSON otherwise.

Never payloads or header values; queue and key names only where they help, and those escaped: a name
cannot fake a line. Lines are written by a thread of their own through a bounded queue, so a reader
that does not read never holds the broker up; what does not fit is dropped and counted.
"""

from __future__ import annotations

import logging
import os
import queue
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, TextIO

from fila.text import json_line, shown

LINE_CHARS_MAX: Final = 16_384
FLUSH_S: Final = 1.0  # what a stopping server gives a reader that does not read

_STANDARD = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def set_up(level: str, format: str, waiting_lines_max: int = 10_000) -> LineWriter:
    """Send everything that is logged to standard error. Close what is returned before exit."""
    human = sys.stderr.isatty() if format == "auto" else format == "human"
    writer = LineWriter(waiting_lines_max, _writer_to(sys.stderr))
    handler = _Handler(writer)
    handler.setFormatter(HumanFormatter() if human else JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    return writer


class LineWriter:
    """Lines that wait for a thread to write them. Never blocks the caller that logs."""

    def __init__(self, waiting_max: int, write: Callable[[str], None]) -> None:
        self._waiting: queue.Queue[str | None] = queue.Queue(waiting_max)
        self._write = write
        self._dropped_before = 0  # told of already
        self.dropped = 0
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)
        self._thread.start()

    def say(self, line: str) -> None:
        try:
            self._waiting.put_nowait(line)
        except queue.Full:
            self.dropped += 1

    def close(self, wait_s: float = FLUSH_S) -> None:
        """Write what waits, for as long as that takes within the limit."""
        try:
            self._waiting.put(None, timeout=wait_s)
        except queue.Full:
            return
        self._thread.join(wait_s)

    def _run(self) -> None:
        while (line := self._waiting.get()) is not None:
            lost = self.dropped - self._dropped_before
            try:
                if lost:
                    self._dropped_before += lost
                    self._write(f"fila-server: {lost} log lines were dropped: nobody read them")
                self._write(line)
            except (OSError, ValueError):
                self.dropped += 1  # the reader is gone


class _Handler(logging.Handler):
    def __init__(self, writer: LineWriter) -> None:
        super().__init__()
        self._writer = writer

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record)
        except Exception as error:
            line = f"a log line could not be formatted: {error!r}"
        if len(line) > LINE_CHARS_MAX:
            line = line[:LINE_CHARS_MAX] + " ... cut"
        self._writer.say(line)


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_extra(record),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json_line(line)


class HumanFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        clock = datetime.fromtimestamp(record.created).strftime("%H:%M:%S.%f")[:-3]
        extra = "".join(f" {key}={_value(value)}" for key, value in _extra(record).items())
        line = f"{clock} {record.levelname.lower():7} {shown(record.getMessage())}{extra}"
        if record.exc_info:
            trace = self.formatException(record.exc_info)
            line += "".join(f"\n{shown(part)}" for part in trace.split("\n"))
        return line


def _value(value: Any) -> str:
    """A value that cannot be taken for another field."""
    text = shown(str(value))
    quoted = text.replace('"', '\\"')
    return f'"{quoted}"' if " " in text or "=" in text or '"' in text else text


def _extra(record: logging.LogRecord) -> dict[str, Any]:
    return {key: value for key, value in vars(record).items() if key not in _STANDARD}


def _writer_to(stream: TextIO) -> Callable[[str], None]:
    """By file descriptor: a thread stuck in a stream's own lock would hold up the exit."""
    try:
        number = stream.fileno()
    except (OSError, ValueError):  # not a file: a test's
        return lambda line: print(line, file=stream)

    def write(line: str) -> None:
        data = (line + "\n").encode("utf-8", "backslashreplace")
        while data:
            data = data[os.write(number, data) :]

    return write
