"""`fila queue create|update|settings|export|delete|list|inspect|peek|pause|resume|purge`."""

from __future__ import annotations

import argparse
import sys

from fila.cli import connection, pause_purge, peek, queue_update, reclassify, standing, stats
from fila.cli.durations import milliseconds
from fila.cli.options import Subparsers, command, verbs
from fila.cli.output import count_of, note, say, say_json, shown
from fila.cli.script import script
from fila.cli.settings import (
    add_in_flight_option,
    add_room_options,
    attempts,
    create,
    room_in,
)


def add_parser(subparsers: Subparsers) -> None:
    parser = command(
        subparsers,
        "queue",
        "create, change, delete, list, inspect, pause and purge queues",
        examples="  fila queue create orders\n  fila queue list\n  fila queue inspect orders",
    )
    inner = verbs(parser)

    create = command(
        inner,
        "create",
        "create a queue and its dead letter queue",
        about="Create a queue and its dead letter queue, NAME.dlq.\n\n"
        "Hooks are Lua: on_enqueue(msg) decides a message's fairness key, weight and throttle\n"
        "keys, on_failure(msg) whether it is retried or dead-lettered. A SCRIPT that begins\n"
        "with @ names a file.",
        examples="  fila queue create orders\n"
        "  fila queue create orders --on-enqueue @policy.lua --visibility-timeout 60s\n"
        "  fila queue create mails --max-attempts 5\n"
        "  fila queue create uploads --cost bytes\n"
        "  fila queue create offers --message-ttl 15m --expired drop\n"
        "  fila queue create renders --max-in-flight-per-key 4\n"
        "  fila queue create orders --on-enqueue 'function on_enqueue(msg)\n"
        '    return { fairness_key = msg.headers["tenant"] }\n'
        "  end'\n"
        "  fila queue create refunds --like orders",
    )
    create.add_argument("name", metavar="NAME", help="1 to 255 bytes without control characters")
    create.add_argument(
        "--if-missing", action="store_true", help="leave a queue that is there already as it is"
    )
    create.add_argument(
        "--like",
        metavar="QUEUE",
        help="with the settings of that queue; what else is named comes on top",
    )
    create.add_argument("--on-enqueue", metavar="SCRIPT", help="Lua, or @FILE")
    create.add_argument("--on-failure", metavar="SCRIPT", help="Lua, or @FILE")
    create.add_argument(
        "--visibility-timeout",
        metavar="TIME",
        type=milliseconds(),
        help="how long a consumer may keep a message before it is retried; 1s or more, a bare "
        "number is in ms (0, the default, stands for 30s)",
    )
    create.add_argument(
        "--max-attempts",
        metavar="N",
        type=attempts,
        help="a message that failed N times is a dead letter, whatever the hook says "
        "(0, the default: no limit)",
    )
    create.add_argument(
        "--cost",
        choices=("messages", "bytes"),
        help="what a message costs its fairness key: 1 (messages, the default), or the bytes of "
        "its headers and payload, so that keys share bytes by weight; "
        "a queue keeps it for life",
    )

    add_room_options(create)
    add_in_flight_option(create)

    queue_update.add_parsers(inner)
    reclassify.add_parser(inner)

    delete = command(
        inner,
        "delete",
        "delete a queue with all its messages",
        about="Delete a queue, all its messages and its dead letter queue. It cannot be undone,\n"
        "so it asks first where somebody sits at a terminal; a script is not asked.",
        examples="  fila queue delete orders\n  fila queue delete orders --yes",
    )
    delete.add_argument("name", metavar="NAME", help="the queue to delete")
    delete.add_argument("--yes", action="store_true", help="do not ask")

    command(
        inner,
        "list",
        "list all queues",
        about="List all queues, dead letter queues included. DEPTH counts messages that wait,\n"
        "IN_FLIGHT those a consumer holds.",
        examples="  fila queue list\n  fila queue list --json | jq -r '.queues[].name'",
    )

    pause_purge.add_parsers(inner)

    inspect = command(
        inner,
        "inspect",
        "show one queue in detail",
        about="Show one queue in detail: its counts, its fairness keys, and its throttle keys.",
        examples="  fila queue inspect orders\n  fila queue inspect orders.dlq",
    )
    inspect.add_argument("name", metavar="NAME", help="the queue to show")

    peek.add_parser(inner)


def run(args: argparse.Namespace) -> int:
    if args.verb in pause_purge.VERBS:
        return pause_purge.run(args)
    if args.verb == "reclassify":
        return reclassify.run(args)
    if args.verb in queue_update.VERBS:
        return queue_update.run(args)
    if args.verb == "create":
        return _create(args)
    if args.verb == "delete":
        return _delete(args)
    if args.verb == "list":
        return _list(args)
    if args.verb == "peek":
        return peek.run(args)
    return stats.show_one(args, args.name)


def _create(args: argparse.Namespace) -> int:
    named = {
        "on_enqueue": script(args.on_enqueue),
        "on_failure": script(args.on_failure),
        "visibility_timeout_ms": args.visibility_timeout,
        "max_attempts": args.max_attempts,
        "cost": args.cost,
        "max_in_flight_per_key": args.max_in_flight_per_key,
    }
    created = True
    with connection.open_client(args) as client:
        from fila.client.errors import QueueAlreadyExistsError

        settings = client.get_queue(args.like).settings if args.like is not None else {}
        settings.update({name: str(value) for name, value in named.items() if value is not None})
        settings.update(room_in(args))
        try:
            create(client, args.name, settings)
        except QueueAlreadyExistsError:
            if not args.if_missing:
                raise
            created = False
    if args.json:
        say_json({"queue": args.name, "created": created})
    elif created:
        say(f'Created queue "{shown(args.name)}"')
    else:
        say(f'Queue "{shown(args.name)}" is there already')
    return 0


def _delete(args: argparse.Namespace) -> int:
    with connection.open_client(args) as client:
        if not args.yes and sys.stdin.isatty():
            depth = client.get_stats(args.name).depth
            what = f'queue "{shown(args.name)}" and its dead letters'
            if not pause_purge.agreed(f"Delete {what}, {count_of(depth, 'waiting message')}?"):
                note("Nothing was deleted.")
                return 1
        client.delete_queue(args.name)
    if args.json:
        say_json({"queue": args.name, "deleted": True})
    else:
        say(f'Deleted queue "{shown(args.name)}"')
    return 0


def _list(args: argparse.Namespace) -> int:
    with connection.open_client(args) as client:
        queues = client.list_queues()
        stands = standing.of_queues(client)
    if args.json:
        say_json({"queues": [stats.summary_document(queue, stands) for queue in queues]})
    else:
        say(stats.summaries_text(queues, stands) if queues else "No queues found.")
    return 0
