"""`fila queue update|settings|export`: what queues are told to be, seen and changed."""

from __future__ import annotations

import argparse
from typing import Final

from fila.cli import connection, declared, settings
from fila.cli.durations import milliseconds
from fila.cli.failure import usage
from fila.cli.options import Subparsers, command, whole_number
from fila.cli.output import say, say_json, shown

VERBS: Final = ("update", "settings", "export")


def add_parsers(inner: Subparsers) -> None:
    update = command(
        inner,
        "update",
        "change the settings of a queue while it works",
        about="Change the settings of a queue while it works: all that are named or, if one of\n"
        "them cannot be, none. What is not named stays as it is. Each change makes a version\n"
        "with time, author and note; `fila hooks history` lists them, and --from-version\n"
        "brings one back.\n\n"
        "A message that waits keeps the place the old hooks gave it, and one that somebody\n"
        "holds its time; what comes, fails or is delivered from now on follows the new\n"
        "settings.",
        examples="  fila queue update orders --visibility-timeout 2m --max-attempts 5\n"
        "  fila queue update orders --message-ttl 7d --expired drop\n"
        "  fila queue update orders --key-max-messages 100000\n"
        "  fila queue update orders --on-failure @retry.lua --note 'back off longer'\n"
        "  fila queue update renders --max-in-flight-per-key 4\n"
        "  fila queue update orders --expect-version 3 --no-on-enqueue\n"
        "  fila queue update orders --from-version 2",
    )
    update.add_argument("name", metavar="NAME", help="the queue to change")
    settings.add_hook_options(update)
    update.add_argument(
        "--visibility-timeout",
        metavar="TIME",
        type=milliseconds(),
        help="how long a consumer may keep a message: 1s or more (0: the default, 30s)",
    )
    update.add_argument(
        "--max-attempts",
        metavar="N",
        type=settings.attempts,
        help="a message that failed N times is a dead letter (0: no limit)",
    )
    settings.add_room_options(update)
    settings.add_in_flight_option(update)
    update.add_argument(
        "--from-version",
        metavar="N",
        type=whole_number(1, "a version"),
        default=0,
        help="bring that version back, with what else is named on top",
    )
    settings.add_change_options(update)

    show = command(
        inner,
        "settings",
        "show what a queue is told to be",
        about="Show the settings of a queue and which version of them that is.",
        examples="  fila queue settings orders\n"
        "  fila queue settings orders --version 2 --json | jq -r .settings.on_enqueue",
    )
    show.add_argument("name", metavar="NAME", help="the queue to show")
    show.add_argument(
        "--version",
        metavar="N",
        type=whole_number(1, "a version"),
        default=0,
        help="an older version (default: the one that holds)",
    )

    export = command(
        inner,
        "export",
        "write the settings of queues as a file for `fila apply`",
        about="Write the settings of queues as TOML, as `fila apply` reads it. Without a name\n"
        "those of all queues the key may see; dead letter queues go with theirs.",
        examples="  fila queue export > queues.toml\n  fila queue export orders --config",
    )
    export.add_argument("name", metavar="NAME", nargs="*", help="the queues (default: all)")
    export.add_argument(
        "--config", action="store_true", help="runtime settings too, throttle rates for example"
    )


def run(args: argparse.Namespace) -> int:
    if args.verb == "export":
        return _export(args)
    return _update(args) if args.verb == "update" else _show(args)


def _update(args: argparse.Namespace) -> int:
    named = settings.hooks_in(args)
    if args.visibility_timeout is not None:
        named["visibility_timeout_ms"] = str(args.visibility_timeout or "")
    if args.max_attempts is not None:
        named["max_attempts"] = str(args.max_attempts)
    named.update(settings.room_in(args))
    if args.max_in_flight_per_key is not None:
        named[settings.IN_FLIGHT] = str(args.max_in_flight_per_key)
    if not named and not args.from_version:
        raise usage("name a setting to change, such as --max-attempts 5")
    with connection.open_client(args) as client:
        before = client.get_queue(args.name).version
        version = client.update_queue(
            args.name,
            named,
            expected_version=args.expect_version,
            from_version=args.from_version,
            note=args.note,
            unrehearsed=args.unrehearsed,
        )
    document = {"queue": args.name, "version": version, "changed": version != before}
    if args.json:
        say_json(document)
    else:
        say(settings.say_changed(document))
    return 0


def _export(args: argparse.Namespace) -> int:
    with connection.open_client(args) as client:
        names = args.name or [one.name for one in client.list_queues()]
        if not args.name:
            made_along = {f"{one}.dlq" for one in names}
            names = [one for one in names if one not in made_along]
        found = {name: client.get_queue(name).settings for name in names}
        config = client.list_config() if args.config else {}
    config = {key: text for key, text in config.items() if not key.startswith("lua:")}
    if args.json:
        say_json({"queues": found, "config": config})
    else:
        say(declared.toml(found, config))
    return 0


def _show(args: argparse.Namespace) -> int:
    with connection.open_client(args) as client:
        found = client.get_queue(args.name, args.version)
    if args.json:
        say_json({"queue": args.name, **found._asdict()})
        return 0
    say(f'Queue "{shown(args.name)}", version {found.version}')
    say(f"made {settings.made_by(found.at_ms, found.who, found.note)}")
    say(settings.lines(found.settings))
    return 0
