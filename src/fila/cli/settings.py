"""A queue's settings on the command line: the options that change them, and how they are shown.

Owns which option is which setting, for `queue update`, `hooks deploy` and `fila apply`. What a
setting may be is the broker's to say.
"""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from fila.cli.durations import milliseconds
from fila.cli.failure import usage
from fila.cli.options import whole_number
from fila.cli.output import duration, moment, shown
from fila.cli.script import script

if TYPE_CHECKING:
    from fila.client.sync import FilaClient

SCRIPTS: Final = ("on_enqueue", "on_failure")
LIMITS: Final = ("hook_timeout_ms", "hook_memory_limit_bytes", "fail_mode")  # of hooks
HOOKS: Final = (*SCRIPTS, *LIMITS)
LIMITED: Final = ("max_messages", "max_bytes", "key_max_messages", "key_max_bytes")
ROOM: Final = ("message_ttl_ms", "expired", *LIMITED, "overflow")  # how long, how much waits
IN_FLIGHT: Final = "max_in_flight_per_key"
NAMES: Final = (
    *SCRIPTS,
    "visibility_timeout_ms",
    "max_attempts",
    "cost",
    IN_FLIGHT,
    *ROOM,
    *LIMITS,
)
FAIL_MODES: Final = ("default", "last-good", "reject")
OVERFLOW: Final = ("reject", "drop-oldest")
EXPIRED: Final = ("dead-letter", "drop")
_UNSAID: Final = {"expired": EXPIRED[0], "overflow": OVERFLOW[0]}
ATTEMPTS_MAX: Final = 1_000_000  # as the broker's settings say


def add_hook_options(parser: argparse.ArgumentParser) -> None:
    for name in SCRIPTS:
        option = name.replace("_", "-")
        either = parser.add_mutually_exclusive_group()
        either.add_argument(f"--{option}", metavar="SCRIPT", help="Lua, or @FILE")
        either.add_argument(f"--no-{option}", action="store_true", help=f"take {name} away")
    parser.add_argument(
        "--hook-timeout",
        metavar="TIME",
        type=milliseconds(),
        help="time limit of a call of a hook: 5ms, 1s (0: the broker's default)",
    )
    parser.add_argument(
        "--hook-memory",
        metavar="BYTES",
        type=whole_number(0, "a number of bytes"),
        help="memory of each script (0: the broker's default)",
    )
    parser.add_argument(
        "--fail-mode",
        choices=FAIL_MODES,
        help="what a message gets that its hook has no verdict for",
    )


def add_room_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--message-ttl",
        metavar="TIME",
        type=milliseconds(),
        help="how long a message may wait from its enqueue: 30s, 15m, 7d (0: without end)",
    )
    parser.add_argument(
        "--expired",
        choices=EXPIRED,
        help="what becomes of a message that waited too long: a dead letter (the default), or "
        "nothing",
    )
    _add_limit_options(parser)


def _add_limit_options(parser: argparse.ArgumentParser) -> None:
    for option, what, whose in (
        ("--max-messages", "messages", "in the queue"),
        ("--max-bytes", "bytes of headers and payloads", "in the queue"),
        ("--key-max-messages", "messages", "of one fairness key"),
        ("--key-max-bytes", "bytes of headers and payloads", "of one fairness key"),
    ):
        parser.add_argument(
            option,
            metavar="N",
            type=whole_number(0, f"a number of {what.split()[0]}"),
            help=f"how many {what} may wait {whose} (0: any number)",
        )
    parser.add_argument(
        "--overflow",
        choices=OVERFLOW,
        help="what becomes of a message there is no room for: it is refused (the default), or the "
        "oldest of its key go",
    )


def room_in(args: argparse.Namespace) -> dict[str, str]:
    """The settings about how long and how many messages wait that the options name."""
    named = {"message_ttl_ms": args.message_ttl}
    named.update({one: getattr(args, one) for one in ("expired", *LIMITED, "overflow")})
    return {name: str(value) for name, value in named.items() if value is not None}


def add_change_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--expect-version",
        metavar="N",
        type=whole_number(1, "a version"),
        default=0,
        help="refuse if the queue has another version by now",
    )
    parser.add_argument("--note", metavar="TEXT", default="", help="why; kept in the history")
    parser.add_argument(
        "--unrehearsed",
        action="store_true",
        help="do not try new hooks on messages that the present ones decided",
    )


