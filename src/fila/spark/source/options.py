"""Every option of `format("fila")`: its type, default and meaning, checked in one place.

Owns the names and what is wrong with a value. An unknown option is a mistake that names the
nearest one that is known. Never connects; never sees a secret.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Final, NamedTuple

READ: Final = "read"
STREAM: Final = "stream read"
WRITE: Final = "write"
_EVERYWHERE: Final = (READ, STREAM, WRITE)

DEFAULT_ADDRESS: Final = "localhost:5555"
STATES: Final = ("ready", "delayed", "leased")
# What Spark itself puts among the options of a stream's sink.
_OF_SPARK: Final = frozenset(("checkpointlocation", "queryname"))
# Options of a table in a catalog come once more with this prefix, among its other properties.
_CATALOG_PREFIX: Final = "option."
_SECRETS: Final = frozenset(("apikey", "api_key", "password", "token", "secret"))


class SourceError(Exception):
    """What somebody asked of `format("fila")` cannot be done; the message says what to change."""


class Option(NamedTuple):
    name: str
    kind: str  # text, flag, count, seconds, choice list
    default: Any
    uses: tuple[str, ...]
    meaning: str
    lowest: float = 0
    highest: float = float("inf")


OPTIONS: Final = (
    Option("queue", "text", "", _EVERYWHERE,
           "the queue; `load(\"orders\")` and `save(\"orders\")` name it too. A writer may have a "
           "column `queue` instead"),
    Option("address", "text", "", _EVERYWHERE,
           f"the broker, host:port; else the variable FILA_ADDR, else {DEFAULT_ADDRESS}"),
    Option("tls", "flag", False, _EVERYWHERE, "encrypt the connection"),
    Option("tlsCa", "text", "", _EVERYWHERE, "trust this CA file; implies tls"),
    Option("tlsCert", "text", "", _EVERYWHERE, "certificate file to show; needs tlsKey"),
    Option("tlsKey", "text", "", _EVERYWHERE, "private key file of tlsCert"),
    Option("apiKeyEnv", "text", "FILA_API_KEY", _EVERYWHERE,
           "the environment variable that holds the API key, on the driver and on every worker"),
    Option("timeoutSeconds", "seconds", 60.0, _EVERYWHERE,
           "how long an answer may take, connecting included", 1),
    Option("numPartitions", "count", 4, (READ, STREAM),
           "into how many tasks a read is cut, at most", 1, 1_024),
    Option("states", "choice list", STATES, (READ,),
           "which messages: some of ready, delayed, leased, with commas between"),
    Option("fairnessKey", "text", None, (READ,), "only the messages of this fairness key"),
    Option("snapshotTtlSeconds", "seconds", 600.0, (READ,),
           "how long the DataFrame may rest between two uses", 1, 3_600),
    Option("maxRowsPerBatch", "count", 50_000, (STREAM,), "most rows of a micro-batch", 1),
    Option("maxBytesPerBatch", "count", 64 * 1024 * 1024, (STREAM,),
           "most bytes of a micro-batch; one message goes in any case", 1),
    Option("visibilityTimeoutSeconds", "seconds", 300.0, (STREAM,),
           "how long messages stay with the stream after its last sign of life", 1, 7 * 86_400),
    Option("heartbeat", "flag", True, (STREAM,),
           "extend the batches of the stream while it runs, however slow the sink is"),
    Option("countAttempt", "flag", False, (STREAM,),
           "a batch that runs out counts as a failed attempt of its messages"),
    Option("idleWaitSeconds", "seconds", 1.0, (STREAM,),
           "how long the broker is asked to wait for a first message", 0, 60),
    Option("streamName", "text", "spark", (STREAM,),
           "what `fila stats` shows for it; a unique ending is added"),
    Option("maxRowsPerSecond", "count", 0, (WRITE,),
           "each task sends no faster than this; 0 means as fast as it can"),
)  # fmt: skip
_BY_LOWER: Final = {one.name.lower(): one for one in OPTIONS}


class Options(NamedTuple):
    """Checked values, safe to be pickled and shown: no secret is among them."""

    queue: str
    address: str
    tls: bool
    tls_ca: str
    tls_cert: str
    tls_key: str
    api_key_env: str
    timeout_s: float
    partitions: int
    states: tuple[str, ...]
    fairness_key: str | None
    snapshot_ttl_s: float
    rows_max: int
    bytes_max: int
    visibility_s: float
    heartbeat: bool
    count_attempt: bool
    idle_wait_s: float
    stream_name: str
    rows_per_second_max: int


def of_catalog(given: Mapping[str, str]) -> dict[str, str] | None:
    """The options of `CREATE TABLE … USING fila OPTIONS (…)`; None if it is no table of a catalog.
    Other properties of a table (TBLPROPERTIES) are not ours to judge."""
    if "provider" not in given or "owner" not in given:
        return None
    found = {
        name.removeprefix(_CATALOG_PREFIX): value
        for name, value in given.items()
        if name.startswith(_CATALOG_PREFIX)
    }
    return {**found, "path": given["path"]} if given.get("path") else found


def fitting(given: Mapping[str, str], use: str) -> dict[str, str]:
    """Without the options that are for another use: a table has those of all."""
    others = {one.name.lower() for one in OPTIONS if use not in one.uses}
    return {name: value for name, value in given.items() if name.lower() not in others}


def parse(given: Mapping[str, str], use: str) -> Options:
    """The values for a use; SourceError says what is wrong with them."""
    values = {one.name: one.default for one in OPTIONS}
    given = {name.lower(): value for name, value in given.items()}
    path = given.pop("path", "")
    for name, text in given.items():
        if name in _OF_SPARK:
            continue
        option = _BY_LOWER.get(name)
        if option is None:
            raise SourceError(_unknown(name, use))
        if use not in option.uses:
            fitting = " and ".join(option.uses)
            raise SourceError(f"option {option.name} is for {fitting}, not for {use}; remove it")
        values[option.name] = _value(option, text)
    if path and values["queue"] and path != values["queue"]:
        raise SourceError(
            f'the queue is named twice: "{path}" as a path and "{values["queue"]}" as option queue'
        )
    values["queue"] = values["queue"] or path
    if not values["queue"] and use != WRITE:
        raise SourceError(
            'which queue? Say .option("queue", "orders") or .load("orders"); in SQL leave the '
            "columns out of CREATE TABLE, or say SELECT … FROM orders WITH (queue = 'orders')"
        )
    if bool(values["tlsCert"]) != bool(values["tlsKey"]):
        raise SourceError("options tlsCert and tlsKey belong together: give both or neither")
    if "/" in values["streamName"]:
        raise SourceError(f"option streamName: {values['streamName']!r} must not hold a stroke")
    # Workers may have another environment: they use the address the driver chose.
    values["address"] = values["address"] or os.environ.get("FILA_ADDR", "") or DEFAULT_ADDRESS
    return Options(*values.values())


def _value(option: Option, text: str) -> Any:
    kind = option.kind
    if kind == "text":
        if not text:
            raise SourceError(f"option {option.name} is empty: {option.meaning}")
        return text
    if kind == "flag":
        if text.lower() not in ("true", "false"):
            raise SourceError(f"option {option.name}: {text!r} is neither true nor false")
        return text.lower() == "true"
    if kind == "choice list":
        chosen = tuple(one.strip().lower() for one in text.split(",") if one.strip())
        wrong = [one for one in chosen if one not in STATES]
        if wrong or not chosen:
            raise SourceError(f"option {option.name}: {text!r} is not some of {', '.join(STATES)}")
        return chosen
    try:
        number = int(text) if kind == "count" else float(text)
    except ValueError:
        what = "a whole number" if kind == "count" else "a number of seconds"
        raise SourceError(f"option {option.name}: {text!r} is not {what}") from None
    if not option.lowest <= number <= option.highest:
        bounds = f"at least {option.lowest:g}"
        if option.highest != float("inf"):
            bounds = f"from {option.lowest:g} to {option.highest:g}"
        raise SourceError(f"option {option.name}: {text} is out of bounds; use {bounds}")
    return number


def _unknown(name: str, use: str) -> str:
    if name in _SECRETS:
        return (
            "options show in plans and logs, so the API key is none: set the environment variable "
            "FILA_API_KEY (or the one option apiKeyEnv names) on the driver and the workers"
        )
    fitting = {one.name.lower(): one.name for one in OPTIONS if use in one.uses}
    near = get_close_matches(name, fitting, 1)
    known = f"did you mean {fitting[near[0]]}?" if near else f"known: {', '.join(fitting.values())}"
    return f'option {name} is not known to format("fila"); {known}'
