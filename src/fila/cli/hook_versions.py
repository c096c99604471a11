"""`fila hooks deploy|show|history|diff|rollback`: hooks and their versions."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from fila.cli import connection, settings
from fila.cli.failure import Failure, usage
from fila.cli.options import Subparsers, command, whole_number
from fila.cli.output import moment, say, say_json, shown, table

if TYPE_CHECKING:
    from fila.client.calls import QueueSettings
    from fila.client.sync import FilaClient

VERBS: Final = ("deploy", "show", "history", "diff", "rollback")
_VERSION: Final = whole_number(1, "a version")


def add_parsers(inner: Subparsers) -> None:
    deploy = command(
        inner,
        "deploy",
        "give a queue other hooks while it works",
        about="Give a queue other hooks while it works. What is not named stays as it is. The\n"
        "broker refuses a script that does not load, or that fails for one of the last\n"
        "messages the present script decided; then nothing changes.",
        examples="  fila hooks deploy orders --on-enqueue @policy.lua --note 'weights by plan'\n"
        "  fila hooks deploy orders --on-failure @retry.lua --fail-mode last-good\n"
        "  fila hooks deploy orders --no-on-failure",
    )
    deploy.add_argument("queue", metavar="QUEUE", help="whose hooks")
    settings.add_hook_options(deploy)
    settings.add_change_options(deploy)

    show = command(
        inner,
        "show",
        "print the scripts of a queue's hooks",
        examples="  fila hooks show orders\n  fila hooks show orders --version 2\n"
        "  fila hooks show orders --json | jq -r .settings.on_enqueue > policy.lua",
    )
    show.add_argument("queue", metavar="QUEUE", help="whose hooks")
    show.add_argument("--version", metavar="N", type=_VERSION, default=0, help="an older version")

    history = command(
        inner,
        "history",
        "list the versions of a queue's settings",
        about="List the versions of a queue's settings, the newest first: when each was made, by\n"
        "whom, what it changed and why. The newest 20 are kept.",
        examples="  fila hooks history orders",
    )
    history.add_argument("queue", metavar="QUEUE", help="whose versions")

    diff = command(
        inner,
        "diff",
        "show how two versions of a queue's settings differ",
        about="Show how two versions of a queue's settings differ, as `diff -u` does.",
        examples="  fila hooks diff orders        # the last change\n"
        "  fila hooks diff orders 2      # from version 2 to the present one\n"
        "  fila hooks diff orders 2 4",
    )
    diff.add_argument("queue", metavar="QUEUE", help="whose versions")
    diff.add_argument(
        "old", metavar="OLD", type=_VERSION, nargs="?", help="default: the one before NEW"
    )
    diff.add_argument(
        "new", metavar="NEW", type=_VERSION, nargs="?", help="default: the one that holds"
    )

    rollback = command(
        inner,
        "rollback",
        "bring the hooks of an older version back",
        about="Bring the hooks of an older version back, with their limits and fail mode; other\n"
        "settings stay as they are. It makes a new version. Without --to it is the newest\n"
        "version whose hooks were others than the present ones.",
        examples="  fila hooks rollback orders\n  fila hooks rollback orders --to 2",
    )
    rollback.add_argument("queue", metavar="QUEUE", help="whose hooks")
    rollback.add_argument("--to", metavar="N", type=_VERSION, help="which version's hooks")
    settings.add_change_options(rollback)


def run(args: argparse.Namespace) -> int:
    with connection.open_client(args) as client:
        if args.verb == "deploy":
            return _deploy(args, client)
        if args.verb == "show":
            return _show(args, client)
        if args.verb == "history":
            return _history(args, client)
        return _diff(args, client) if args.verb == "diff" else _rollback(args, client)


def _deploy(args: argparse.Namespace, client: FilaClient) -> int:
    named = settings.hooks_in(args)
    if not named:
        raise usage("give --on-enqueue, --on-failure or a limit of hooks")
    before = client.get_queue(args.queue).version
    return _changed(args, client, named, args.expect_version, before, args.note)


def _changed(
    args: argparse.Namespace,
    client: FilaClient,
    named: dict[str, str],
    expected: int,
    before: int,
    note: str,
) -> int:
    version = client.update_queue(
        args.queue, named, expected_version=expected, note=note, unrehearsed=args.unrehearsed
    )
    document = {"queue": args.queue, "version": version, "changed": version != before}
    if args.json:
        say_json(document)
    else:
        say(settings.say_changed(document))
    return 0


def _show(args: argparse.Namespace, client: FilaClient) -> int:
    found = client.get_queue(args.queue, args.version)
    if args.json:
        say_json({"queue": args.queue, **found._asdict()})
        return 0
    scripts = [(name, found.settings[name]) for name in settings.SCRIPTS if found.settings[name]]
    if not scripts:
        say(f'Queue "{shown(args.queue)}" has no hooks in version {found.version}.')
    for name, text in scripts:
        say(f"-- {name}, version {found.version}")
        say("\n".join(map(shown, text.splitlines())))
    return 0


def _history(args: argparse.Namespace, client: FilaClient) -> int:
    versions = client.list_versions(args.queue)
    if args.json:
        say_json({"queue": args.queue, "versions": [one._asdict() for one in versions]})
        return 0
    rows = [
        (one.version, moment(one.at_ms), one.who or "-", ", ".join(one.changed) or "-", one.note)
        for one in versions
    ]
    say(table(("VERSION", "MADE", "WHO", "CHANGED", "NOTE"), rows))
    return 0


def _diff(args: argparse.Namespace, client: FilaClient) -> int:
    new = client.get_queue(args.queue, args.new or 0)
    number = args.old or new.version - 1
    if not number:
        raise Failure(f'queue "{args.queue}" has one version, and nothing to compare it with')
    old = client.get_queue(args.queue, number)
    told = (f"version {old.version}", f"version {new.version}")
    if args.json:
        names = [name for name in new.settings if old.settings.get(name) != new.settings[name]]
        say_json(
            {
                "queue": args.queue,
                "old": old.version,
                "new": new.version,
                "changes": [
                    {"setting": one, "old": old.settings[one], "new": new.settings[one]}
                    for one in names
                ],
            }
        )
        return 0
    found = list(settings.difference(old.settings, new.settings, *told))
    say("\n".join(found) or f"{told[0]} and {told[1]} are the same")
    return 0


def _rollback(args: argparse.Namespace, client: FilaClient) -> int:
    present = client.get_queue(args.queue)
    wanted = client.get_queue(args.queue, args.to) if args.to else _before(args, client, present)
    named = _hooks_of(wanted)
    note = args.note or f"back to the hooks of version {wanted.version}"
    expected = args.expect_version or present.version
    return _changed(args, client, named, expected, present.version, note)


def _before(args: argparse.Namespace, client: FilaClient, present: QueueSettings) -> QueueSettings:
    """The newest version whose hooks are others."""
    for one in client.list_versions(args.queue):
        if one.version < present.version:
            found = client.get_queue(args.queue, one.version)
            if _hooks_of(found) != _hooks_of(present):
                return found
    raise Failure(
        f'queue "{args.queue}" had no other hooks in the versions that are kept',
        f"`fila hooks history {args.queue}` lists them",
    )


def _hooks_of(found: QueueSettings) -> dict[str, str]:
    return {name: found.settings[name] for name in settings.HOOKS}
