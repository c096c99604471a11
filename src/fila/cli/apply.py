"""`fila apply FILE`: bring queues to what a file declares, or show what differs."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fila.cli import connection, declared, settings
from fila.cli.failure import Failure
from fila.cli.options import Subparsers, command
from fila.cli.output import count_of, say, say_json, shown

if TYPE_CHECKING:
    from fila.client.sync import FilaClient

EXIT_DIFFERS: Final = 2
_DEFAULTS: Final = {
    "visibility_timeout_ms": "30000",
    "max_attempts": "0",
    "cost": "messages",
    "message_ttl_ms": "0",
    settings.IN_FLIGHT: "0",
    **dict.fromkeys(settings.LIMITED, "0"),
}


class Plan(NamedTuple):
    """What one queue needs: `version` 0 is to be created, no names is nothing."""

    queue: str
    version: int
    before: dict[str, str]
    named: dict[str, str]  # those that differ

    @property
    def action(self) -> str:
        return "create" if not self.version else "update" if self.named else "none"


def add_parser(subparsers: Subparsers) -> None:
    parser = command(
        subparsers,
        "apply",
        "bring queues to what a file declares",
        about="Create the queues of a TOML file that are not there, and change the settings of\n"
        "those that are others. What the file does not name stays as it is: nothing is\n"
        "deleted, and an empty text takes a hook or a setting away.\n\n"
        "The exit code is 0 when all is as declared, 1 when something failed, and with\n"
        "--dry-run 2 when there are differences. `fila queue export` writes such a file.",
        examples="  fila apply queues.toml --dry-run\n"
        "  fila apply queues.toml --note 'release 12'\n"
        "  fila queue export > queues.toml",
    )
    parser.add_argument("file", metavar="FILE", help="what is declared, as TOML")
    parser.add_argument("--dry-run", action="store_true", help="show what differs, change nothing")
    parser.add_argument("--note", metavar="TEXT", default="", help="why; kept in the history")
    parser.add_argument(
        "--unrehearsed",
        action="store_true",
        help="do not try new hooks on messages that the present ones decided",
    )


def run(args: argparse.Namespace) -> int:
    wanted = declared.read(args.file)
    with connection.open_client(args) as client:
        plans = [_plan(client, name, named) for name, named in wanted.queues.items()]
        config = client.list_config() if wanted.config else {}
        writes = {key: text for key, text in wanted.config.items() if config.get(key, "") != text}
        versions = {plan.queue: plan.version for plan in plans}
        if not args.dry_run:
            for plan in plans:
                versions[plan.queue] = _carry_out(args, client, plan)
            for key, text in writes.items():
                client.set_config(key, text)
    differs = bool(writes) or any(plan.action != "none" for plan in plans)
    if args.json:
        say_json(_document(plans, config, writes, versions, applied=not args.dry_run))
    else:
        _say(plans, config, writes, applied=not args.dry_run)
    return EXIT_DIFFERS if args.dry_run and differs else 0


def _plan(client: FilaClient, queue: str, named: dict[str, str]) -> Plan:
    from fila.client.errors import QueueNotFoundError

    named = {one: text or _DEFAULTS.get(one, "") for one, text in named.items()}
    if named.get("visibility_timeout_ms") == "0":
        named["visibility_timeout_ms"] = _DEFAULTS["visibility_timeout_ms"]
    try:
        found = client.get_queue(queue)
    except QueueNotFoundError:
        return Plan(queue, 0, {}, {one: text for one, text in named.items() if text})
    present = {"cost": _DEFAULTS["cost"], **found.settings}  # older brokers know no other cost
    differing = {one: text for one, text in named.items() if present.get(one) != text}
    cost = differing.get("cost")
    if cost is not None:
        raise Failure(
            f'queue "{shown(queue)}" was made with the cost "{present["cost"]}" and '
            f'keeps it; the file says "{shown(cost)}". Nothing was changed. Declare another queue, '
            "or delete this one and apply again"
        )
    return Plan(queue, found.version, present, differing)


def _carry_out(args: argparse.Namespace, client: FilaClient, plan: Plan) -> int:
    """The version the queue has then."""
    if plan.action == "create":
        return settings.create(client, plan.queue, plan.named)
    if plan.action == "none":
        return plan.version
    return client.update_queue(
        plan.queue,
        plan.named,
        expected_version=plan.version,
        note=args.note,
        unrehearsed=args.unrehearsed,
    )


def _say(
    plans: list[Plan], config: dict[str, str], writes: dict[str, str], *, applied: bool
) -> None:
    verbs = {"create": "created", "update": "updated"} if applied else {}
    for plan in plans:
        if plan.action != "none":
            verb = verbs.get(plan.action, f"would be {plan.action}d")
            say(f'queue "{shown(plan.queue)}" {verb}')
            after = {**plan.before, **plan.named}
            for line in settings.difference(plan.before, after, "present", "declared"):
                say(f"  {line}")
    for key, text in writes.items():
        say(f'config "{shown(key)}": {_value(config.get(key, ""))} -> {_value(text)}')
    if not writes and all(plan.action == "none" for plan in plans):
        say(f"{count_of(len(plans), 'queue')}: all is as declared")


def _value(text: str) -> str:
    return shown(text) if text else "not set"


def _document(
    plans: list[Plan],
    config: dict[str, str],
    writes: dict[str, str],
    versions: dict[str, int],
    *,
    applied: bool,
) -> dict[str, Any]:
    return {
        "applied": applied,
        "queues": [
            {
                "queue": plan.queue,
                "action": plan.action,
                "version": versions[plan.queue],
                "changes": [
                    {"setting": one, "old": plan.before.get(one, ""), "new": text}
                    for one, text in plan.named.items()
                ],
            }
            for plan in plans
        ],
        "config": [
            {"key": key, "old": config.get(key, ""), "new": text} for key, text in writes.items()
        ],
    }
