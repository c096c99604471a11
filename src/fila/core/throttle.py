"""Throttle settings inside the runtime config: two syntaxes, one bucket, the later write wins.

    throttle.<key>         "rate,burst"
    throttle:<key>:rate    "rate"        burst defaults to max(rate, 1)
    throttle:<key>:burst   "burst"
    throttle:<key>:max_in_flight   how many may be in flight at once, in all queues (`caps.py`)

Writing one form of the rate replaces the other, so the config always shows just what is in force.
The last stands for itself, with or without a rate.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from fila.core.rejection import Rejection, invalid_value

_NUMBER: Final = re.compile(r"\d+(\.\d+)?([eE][+-]?\d+)?|\.\d+")
_DOT: Final = "throttle."
_COLON: Final = "throttle:"
_IN_FLIGHT: Final = ":max_in_flight"
IN_FLIGHT_MAX: Final = 1_000_000


class Limit(NamedTuple):
    rate: float
    burst: float


class Change(NamedTuple):
    """What a config write means: the settings to store or remove, and the resulting limit."""

    name: str
    puts: list[tuple[str, str]]
    removes: list[str]
    limit: Limit | None


def in_flight(key: str, value: str) -> tuple[str, int] | Rejection | None:
    """The throttle key and how many of it may be in flight, if setting `key` says so; 0, an empty
    value, is no limit."""
    if not key.startswith(_COLON) or not key.endswith(_IN_FLIGHT):
        return None
    name = key[len(_COLON) : -len(_IN_FLIGHT)]
    if not name:
        return invalid_value(key, "a throttle key is missing between the colons")
    most = in_flight_number(value) if value else 0
    if most is None:
        return invalid_value(key, f'"{value}" is no whole number from 1 to {IN_FLIGHT_MAX}')
    return name, most


def in_flight_number(text: str) -> int | None:
    text = text.strip()
    if not (text.isascii() and text.isdigit()) or len(text) > 9:
        return None
    return int(text) if 1 <= int(text) <= IN_FLIGHT_MAX else None


def in_flight_limits(config: dict[str, str]) -> dict[str, int]:
    """Every cap a stored config defines."""
    found: dict[str, int] = {}
    for key, value in config.items():
        one = in_flight(key, value)
        if one is not None and not isinstance(one, Rejection) and one[1]:
            found[one[0]] = one[1]
    return found


def change(key: str, value: str, config: dict[str, str]) -> Change | Rejection | None:
    """What setting `key` does (an empty value removes it); None if it is no throttle setting."""
    if key.startswith(_DOT):
        return _change_dot(key, value)
    if key.startswith(_COLON):
        name, _, field = key[len(_COLON) :].rpartition(":")
        if not name or field not in ("rate", "burst"):
            return invalid_value(
                key, "use throttle:<key>:rate, throttle:<key>:burst or throttle:<key>:max_in_flight"
            )
        return _change_colon(name, field, key, value, config)
    return None


def limits(config: dict[str, str]) -> dict[str, Limit]:
    """Every limit a stored config defines."""
    found: dict[str, Limit] = {}
    for key, value in config.items():
        if key.startswith(_DOT):
            pair = _pair(value)
            if isinstance(pair, Limit):
                found[key[len(_DOT) :]] = pair
        elif key.startswith(_COLON) and key.endswith(":rate"):
            name = key[len(_COLON) : -len(":rate")]
            limit = _colon_limit(name, config)
            if limit is not None:
                found[name] = limit
    return found


def _change_dot(key: str, value: str) -> Change | Rejection:
    name = key[len(_DOT) :]
    if not name:
        return invalid_value(key, "a throttle key is missing after the dot")
    others = [f"{_COLON}{name}:rate", f"{_COLON}{name}:burst"]
    if not value:
        return Change(name, [], [key, *others], None)
    limit = _pair(value)
    if isinstance(limit, str):
        return invalid_value(key, limit)
    return Change(name, [(key, value)], others, limit)


def _change_colon(
    name: str, field: str, key: str, value: str, config: dict[str, str]
) -> Change | Rejection:
    rate_key, burst_key = f"{_COLON}{name}:rate", f"{_COLON}{name}:burst"
    dotted = config.get(_DOT + name)
    after = {k: config[k] for k in (rate_key, burst_key) if k in config}
    if dotted is not None and value:
        rate, burst = dotted.split(",")
        after = {rate_key: rate.strip(), burst_key: burst.strip()}
    removes = [_DOT + name]
    if value:
        number = number_of(value)
        if isinstance(number, str):
            return invalid_value(key, number)
        after[key] = value.strip()
    else:
        after.pop(key, None)
        removes.append(key)
        if field == "rate" and dotted is not None:
            after = {}
        elif field == "burst" and dotted is not None:
            after = {rate_key: dotted.split(",")[0].strip()}
    return Change(name, sorted(after.items()), removes, _colon_limit(name, after))


def _colon_limit(name: str, config: dict[str, str]) -> Limit | None:
    rate = number_of(config.get(f"{_COLON}{name}:rate", ""))
    if isinstance(rate, str):
        return None
    burst = number_of(config.get(f"{_COLON}{name}:burst", ""))
    return Limit(rate, max(rate, 1.0) if isinstance(burst, str) else burst)


def _pair(value: str) -> Limit | str:
    parts = value.split(",")
    if len(parts) != 2:
        return f'"{value}" is not "rate,burst", for example "100,150"'
    rate, burst = number_of(parts[0]), number_of(parts[1])
    if isinstance(rate, str):
        return rate
    if isinstance(burst, str):
        return burst
    return Limit(rate, burst)


def number_of(text: str) -> float | str:
    """A finite number of at least 0, or the reason why it is none."""
    text = text.strip()
    if not _NUMBER.fullmatch(text):
        return f'"{text}" is not a finite number of at least 0'
    number = float(text)
    if number > 1e300:
        return f'"{text}" is not a finite number of at least 0'
    return number
