"""`fila hooks status QUEUE`: what a queue's hooks did, whom they fail for, and what follows."""

from __future__ import annotations

import argparse
from typing import Any

from fila.cli import connection
from fila.cli.output import say, say_json, shown


def run(args: argparse.Namespace) -> int:
    with connection.open_client(args) as client:
        hooks = client.explain(args.queue, keys_max=0).get("hook_status", {})
    if args.json:
        say_json({"queue": args.queue, "hooks": hooks})
        return 0
    present = {name: one for name, one in hooks.items() if one is not None}
    if not present:
        say(f'Queue "{shown(args.queue)}" has no hooks.')
    else:
        say("\n\n".join([_text(name, one) for name, one in present.items()]))
    return 0


def _text(name: str, one: dict[str, Any]) -> str:
    lines = [
        f"{name}: breaker {one['breaker']}, fail mode {one['fail_mode']}",
        f"  ran for {one['executions']} messages; failed: {one['errors']} errors, "
        f"{one['timeouts']} timeouts, {one['memory']} over the memory limit",
        f"  not asked: {one['bypassed']} (breaker open), {one['kept_out']} (key in quarantine), "
        f"{one['late']} (late)",
    ]
    keys = [shown(key) for key in one["quarantined_keys"]]
    if one["quarantined"]:
        more = one["quarantined"] - len(keys)
        lines.append(
            f"  keys in quarantine: {', '.join(keys)}{f' and {more} more' if more > 0 else ''}"
        )
    if one["strangers_kept_out"]:
        lines.append("  keys that the hook never gave are not asked about for a while")
    if one["last_problem"]:
        lines.append(f"  last problem: {shown(one['last_problem'])}")
    return "\n".join(lines)
