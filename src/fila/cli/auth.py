"""`fila auth`: API keys and what they may do."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable

from fila.cli import connection
from fila.cli.durations import seconds
from fila.cli.failure import Failure, usage
from fila.cli.options import Subparsers, command, verbs
from fila.cli.output import moment, say, say_json, shown, table
from fila.wire import signing


def add_parser(subparsers: Subparsers) -> None:
    parser = command(
        subparsers,
        "auth",
        "make, list and revoke API keys, and say what they may do",
        about="API keys and their permissions. Needs a key that may administer everything:\n"
        "the bootstrap key, a superadmin key, or one with admin:*.",
        examples="  fila auth create billing\n"
        "  fila auth acl set 3f2a… produce:orders consume:orders.*\n"
        "  fila auth revoke 3f2a…",
    )
    inner = verbs(parser)

    create = command(
        inner,
        "create",
        "make an API key; its token is shown this once",
        examples="  fila auth create billing --expires-in 30d\n"
        "  fila auth create ops --superadmin\n"
        "  fila auth create worker --sqs\n"
        "  fila auth create --name billing --expires-at 1790000000000",
    )
    create.add_argument("name", metavar="NAME", nargs="?", help="whose key it is")
    create.add_argument("--name", dest="named", metavar="NAME", help="the same, as an option")
    create.add_argument("--superadmin", action="store_true", help="it may do everything")
    create.add_argument(
        "--sqs",
        action="store_true",
        help="show the key as SQS clients need it, too: access key id and secret access key",
    )
    create.add_argument(
        "--expires-in", metavar="TIME", type=seconds, help="for example 90s, 15m, 12h, 30d"
    )
    create.add_argument(
        "--expires-at", metavar="MS", default="", help="milliseconds since 1970-01-01 UTC"
    )

    command(inner, "list", "list API keys", examples="  fila auth list")

    revoke = command(
        inner,
        "revoke",
        "revoke an API key, on open connections too",
        examples="  fila auth revoke 3f2a9c0d1e2b4a5f",
    )
    revoke.add_argument("key_id", metavar="KEY_ID", help="as `fila auth list` shows it")

    acl = verbs(
        command(
            inner,
            "acl",
            "what a key may do",
            examples="  fila auth acl get 3f2a…\n  fila auth acl set 3f2a… produce:orders",
        )
    )
    set_ = command(
        acl,
        "set",
        "replace all permissions of a key",
        about="Replace all permissions of a key. A permission is kind:pattern: produce, consume\n"
        'or admin, and a queue name, "prefix.*" or "*". Without any the key may do nothing.',
        examples="  fila auth acl set 3f2a… produce:orders 'consume:orders.*'\n"
        "  fila auth acl set 3f2a… --perm produce:orders --perm 'consume:orders.*'\n"
        "  fila auth acl set 3f2a… 'admin:*'",
    )
    set_.add_argument("key_id", metavar="KEY_ID", help="as `fila auth list` shows it")
    set_.add_argument(
        "permissions", metavar="KIND:PATTERN", nargs="*", help="for example produce:orders"
    )
    set_.add_argument(
        "--perm",
        metavar="KIND:PATTERN",
        action="append",
        default=[],
        help="the same, as an option; may be repeated",
    )
    for verb, summary, example in (
        ("add", "give a key permissions it does not have", "produce:orders 'consume:orders.*'"),
        ("remove", "take permissions from a key", "consume:orders.dlq"),
    ):
        change = command(
            acl,
            verb,
            summary,
            about=f"{summary[0].upper()}{summary[1:]}; the others stay. It reads the list and\n"
            "writes it again: of two who do so at the same moment the later one wins.",
            examples=f"  fila auth acl {verb} 3f2a… {example}",
        )
        change.add_argument("key_id", metavar="KEY_ID", help="as `fila auth list` shows it")
        change.add_argument(
            "permissions", metavar="KIND:PATTERN", nargs="+", help="for example produce:orders"
        )
    get = command(acl, "get", "show what a key may do", examples="  fila auth acl get 3f2a…")
    get.add_argument("key_id", metavar="KEY_ID", help="as `fila auth list` shows it")
    acl.dest = "acl_verb"  # the outer verb is "acl"
    acl.help = "set, add, remove or get"


def run(args: argparse.Namespace) -> int:
    if args.verb == "create":
        return _create(args)
    if args.verb == "list":
        return _list(args)
    if args.verb == "revoke":
        return _revoke(args)
    if args.acl_verb in ("add", "remove"):
        return _change_acl(args)
    return _set_acl(args) if args.acl_verb == "set" else _get_acl(args)


def _create(args: argparse.Namespace) -> int:
    name = _name(args)
    expires_ms = _expiry_ms(args)
    with connection.open_client(args) as client:
        key = client.create_api_key(name, expires_at_ms=expires_ms, is_superadmin=args.superadmin)
    pair: dict[str, str] = {}
    if args.sqs:
        secret = signing.secret_access_key(signing.digest_of(key.key))
        pair = {
            "aws_access_key_id": signing.access_key_id(key.key_id),
            "aws_secret_access_key": secret,
        }
    if args.json:
        say_json(
            {"key_id": key.key_id, "token": key.key, "name": name,
             "is_superadmin": key.is_superadmin, "expires_at_ms": expires_ms, **pair}
        )  # fmt: skip
        return 0
    say(f'Created API key "{shown(name)}"')
    say(f"Key ID     : {key.key_id}")
    say(f"Token      : {key.key}")
    if key.is_superadmin:
        say("Superadmin : yes")
    for field, value in pair.items():
        say(f"{field} = {value}")
    say("Keep the token: it is not shown again.")
    return 0


def _list(args: argparse.Namespace) -> int:
    with connection.open_client(args) as client:
        keys = client.list_api_keys()
    if args.json:
        say_json({"keys": [key._asdict() for key in keys]})
    elif not keys:
        say("No API keys found.")
    else:
        rows = [
            (key.key_id, key.name, moment(key.created_at_ms), moment(key.expires_at_ms) or "never",
             "yes" if key.is_superadmin else "no")
            for key in keys
        ]  # fmt: skip
        say(table(("KEY ID", "NAME", "CREATED", "EXPIRES", "SUPERADMIN"), rows))
    return 0


def _revoke(args: argparse.Namespace) -> int:
    with connection.open_client(args) as client:
        client.revoke_api_key(args.key_id)
    if args.json:
        say_json({"key_id": args.key_id, "revoked": True})
    else:
        say(f"Revoked API key {shown(args.key_id)}")
    return 0


def _set_acl(args: argparse.Namespace) -> int:
    permissions = [_permission(text) for text in [*args.permissions, *args.perm]]
    with connection.open_client(args) as client:
        client.set_acl(args.key_id, permissions)
    if args.json:
        say_json({"key_id": args.key_id, "permissions": _documents(permissions)})
    else:
        say(f"ACL updated for key {shown(args.key_id)}")
    return 0


def _change_acl(args: argparse.Namespace) -> int:
    named = [_permission(text) for text in args.permissions]
    with connection.open_client(args) as client:
        before = [(kind, pattern) for kind, pattern in client.get_acl(args.key_id).permissions]
        if args.acl_verb == "add":
            after = list(dict.fromkeys([*before, *named]))
        else:
            for kind, pattern in named:
                if (kind, pattern) not in before:
                    raise Failure(
                        f"key {args.key_id} has no permission {kind}:{pattern}",
                        f"`fila auth acl get {args.key_id}` shows those it has",
                    )
            after = [one for one in before if one not in named]
        if after != before:
            client.set_acl(args.key_id, after)
    if args.json:
        say_json({"key_id": args.key_id, "permissions": _documents(after)})
    elif after == before:
        say(f"Key {shown(args.key_id)} has these permissions already")
    else:
        say(f"ACL updated for key {shown(args.key_id)}")
    return 0


def _get_acl(args: argparse.Namespace) -> int:
    with connection.open_client(args) as client:
        acl = client.get_acl(args.key_id)
    if args.json:
        say_json(
            {"key_id": args.key_id, "is_superadmin": acl.is_superadmin,
             "permissions": _documents(acl.permissions)}
        )  # fmt: skip
        return 0
    if acl.is_superadmin:
        say("Superadmin: yes (all permissions granted)")
    say("Permissions:")
    for kind, pattern in acl.permissions:
        say(f"  {shown(kind)}:{shown(pattern)}")
    if not acl.permissions and not acl.is_superadmin:
        say("  (none)")
    return 0


def _documents(permissions: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"kind": kind, "pattern": pattern} for kind, pattern in permissions]


def _name(args: argparse.Namespace) -> str:
    """Given in one of two forms: `create NAME` or `create --name NAME`."""
    given = {name for name in (args.name, args.named) if name is not None}
    if not given:
        raise usage("a name is missing: fila auth create NAME")
    if len(given) > 1:
        raise usage("two different names are given; use NAME or --name NAME")
    return str(given.pop())


def _expiry_ms(args: argparse.Namespace) -> int:
    if args.expires_in and args.expires_at:
        raise usage("use --expires-in or --expires-at, not both")
    if args.expires_in:
        return int(1000 * (time.time() + args.expires_in))
    if not args.expires_at:
        return 0
    if not args.expires_at.isdigit():
        raise usage(f'"{args.expires_at}" is not a time in milliseconds, such as 1790000000000')
    return int(args.expires_at)


def _permission(text: str) -> tuple[str, str]:
    kind, colon, pattern = text.partition(":")
    if not colon:
        raise usage(f'"{text}" is not kind:pattern, for example produce:orders')
    return kind, pattern
