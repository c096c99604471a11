"""What a queue is told to be, changed while it works: its settings, and their versions.

Owns the names of the settings, how changes are merged and checked, and UpdateQueue. A queue begins
with version 1; every change that changes anything makes the next one. The newest versions are
stored with who made them, when and why, so that one can be looked at, compared and brought back.

Settings are texts by name, empty where there is nothing: a new one needs no new format. The three
about hooks live in the runtime config, where the hooks' layer reads them (`lua:<queue>:…`); whoever
writes the config itself changes them without a version.

What waits keeps the place its version gave it, and a lease the time it began with; a failure is
judged by the version in force when it happens.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from fila.core import effect, rejection, rows, version_rows
from fila.core.byte_cost import cost_of
from fila.core.caps import MAX_IN_FLIGHT, in_flight_fault, set_cap_of_keys
from fila.core.catalogue import attempts_fault, visibility_fault
from fila.core.command import UpdateQueue
from fila.core.effect import Event
from fila.core.queue import Limits, Queue, limits_of
from fila.core.reader import StoreDamagedError
from fila.core.rejection import Rejection, invalid_value
from fila.core.row_batch import DELETE_STATE, PUT_QUEUE, PUT_STATE
from fila.core.rows import QueueRow
from fila.core.state import State
from fila.core.version_rows import VersionRow

ON_ENQUEUE: Final = "on_enqueue"
ON_FAILURE: Final = "on_failure"
VISIBILITY: Final = "visibility_timeout_ms"
MAX_ATTEMPTS: Final = "max_attempts"
MESSAGE_TTL: Final = "message_ttl_ms"
EXPIRED: Final = "expired"  # what becomes of a message whose time to live ran out
# How much may wait, in all and of one key; 0 is any number.
ROOM: Final = ("max_messages", "max_bytes", "key_max_messages", "key_max_bytes")
OVERFLOW: Final = "overflow"  # what becomes of what does not fit
COST: Final = "cost"  # of a message to its key; a queue keeps the one it was made with
# About hooks: the setting, and what it is called in the runtime config.
HOOK_LIMITS: Final = {
    "hook_timeout_ms": "timeout_ms",
    "hook_memory_limit_bytes": "memory_limit_bytes",
    "fail_mode": "fail_mode",
}
SCRIPTS: Final = (ON_ENQUEUE, ON_FAILURE)
ABOUT_HOOKS: Final = (*SCRIPTS, *HOOK_LIMITS)
NAMES: Final = (
    *SCRIPTS,
    *(VISIBILITY, MAX_ATTEMPTS, COST, MAX_IN_FLIGHT),
    *(MESSAGE_TTL, EXPIRED),
    *(*ROOM, OVERFLOW),
    *HOOK_LIMITS,
)
DEAD_LETTER: Final = "dead-letter"
DROP: Final = "drop"
REJECT: Final = "reject"
DROP_OLDEST: Final = "drop-oldest"
CONFIG_PREFIX: Final = "lua:"
_ALL: Final = 1 << 62

Settings = dict[str, str]


class Version(NamedTuple):
    number: int
    at_ns: int
    who: str  # empty: not known; version 1 is the queue's creation
    note: str
    settings: Settings  # all of them


def config_key(queue: str, field: str) -> str:
    """Where the runtime config has a limit of a queue's hooks, or their fail mode."""
    return f"{CONFIG_PREFIX}{queue}:{field}"


def settings_of(state: State, queue: Queue) -> Settings:
    """As they are now; all of them."""
    return {
        ON_ENQUEUE: queue.on_enqueue or "",
        ON_FAILURE: queue.on_failure or "",
        VISIBILITY: str(queue.visibility_ms),
        MAX_ATTEMPTS: str(queue.max_attempts),
        COST: cost_of(queue.ring),
        MESSAGE_TTL: str(queue.ttl_ms),
        EXPIRED: DROP if queue.drops_expired or _is_dlq(queue) else DEAD_LETTER,
        MAX_IN_FLIGHT: str(queue.max_in_flight_per_key),
        **_room_of(queue),
        **{
            name: state.config.get(config_key(queue.name, field), "")
            for name, field in HOOK_LIMITS.items()
        },
    }


def changed(before: Settings, after: Settings) -> list[str]:
    """The names of the settings that differ, in their order."""
    return [name for name in NAMES if before[name] != after[name]]


def settings_after(state: State, queue: Queue, command: UpdateQueue) -> Settings | Rejection:
    """What the queue's settings would be after the command; or why it is refused."""
    expected = command.expected_version
    if expected and expected != queue.version:
        return Rejection(
            rejection.VERSION_CONFLICT,
            f'queue "{queue.name}" has version {queue.version}, not {expected}: somebody changed '
            "it meanwhile; look at what it is now, and try again",
        )
    settings = settings_of(state, queue)
    if command.from_version:
        found = version_of(state, queue, command.from_version)
        if isinstance(found, Rejection):
            return found
        settings = found.settings
    settings = {**settings, **command.settings}
    unknown = sorted(settings.keys() - set(NAMES))
    if unknown:
        return invalid_value(
            f'setting "{unknown[0]}"', f"there is none of this name; known: {', '.join(NAMES)}"
        )
    return _checked(state, queue, settings)