def hooks_in(args: argparse.Namespace) -> dict[str, str]:
    """The settings about hooks that the options name."""
    found: dict[str, str] = {}
    for name in SCRIPTS:
        text = script(getattr(args, name))
        if text == "":
            option = name.replace("_", "-")
            raise usage(f"the script is empty; --no-{option} takes the hook away")
        if text is not None:
            found[name] = text
        elif getattr(args, f"no_{name}"):
            found[name] = ""
    if args.hook_timeout is not None:
        found["hook_timeout_ms"] = str(args.hook_timeout or "")
    if args.hook_memory is not None:
        found["hook_memory_limit_bytes"] = str(args.hook_memory or "")
    if args.fail_mode is not None:
        found["fail_mode"] = args.fail_mode
    return found


def add_in_flight_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--max-in-flight-per-key",
        metavar="N",
        type=whole_number(0, "a number of messages"),
        help="no more messages of one fairness key leased at once (0: no limit)",
    )


def attempts(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > ATTEMPTS_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 to {ATTEMPTS_MAX}")
    return int(text)


def create(client: FilaClient, name: str, settings: Mapping[str, str]) -> int:
    """A queue with these settings; the version it has then."""
    client.create_queue(
        name,
        on_enqueue=settings.get("on_enqueue") or None,
        on_failure=settings.get("on_failure") or None,
        visibility_timeout_ms=int(settings.get("visibility_timeout_ms") or 0),
        max_attempts=int(settings.get("max_attempts") or 0),
        cost=settings.get("cost", ""),
    )
    # Those that a queue has anyway need no change.
    limits = {
        one: settings[one]
        for one in (IN_FLIGHT, *ROOM, *LIMITS)
        if settings.get(one, "") not in ("", "0", _UNSAID.get(one))
    }
    return client.update_queue(name, limits) if limits else 1


def setting_text(name: str, text: str) -> str:
    """A setting that is no script, in a few words."""
    if name == "message_ttl_ms" and text in ("", "0"):
        return "without end"
    if name in ("visibility_timeout_ms", "message_ttl_ms") and text.isdigit():
        return duration(int(text))
    if name in LIMITED:
        return "any number" if text in ("", "0") else shown(text)
    if name in ("max_attempts", IN_FLIGHT):
        return "no limit" if text in ("", "0") else shown(text)
    return shown(text) if text else "the default"


def lines(settings: Mapping[str, str]) -> str:
    """All of them, scripts with their number of lines."""
    told = []
    for name, text in settings.items():
        if name in SCRIPTS:
            count = len(text.splitlines())
            told.append(f"{name}: {f'{count} lines' if count != 1 else '1 line'}")
            if not text:
                told[-1] = f"{name}: none"
        else:
            told.append(f"{name}: {setting_text(name, text)}")
    return "\n".join(told)


def difference(
    before: Mapping[str, str], after: Mapping[str, str], old: str, new: str
) -> Iterator[str]:
    """What differs, line by line as `diff -u` has it; nothing if they are the same."""
    for name in {**before, **after}:
        was, now = before.get(name, ""), after.get(name, "")
        if was == now:
            continue
        if name in SCRIPTS:
            found = difflib.unified_diff(
                was.splitlines(),
                now.splitlines(),
                f"{name} ({old})",
                f"{name} ({new})",
                lineterm="",
            )
            yield from map(shown, found)
        else:
            if name in before:
                yield f"-{name}: {setting_text(name, was)}"
            yield f"+{name}: {setting_text(name, now)}"


def made_by(at_ms: int, who: str, note: str) -> str:
    """When a version was made, by whom and why."""
    by = f" by {shown(who)}" if who else ""
    return f"{moment(at_ms)} UTC{by}{f': {shown(note)}' if note else ''}"


def say_changed(document: dict[str, Any]) -> str:
    queue, version = shown(document["queue"]), document["version"]
    if document["changed"]:
        return f'Queue "{queue}" has version {version} now'
    return f'Queue "{queue}" is so already (version {version})'
