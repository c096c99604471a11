"""Reads the settings: file, environment, command line; the later source wins.

An unknown key is a warning that names the nearest known one. A wrong type, a bad value or a file
that is no TOML is a ConfigError: one line that says file, key and why.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import Field, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from fila.edges.listener import parse_address
from fila.server.settings import Settings

SEARCH_PATH = (Path("fila.toml"), Path("/etc/fila/fila.toml"))
# Sections that would change who may do what: starting without them would be worse than not at all.
REFUSED_SECTIONS = ("cluster",)
# Other names under which settings are known.
ALIASES = {
    ("tls", "server_cert"): ("tls", "cert_file"),
    ("tls", "server_key"): ("tls", "key_file"),
    ("tls", "ca_cert"): ("tls", "ca_file"),
    ("server", "bootstrap_apikey"): ("auth", "bootstrap_apikey"),
}
# Settings that moved: the old name works, with a warning.
MOVED = {
    ("fibp", old): ("connection", new)
    for old, new in (
        ("max_message_size", "max_message_size"),
        ("max_inbound_bytes", "max_inbound_bytes"),
        ("max_messages_per_request", "max_messages_per_request"),
        ("max_unsent_bytes", "max_unsent_bytes"),
        ("max_outbound_bytes", "max_outbound_bytes"),
        ("max_consumers_per_connection", "max_consumers"),
        ("prefetch", "prefetch"),
        ("prefetch_bytes", "prefetch_bytes"),
        ("handshake_timeout_ms", "handshake_timeout_ms"),
        ("close_timeout_ms", "close_timeout_ms"),
        ("keepalive_interval_secs", "keepalive_interval_secs"),
        ("keepalive_timeout_secs", "keepalive_timeout_secs"),
    )
}
# Settings that are gone, and why nothing is missing without them.
RETIRED = {
    ("scheduler", "command_channel_capacity"): "there is no channel",
    ("scheduler", "idle_timeout_ms"): "nothing polls",
}
_SPECIAL = {
    "FILA_PORT_FILE",
    "FILA_FIBP_PORT_FILE",
    "FILA_GUI_PORT_FILE",
    "FILA_SQS_PORT_FILE",
    "FILA_BOOTSTRAP_APIKEY",
    "FILA_ADDR",
    "FILA_API_KEY",
    "FILA_CONTEXT",
    "FILA_CONFIG",
}


# Section names, without punctuation, that can only have been meant for [auth] …
_AUTH_SECTIONS = {"auth", "auths", "authn", "authz", "authentication", "authorization"}
# … and key names that can only have been meant for its bootstrap_apikey.
_BOOTSTRAP_KEYS = {"bootstrapapikey", "bootstrapapikeys", "bootstrapkey", "bootstraptoken"}
_NUMBER = re.compile(r"\s*-?[0-9]+\s*")


class _Text(str):
    """A value from the environment: numbers and truth values come as text there."""


class ConfigError(Exception):
    """One line: where, which key, why."""


class Loaded(NamedTuple):
    settings: Settings
    source: str  # the file that was read, or "defaults"
    warnings: list[str]


def load(path: str | None, environ: Mapping[str, str], overrides: dict[str, str]) -> Loaded:
    """The settings in force. `overrides` are `section.key` → text, from the command line."""
    file = _find(path)
    warnings: list[str] = []
    settings = Settings()
    if file is not None:
        settings = _apply_file(settings, file, warnings)
    for name, text in sorted(environ.items()):
        if name == "FILA_DATA_DIR":
            settings = _set(settings, "storage", "data_dir", text, name)
        elif name.startswith("FILA_") and "__" in name:
            section, _, key = name[len("FILA_") :].lower().partition("__")
            _refuse_section(section, name)
            settings = _set_known(settings, section, key, _Text(text), name, warnings)
        elif name.startswith("FILA_") and name not in _SPECIAL:
            if "BOOTSTRAP" in name or name.startswith("FILA_AUTH_"):
                raise ConfigError(f"{name} is not a setting; write FILA_BOOTSTRAP_APIKEY")
            warnings.append(f"environment variable {name} is not a setting; it is ignored")
    if environ.get("FILA_BOOTSTRAP_APIKEY"):
        secret = environ["FILA_BOOTSTRAP_APIKEY"]
        settings = _set(settings, "auth", "bootstrap_apikey", secret, "FILA_BOOTSTRAP_APIKEY")
    if settings.auth.bootstrap_apikey:
        settings = replace(settings, auth_enabled=True)
    if not settings.auth_enabled:
        _refuse_empty_key(file, environ)
    for name, text in overrides.items():
        section, _, key = name.partition(".")
        settings = _set(settings, section, key, text, f"--{key.replace('_', '-')}")
    _check_tls(settings, "tls" in _sections_of(file))
    return Loaded(settings, str(file) if file else "defaults", warnings)


def _find(path: str | None) -> Path | None:
    if path is not None:
        if not Path(path).is_file():
            raise ConfigError(f"{path}: no such file")
        return Path(path)
    return next((file for file in SEARCH_PATH if file.is_file()), None)


def _apply_file(settings: Settings, file: Path, warnings: list[str]) -> Settings:
    try:
        with file.open("rb") as stream:
            document = tomllib.load(stream)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: not valid TOML: {error}") from error
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from error
    for section, table in document.items():
        _refuse_section(section, str(file))
        if not isinstance(table, dict):
            _refuse_misspelt_key(section, f"{file}: {section}")
        if not isinstance(table, dict) and section in _sections():
            raise ConfigError(f"{file}: {section}: is a section; write [{section}] on its own line")
        if not isinstance(table, dict):
            warnings.append(_unknown(f"{file}: {section}", section, _sections()))
            continue
        if section == "auth":
            settings = replace(settings, auth_enabled=True)
        for key, value in table.items():
            settings = _set_known(settings, section, key, value, str(file), warnings)
    return settings


def _refuse_section(section: str, where: str) -> None:
    if section in REFUSED_SECTIONS:
        raise ConfigError(
            f"{where}: [{section}] is not supported by this version; "
            "remove it if you mean to run without"
        )
    if section != "auth" and _bare(section) in _AUTH_SECTIONS:
        # Ignoring it would start a server open that was told to ask for keys.
        raise ConfigError(f"{where}: [{section}] is not a known section; authentication is [auth]")


def _refuse_misspelt_key(key: str, where: str) -> None:
    if _bare(key) in _BOOTSTRAP_KEYS:
        # Ignoring it would start a server open that was told a key.
        raise ConfigError(f"{where}: write [auth] bootstrap_apikey")


def _refuse_empty_key(file: Path | None, environ: Mapping[str, str]) -> None:
    """A key that is named but empty was meant to be one: a variable that was not set, perhaps."""
    named = [name for name in environ if name.startswith("FILA_") and "BOOTSTRAP_APIKEY" in name]
    if file is not None and "bootstrap_apikey" in _document(file).get("server", {}):
        named.append(f"{file}: server.bootstrap_apikey")
    if named:
        raise ConfigError(
            f"{named[0]}: is empty, and without a key everybody may do everything; give it one, or "
            "remove it if you mean to run open"
        )


def _bare(name: str) -> str:
    return re.sub("[^a-z0-9]", "", name.lower())


def _set_known(
    settings: Settings, section: str, key: str, value: Any, where: str, warnings: list[str]
) -> Settings:
    if section not in _sections():
        _refuse_misspelt_key(key, f"{where}: {section}.{key}")
        warnings.append(_unknown(f"{where}: [{section}]", section, _sections()))
        return settings
    if (section, key) in RETIRED:
        why = RETIRED[section, key]
        warnings.append(f"{where}: {section}.{key} has no effect ({why}); remove it")
        return settings
    if (section, key) in MOVED:
        name = ".".join(MOVED[section, key])
        warnings.append(f"{where}: {section}.{key} is called {name} now; the old name still works")
        section, key = MOVED[section, key]
    section, key = ALIASES.get((section, key), (section, key))
    known = [one.name for one in fields(getattr(settings, section))]
    if key not in known:
        _refuse_misspelt_key(key, f"{where}: {section}.{key}")
        warnings.append(_unknown(f"{where}: {section}.{key}", key, known))
        return settings
    return _set(settings, section, key, value, where)


def _set(settings: Settings, section: str, key: str, value: Any, where: str) -> Settings:
    table = getattr(settings, section)
    described = next(one for one in fields(table) if one.name == key)
    checked = _checked(described, value, f"{where}: {section}.{key}")
    if (section, key) == ("server", "listen_addr"):
        settings = replace(settings, server_addr_given=True)
    return replace(settings, **{section: replace(table, **{key: checked})})


def _checked(described: Field[Any], value: Any, where: str) -> Any:
    """The value in the setting's type and within its limits."""
    limits = described.metadata
    if described.type == "int":
        if isinstance(value, _Text) and _NUMBER.fullmatch(value):
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            raise ConfigError(f"{where}: {value!r} is not a whole number")
        if limits["low"] is not None and value < limits["low"]:
            raise ConfigError(f"{where}: {value} is below the least, {limits['low']}")
        if limits["high"] is not None and value > limits["high"]:
            raise ConfigError(f"{where}: {value} is above the most, {limits['high']}")
        return value
    if described.type == "float":
        return _fraction(value, limits, where)
    if described.type == "bool":
        if isinstance(value, _Text) and value.lower() in ("true", "false"):
            value = value.lower() == "true"
        if not isinstance(value, bool):
            raise ConfigError(f"{where}: {value!r} is not true or false")
        return value
    if not isinstance(value, str):
        raise ConfigError(f"{where}: {value!r} is not a string")
    if limits["choices"] and value not in limits["choices"]:
        raise ConfigError(f'{where}: "{value}" is not one of {", ".join(limits["choices"])}')
    if where.endswith("otlp_endpoint") and value and "://" not in value:
        raise ConfigError(f'{where}: "{value}" is no address like "http://localhost:4317"')
    if where.endswith("listen_addr") and (value or where.endswith("server.listen_addr")):
        try:
            parse_address(value)
        except (ValueError, OSError) as error:
            raise ConfigError(f"{where}: {error}") from error
    return str(value)