def update_queue(state: State, queue: Queue, command: UpdateQueue) -> int | Rejection:
    """Change what is named, all of it or nothing. The version that holds now: the same if there was
    nothing to change."""
    for what, text in (("note", command.note), ("who", command.who)):
        if len(text.encode()) > state.settings.note_bytes_max:
            return invalid_value(what, f"it is longer than {state.settings.note_bytes_max} bytes")
    after = settings_after(state, queue, command)
    if isinstance(after, Rejection):
        return after
    before = settings_of(state, queue)
    names = changed(before, after)
    if not names:
        return queue.version
    if queue.version == 1:  # it has no row until there is a second
        _put(state, queue, VersionRow(queue.created_ns, "", "", before))
    queue.version += 1
    _follow(state, queue, after)
    _put(state, queue, VersionRow(state.now, command.who, command.note, after))
    gone = queue.version - state.settings.versions_kept
    if gone > 0:
        key = version_rows.version_key(queue.number, gone)
        state.fresh_versions.pop(key, None)
        state.ops(queue.group).append((DELETE_STATE, key, b""))
    if state.journal:
        told = f"version={queue.version} changed={','.join(names)}"
        state.events.append(Event(state.now, effect.EVENT_QUEUE_UPDATED, queue.name, reason=told))
    return queue.version


def version_of(state: State, queue: Queue, number: int) -> Version | Rejection:
    """One version of the queue; 0: the one that holds."""
    if number in (0, queue.version):
        now = settings_of(state, queue)
        if queue.version == 1:
            return Version(1, queue.created_ns, "", "", now)
        return _version(state, queue, queue.version)._replace(settings=now)
    oldest = max(1, queue.version - state.settings.versions_kept + 1)
    if not oldest <= number <= queue.version:
        return invalid_value(
            "version",
            f'{number} of queue "{queue.name}" is not there; {oldest} to {queue.version} are',
        )
    return _version(state, queue, number)


def versions_of(state: State, queue: Queue) -> list[Version]:
    """Those that are kept, the newest first."""
    if queue.version == 1:
        return [Version(1, queue.created_ns, "", "", settings_of(state, queue))]
    oldest = max(1, queue.version - state.settings.versions_kept + 1)
    return [_version(state, queue, number) for number in range(queue.version, oldest - 1, -1)]


def _version(state: State, queue: Queue, number: int) -> Version:
    key = version_rows.version_key(queue.number, number)
    value = state.fresh_versions.get(key) or state.reader.get(rows.STATE, key)
    if value is None:
        raise StoreDamagedError(
            f'version {number} of queue "{queue.name}" is not stored', rows.STATE, key
        )
    try:
        row = version_rows.read_version(value)
    except Exception as error:
        raise StoreDamagedError(
            f'version {number} of queue "{queue.name}" cannot be read: {error}', rows.STATE, key
        ) from error
    settings = {**dict.fromkeys(NAMES, ""), MESSAGE_TTL: "0", EXPIRED: _expired(queue, "")}
    settings.update({**dict.fromkeys(ROOM, "0"), OVERFLOW: REJECT})
    settings.update({**row.settings, COST: cost_of(queue.ring)})
    return Version(number, row.at_ns, row.who, row.note, settings)


