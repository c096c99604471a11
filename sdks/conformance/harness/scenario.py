"""A scenario as it stands in its file: what it is called, what it needs, its steps.

Owns reading and validating. A mistake in a scenario is found when it is loaded, not when it runs.

    title = "what it shows"
    group = "delivery"                 a heading of the matrix
    limit_s = 60                       the whole scenario must be over by then
    [broker]                           absent: no broker is started
    tls = "server"                     or "mutual"; absent: plaintext
    auth = true                        the bootstrap key is `{key}`
    settings = { "fibp.max_frame_size" = 4096 }
    [[step]]
    op = "enqueue"                     an operation of PROTOCOL.md or of the runner (RUNNER_OPS)
    by = "witness"                     the runner's own client does it, not the adapter
    client = "a"                       the operation's fields; texts may name variables: "{broker}"
    text = "hello"                     payload given as text
    repeat = 10                        so many times, `{i}` counts from 0
    parallel = true                    all at once
    background = "name"                do not wait; `await` does
    expect = { message_id = "@uuid" }  what must be in the answer (harness/expect.py)
    fails = "QueueNotFound"            it must fail with this code, or one of a list
    says = "does not exist"            a part of the error's text
    within_ms = 5000                   it must be answered by then
    save = "first"                     keep the answer (a list when repeated) for `check`
    note = "…"                         why the step is there; shown when it fails
"""

import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from harness.places import SCENARIOS

Json = dict[str, Any]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Operations of the runner itself, with their fields.
RUNNER_OPS: dict[str, frozenset[str]] = {
    name: _words(fields)
    for name, fields in {
        "check": "that",  # a Python expression over what was saved
        "let": "name that",  # keep what the expression gives
        "sleep": "ms",
        "kill": "",  # the broker, with SIGKILL
        "stop": "",  # the broker, politely
        "start": "",  # the broker, again
        "freeze": "",  # the broker stops reading and answering; connections stay
        "thaw": "",
        "await": "name",  # a step that runs in the background
        "peer": "name script tls leader first",  # a scripted broker (harness/peer.py)
        "peer_points": "name leader",  # from now on it names this leader
        "peer_wait": "name that",  # until the expression over what the peer saw holds
        "peer_send": "name raw",  # bytes (hex) to the peer's newest connection
        "produce": "client queue count producers",  # every message until it is stored
        "collect": "consumer client queue until count quiet_ms batch",  # take and ack
        "vectors": "files kind",
        "consume_fails": "client consumer queue prefetch",  # at consume, or at next if that is lazy
        "until": "that every_ms call",  # repeat a call until the expression over `it` holds
    }.items()
}
COMMON = _words("op by repeat parallel background expect fails says within_ms save note")
ADAPTER_OPS = _words(
    """hello stats abort encode decode decode_body decode_stream state connect close drain events
    logs enqueue enqueue_many consume next cancel ack release nack extend create_queue delete_queue
    list_queues get_stats set_config get_config list_config redrive explain pause_queue
    resume_queue pause_key resume_key purge create_api_key revoke_api_key list_api_keys set_acl
    get_acl"""
)
_TOP = frozenset(("title", "group", "limit_s", "broker", "step"))
_BROKER = frozenset(("tls", "auth", "settings"))


class ScenarioError(Exception):
    """The scenario's file is wrong; the text says where."""


class Scenario(NamedTuple):
    name: str
    title: str
    group: str
    limit_s: float
    broker: Json | None
    steps: tuple[Json, ...]


def load(names: list[str] | None = None, place: Path = SCENARIOS) -> list[Scenario]:
    """All scenarios in the order of their file names, or those named."""
    found = {path.stem.partition("-")[2]: path for path in sorted(place.glob("*.toml"))}
    unknown = set(names or ()) - set(found)
    if unknown:
        raise ScenarioError(f"no scenario {min(unknown)!r}; there are: {', '.join(found)}")
    return [read(name, path) for name, path in found.items() if not names or name in names]


def read(name: str, path: Path) -> Scenario:
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"{path.name}: {error}") from error
    return parse(name, given, path.name)


def parse(name: str, given: Json, where: str) -> Scenario:
    _known(given, _TOP, where)
    broker = given.get("broker")
    if broker is not None:
        _known(broker, _BROKER, f"{where}: [broker]")
    steps = tuple(given.get("step", ()))
    if not given.get("title") or not steps:
        raise ScenarioError(f"{where}: a scenario has a title and steps")
    for number, step in enumerate(steps, 1):
        _check_step(step, f"{where}: step {number}")
    return Scenario(
        name,
        given["title"],
        given.get("group", "other"),
        given.get("limit_s", 60.0),
        broker,
        steps,
    )


def _check_step(step: Json, where: str) -> None:
    op = step.get("op")
    if op in RUNNER_OPS:
        _known(step, RUNNER_OPS[op] | COMMON, f"{where} ({op})")
    elif op not in ADAPTER_OPS:
        raise ScenarioError(f"{where}: unknown op {op!r}")
    if step.get("parallel") and "repeat" not in step:
        raise ScenarioError(f"{where}: parallel needs repeat")
    if op == "until":
        _check_step(step["call"], f"{where}: call")


def _known(given: Json, names: frozenset[str], where: str) -> None:
    unknown = set(given) - names
    if unknown:
        raise ScenarioError(f"{where}: unknown {min(unknown)!r}")
