"""`fila key`: one tenant of a queue. Pausing and resuming it; its override: `key_override`."""

from __future__ import annotations

import argparse

from fila.cli import connection, key_override
from fila.cli.options import Subparsers, command, verbs
from fila.cli.output import say, say_json, shown


def add_parser(subparsers: Subparsers) -> None:
    parser = command(
        subparsers,
        "key",
        "pause a fairness key; override its weight and rate",
        about="Pause and resume one fairness key of a queue, or override its weight and rate.\n"
        "`fila explain QUEUE` shows the keys. API keys are another thing: see `fila auth`.",
        examples="  fila key pause orders acme --reason migration\n  fila key resume orders acme\n"
        "  fila key set orders acme --weight 10 --expires-in 2h",
    )
    inner = verbs(parser)
    pause = command(
        inner,
        "pause",
        "stop delivering a key's messages",
        about="Stop delivering a fairness key's messages until it is resumed. New ones are still\n"
        "stored, and what a consumer holds may be finished. It lasts through restarts.",
        examples='  fila key pause orders acme --reason "floods us, ticket 812"',
    )
    pause.add_argument("queue", metavar="QUEUE", help="the queue")
    pause.add_argument("key", metavar="KEY", help="the fairness key")
    pause.add_argument("--reason", metavar="TEXT", default="", help="why; shown by fila explain")
    resume = command(
        inner, "resume", "resume a paused key", examples="  fila key resume orders acme"
    )
    resume.add_argument("queue", metavar="QUEUE", help="the queue")
    resume.add_argument("key", metavar="KEY", help="the fairness key")
    key_override.add_parsers(inner)


def run(args: argparse.Namespace) -> int:
    if args.verb in key_override.VERBS:
        return key_override.run(args)
    paused = args.verb == "pause"
    with connection.open_client(args) as client:
        if paused:
            client.pause_key(args.queue, args.key, args.reason)
        else:
            client.resume_key(args.queue, args.key)
    if args.json:
        say_json({"queue": args.queue, "key": args.key, "paused": paused})
    else:
        done = "Paused" if paused else "Resumed"
        say(f'{done} "{shown(args.key)}" of queue "{shown(args.queue)}"')
    return 0