def _checked(state: State, queue: Queue, settings: Settings) -> Settings | Rejection:
    limits = state.settings
    visibility_ms = _number(VISIBILITY, settings[VISIBILITY])
    attempts = _number(MAX_ATTEMPTS, settings[MAX_ATTEMPTS])
    if isinstance(visibility_ms, Rejection):
        return visibility_ms
    if isinstance(attempts, Rejection):
        return attempts
    in_flight = _number(MAX_IN_FLIGHT, settings[MAX_IN_FLIGHT])
    if isinstance(in_flight, Rejection):
        return in_flight
    visibility_ms = visibility_ms or limits.visibility_ms_default
    fault = (
        visibility_fault(limits, visibility_ms)
        or attempts_fault(limits, queue.name, attempts)
        or in_flight_fault(limits, in_flight)
    )
    if fault is not None:
        return fault
    ttl_ms = _number(MESSAGE_TTL, settings[MESSAGE_TTL])
    if isinstance(ttl_ms, Rejection):
        return ttl_ms
    if ttl_ms > limits.ttl_ms_max:
        return invalid_value(
            MESSAGE_TTL, f"{ttl_ms} ms is too long; the longest is {limits.ttl_ms_max} ms"
        )
    expired = _expired(queue, settings[EXPIRED])
    if settings[EXPIRED] not in ("", expired):
        return invalid_value(
            EXPIRED, f'"{settings[EXPIRED]}" is none for queue "{queue.name}"; use "{expired}"'
        )
    room = {}
    for name in ROOM:
        number = _number(name, settings[name])
        if isinstance(number, Rejection):
            return number
        room[name] = str(number)
    room[OVERFLOW] = settings[OVERFLOW] or REJECT
    if room[OVERFLOW] not in (REJECT, DROP_OLDEST):
        return invalid_value(
            OVERFLOW, f'"{settings[OVERFLOW]}" is none; use "{REJECT}" or "{DROP_OLDEST}"'
        )
    if _is_dlq(queue) and room != {**dict.fromkeys(ROOM, "0"), OVERFLOW: REJECT}:
        return invalid_value(
            "limit",
            f'"{queue.name}" takes every dead letter; message_ttl_ms says how long it keeps them',
        )
    cost = cost_of(queue.ring)
    if settings[COST] not in ("", cost):
        return invalid_value(
            COST,
            f'queue "{queue.name}" was made with "{cost}" and keeps it; make another queue with '
            f'"{settings[COST]}", or delete this one and make it again',
        )
    for name in HOOK_LIMITS:
        if len(settings[name].encode()) > limits.note_bytes_max:
            return invalid_value(name, f"it is longer than {limits.note_bytes_max} bytes")
    return {
        **settings,
        VISIBILITY: str(visibility_ms),
        MAX_ATTEMPTS: str(attempts),
        COST: cost,
        MESSAGE_TTL: str(ttl_ms),
        EXPIRED: expired,
        MAX_IN_FLIGHT: str(in_flight),
        **room,
    }


def _expired(queue: Queue, text: str) -> str:
    """What becomes of expired messages: as asked, or what fits the queue."""
    if _is_dlq(queue):
        return DROP
    return text if text == DROP else DEAD_LETTER


def _room_of(queue: Queue) -> Settings:
    limits = queue.limits or Limits(0, 0, 0, 0, False)
    found = {name: str(number) for name, number in zip(ROOM, limits[:4], strict=True)}
    found[OVERFLOW] = DROP_OLDEST if limits.drops_oldest else REJECT
    return found


def _is_dlq(queue: Queue) -> bool:
    return queue.dlq_name() is None


def _number(name: str, text: str) -> int | Rejection:
    """A whole number; nothing is 0."""
    if not text:
        return 0
    if not (text.isascii() and text.isdigit()) or len(text) > 18:
        return invalid_value(name, f'"{text}" is no whole number')
    return int(text)


def _follow(state: State, queue: Queue, settings: Settings) -> None:
    """The queue is what the settings say from now on."""
    queue.on_enqueue = settings[ON_ENQUEUE] or None
    queue.on_failure = settings[ON_FAILURE] or None
    queue.visibility_ms = int(settings[VISIBILITY])
    queue.max_attempts = int(settings[MAX_ATTEMPTS])
    queue.ttl_ms = int(settings[MESSAGE_TTL])
    queue.drops_expired = settings[EXPIRED] == DROP
    set_cap_of_keys(state, queue, int(settings[MAX_IN_FLIGHT]))
    row = QueueRow(
        queue.number,
        queue.group.number,
        queue.visibility_ms,
        queue.created_ns,
        queue.on_enqueue,
        queue.on_failure,
        queue.max_attempts,
        queue.version,
        queue.ring.by_bytes,
        queue.ttl_ms,
        queue.drops_expired,
        max_in_flight_per_key=queue.max_in_flight_per_key,
        max_messages=int(settings[ROOM[0]]),
        max_bytes=int(settings[ROOM[1]]),
        key_max_messages=int(settings[ROOM[2]]),
        key_max_bytes=int(settings[ROOM[3]]),
        drops_oldest=settings[OVERFLOW] == DROP_OLDEST,
        weighed_since=queue.weighed_since,
    )
    if not row.weighed_since and (row.max_bytes or row.key_max_bytes):
        row = row._replace(weighed_since=state.now)
    queue.weighed_since = row.weighed_since
    queue.limits = limits_of(row)
    ops = state.ops(state.groups[0])
    ops.append((PUT_QUEUE, queue.name.encode(), rows.queue_row(row)))
    for name, field in HOOK_LIMITS.items():
        key, text = config_key(queue.name, field), settings[name]
        stored = rows.CONFIG_PREFIX + key.encode()
        if text and state.config.get(key) != text:
            state.config[key] = text
            ops.append((PUT_STATE, stored, text.encode()))
        elif not text and state.config.pop(key, None) is not None:
            ops.append((DELETE_STATE, stored, b""))


def _put(state: State, queue: Queue, row: VersionRow) -> None:
    """Among the group's rows, so that they go with a queue that is deleted in the same turn."""
    key = version_rows.version_key(queue.number, queue.version)
    value = version_rows.version_row(row)
    state.fresh_versions[key] = value
    state.ops(queue.group).append((PUT_STATE, key, value))