def _fraction(value: Any, limits: Mapping[str, Any], where: str) -> float:
    try:
        number = float(value) if not isinstance(value, bool) else float("nan")
    except (TypeError, ValueError):
        number = float("nan")
    if not limits["low"] <= number <= limits["high"]:
        raise ConfigError(
            f"{where}: {value!r} is not a number from {limits['low']} to {limits['high']}"
        )
    return number


def _check_tls(settings: Settings, section_present: bool) -> None:
    tls = settings.tls
    if bool(tls.cert_file) != bool(tls.key_file):
        raise ConfigError("tls: cert_file and key_file go together")
    if (section_present or tls.ca_file) and not tls.cert_file:
        raise ConfigError("tls: cert_file and key_file are missing")
    if tls.crl_file and not tls.ca_file:
        raise ConfigError("tls: crl_file goes with ca_file, which is missing")


def _sections_of(file: Path | None) -> set[str]:
    return set(_document(file)) if file is not None else set()


def _document(file: Path) -> dict[str, Any]:
    with file.open("rb") as stream:
        return tomllib.load(stream)


def _sections() -> list[str]:
    return [one.name for one in fields(Settings) if not one.metadata.get("hidden")]


def _unknown(where: str, name: str, known: list[str]) -> str:
    nearest = difflib.get_close_matches(name, known, n=1)
    hint = f'; did you mean "{nearest[0]}"?' if nearest else ""
    return f"{where} is not a known setting and is ignored{hint}"
