"""Queues as a file declares them: TOML read and written. Never talks to a broker.

    [queues.orders]
    on_enqueue = "@policy.lua"        # beside the file; or the script itself
    visibility_timeout_ms = "60s"     # or 60000
    max_attempts = 5

    [config]
    "throttle.provider:stripe" = "10,20"

Owns the file's form. What a setting may be is the broker's to say.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from fila.cli.durations import milliseconds
from fila.cli.failure import Failure, unreadable
from fila.cli.settings import NAMES, SCRIPTS

_TABLES = ("queues", "config")
_MS = milliseconds()


class Declared(NamedTuple):
    queues: dict[str, dict[str, str]]  # settings by name
    config: dict[str, str]


def read(path: str) -> Declared:
    """What the file says; a `Failure` names what is wrong in it."""
    try:
        text = Path(path).read_text("utf-8")
        found = tomllib.loads(text)
    except OSError as error:
        raise unreadable(path, error) from error
    except UnicodeDecodeError as error:
        raise Failure(f"{path} is not UTF-8 text (byte {error.start})") from error
    except tomllib.TOMLDecodeError as error:
        raise Failure(f"{path} is not TOML: {error}") from error
    for name in found:
        if name not in _TABLES:
            raise Failure(f'{path}: there is no table "{name}"; known: {", ".join(_TABLES)}')
    queues = {
        name: _settings(path, name, table)
        for name, table in _table(path, "queues", found.get("queues", {})).items()
    }
    config = {}
    for key, value in _table(path, "config", found.get("config", {})).items():
        if not isinstance(value, str):
            raise Failure(f'{path}: config."{key}" has to be a text in quotes')
        config[key] = value
    return Declared(queues, config)


def toml(queues: Mapping[str, Mapping[str, str]], config: Mapping[str, str]) -> str:
    """The file that declares these; what is empty is left out."""
    parts = []
    for name, settings in queues.items():
        lines = [f"[queues.{_quoted(name)}]"]
        for setting, text in settings.items():
            if setting in SCRIPTS and text:
                lines.append(f"{setting} = {_script(text)}")
            elif text:
                lines.append(f"{setting} = {text if _is_number(text) else _quoted(text)}")
        parts.append("\n".join(lines))
    if config:
        pairs = [f"{_quoted(key)} = {_quoted(value)}" for key, value in config.items()]
        parts.append("\n".join(["[config]", *pairs]))
    return "\n\n".join(parts)


def _table(path: str, name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Failure(f"{path}: {name} has to be a table")
    return value


def _settings(path: str, queue: str, table: Any) -> dict[str, str]:
    settings = {}
    for name, value in _table(path, f'queues."{queue}"', table).items():
        where = f'{path}: queues."{queue}".{name}'
        if name not in NAMES:
            raise Failure(f"{where}: there is no such setting; known: {', '.join(NAMES)}")
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise Failure(f"{where} has to be a text or a whole number")
        text = str(value)
        if name in SCRIPTS and text.startswith("@"):
            text = _beside(path, text[1:])
        elif name.endswith("_ms") and isinstance(value, str) and text:
            try:
                text = str(_MS(text))
            except Exception as error:
                raise Failure(f"{where}: {error}") from error
        settings[name] = text
    return settings


def _beside(path: str, name: str) -> str:
    """The script in a file whose name is relative to the declaring one."""
    file = Path(path).parent / name
    try:
        return file.read_text("utf-8")
    except OSError as error:
        raise unreadable(str(file), error) from error
    except UnicodeDecodeError as error:
        raise Failure(f"{file} is not UTF-8 text (byte {error.start})") from error


def _script(text: str) -> str:
    """As it is, line by line, where TOML keeps every byte of it so."""
    plain = text.replace("\n", "").replace("\t", "").isprintable()
    if "\n" in text and plain and "'''" not in text and not text.endswith("'"):
        return f"'''\n{text}'''"
    return _quoted(text)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and str(int(text)) == text


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
