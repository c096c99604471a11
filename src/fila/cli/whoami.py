"""`fila whoami`: who the broker takes the caller for, and what it may do."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fila.cli import connection
from fila.cli.options import Subparsers, command
from fila.cli.output import moment, say, say_json, shown

if TYPE_CHECKING:
    from fila.client.calls import Caller


def add_parser(subparsers: Subparsers) -> None:
    command(
        subparsers,
        "whoami",
        "say which API key this is, and what it may do",
        about="Ask the broker which key it was shown. Every key may ask, whatever it may do\n"
        "otherwise.",
        examples="  fila whoami\n  fila whoami --json | jq .permissions",
    )


def run(args: argparse.Namespace) -> int:
    with connection.open_client(args) as client:
        caller = client.who_am_i()
    if args.json:
        permissions = [{"kind": kind, "pattern": pattern} for kind, pattern in caller.permissions]
        known = caller._asdict()
        del known["version"], known["form"]  # `fila version` tells these
        say_json({**known, "permissions": permissions})
        return 0
    say(f"{'Key':<11}: {_name(caller)}")
    if caller.key_id:
        say(f"{'Key ID':<11}: {shown(caller.key_id)}")
    if caller.expires_at_ms:
        say(f"{'Expires':<11}: {moment(caller.expires_at_ms)} UTC")
    if caller.is_superadmin:
        say(f"{'May':<11}: everything")
    elif not caller.permissions:
        say(f"{'May':<11}: nothing; `fila auth acl set` gives permissions")
    else:
        for at, (kind, pattern) in enumerate(caller.permissions):
            say(f"{'' if at else 'May':<11}{' ' if at else ':'} {shown(f'{kind}:{pattern}')}")
    return 0


def _name(caller: Caller) -> str:
    if not caller.auth:
        return "none; this broker asks for no key"
    return shown(caller.name) if caller.key_id else "the bootstrap key"
