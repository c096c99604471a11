"""The CLI reference in the docs, made from the parsers.

    python -m fila.cli.reference > docs/cli.md

Owns the page's form. What it says about commands and options is what --help says.
"""

from __future__ import annotations

import argparse
import sys
from itertools import groupby
from typing import Final

from fila.cli.main import parser
from fila.cli.options import COMMON_NAMES, children, summaries, walk

_OPENING: Final = """\
# The `fila` command line

<!-- Written by `python -m fila.cli.reference > docs/cli.md`. Change the parsers, not this page. -->

`fila` talks to a broker from a terminal or a script. It comes with the base install and needs
nothing but Python. `fila COMMAND --help` shows what this page says about a command.

## Options of every command

They may stand before or after the sub-command: `fila --json queue list` is
`fila queue list --json`.

"""

_AFTER_COMMON: Final = """
Which broker a command talks to is decided by the first of these that is there: `--addr`, the
environment variable `FILA_ADDR`, the current [context](#fila-context), `localhost:5555`. The API
key comes from `--api-key`, else `FILA_API_KEY`, else the current context. `--addr` and `FILA_ADDR`
leave the context aside as a whole: its key is never shown to another broker.

Contexts are kept in `$XDG_CONFIG_HOME/fila/contexts.json`, or `~/.config/fila/contexts.json`,
readable by their owner only.

## Output and exit codes

Results go to stdout, errors, hints and progress to stderr; progress is shown on a terminal only.
With `--json` a command prints one JSON document on one line, and `enqueue`, `consume`,
`queue peek`, `dlq list` and `dlq export` one per message. Characters that could disturb a terminal
are shown as escapes such as `\\x1b`; JSON has them exactly.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | refused by the broker, no broker there, or trouble with a file; stderr has `Error: …` |
| 2 | the command line was not understood; `apply --dry-run`: there are differences |
| 3 | a verdict was asked for, and there was too little to judge by (`pipeline fairness`) |
| 130 | ended by Ctrl-C |
| 141 | the reader of the output closed the pipe |
| 143, 129 | ended by SIGTERM, or because the terminal went away |

"""


_MESSAGE: Final = (
    "id",
    "queue",
    "headers",
    "payload",
    "payload_base64",
    "fairness_key",
    "weight",
    "throttle_keys",
    "attempt_count",
    "enqueued_at_ms",
)
_BROWSED: Final = (*_MESSAGE, "state", "ready_at_ms")
_DEATH: Final = ("dead",)  # reason, error, at_ms, attempts, queue
_CONTEXT: Final = ("name", "addr", "tls", "tls_ca_cert", "tls_cert", "tls_key", "api_key_set")
_CHANGED: Final = ("queue", "version", "changed")
_SETTINGS: Final = ("queue", "settings", "version", "at_ms", "who", "note")
_BACKUP: Final = ("state", "at_ms", "files", "bytes", "new_bytes", "done_bytes", "error")
# The fields of each command's JSON; a test compares them with what the commands print.
JSON_FIELDS: Final[dict[str, tuple[str, ...]]] = {
    "queue create": ("queue", "created"),
    "backup create": ("backup", *_BACKUP),
    "backup list": ("target", "backups[].name", *[f".{name}" for name in _BACKUP]),
    "backup verify": ("backup", "sound", "files", "bytes", "rows", "findings"),
    "backup restore": ("backup", "into", "sound", "files", "bytes", "rows", "findings"),
    "queue update": _CHANGED,
    "queue settings": _SETTINGS,
    "queue reclassify": (
        "queue",
        "state",
        "why",
        "dry_run",
        "version",
        "began_ms",
        "by",
        "rate",
        "waiting",
        "judged",
        "moved",
        "reweighed",
        "undecided",
        "differences[].from",
        ".to",
        ".messages",
        "other_differences",
    ),
    "queue export": ("queues", "config"),
    "apply": ("applied", "queues[].queue", ".action", ".version", ".changes", "config"),
    "queue delete": ("queue", "deleted"),
    "queue list": (
        "queues[].name",
        ".depth",
        ".in_flight",
        ".active_consumers",
        ".paused",
        ".quarantined",
    ),
    "queue inspect": (
        "queue",
        "depth",
        "in_flight",
        "active_fairness_keys",
        "active_consumers",
        "quantum",
        "cost",
        "fairness_keys[].key",
        ".pending",
        ".deficit",
        ".weight",
        "throttle_keys[].key",
        ".tokens",
        ".rate_per_second",
        ".burst",
        "paused",
        "paused_keys",
        "overrides",
        "batches[].stream",
        ".open",
        ".messages",
        ".age_s",
        ".ends_in_s",
        "version",
        "created_ms",
        "settings",
    ),
    "queue pause": ("queue", "paused"),
    "queue resume": ("queue", "paused"),
    "queue purge": ("queue", "key", "purged"),
    "key pause": ("queue", "key", "paused"),
    "key resume": ("queue", "key", "paused"),
    "key set": ("queue", "key", "override"),
    "key list": (
        "queue",
        "overrides[].key",
        ".weight",
        ".rate",
        ".burst",
        ".expires_ms",
        ".since_ms",
        ".by",
        ".note",
    ),
    "key clear": ("queue", "key", "override"),
    "queue peek": _BROWSED,
    "enqueue": ("queue", "id", "duplicate"),
    "consume": (*_MESSAGE, "leased_at_ms", "settled"),
    "stats": (
        "depth",
        "in_flight",
        "active_consumers",
        "queues[].name",
        ".depth",
        ".in_flight",
        ".active_consumers",
        ".paused",
        ".quarantined",
        "limits[].name",
        ".used",
        ".max",
        ".reached",
    ),
    "config set": ("key", "value"),
    "config get": ("key", "value"),
    "config list": ("entries[].key", ".value"),
    "redrive": ("queue", "redriven"),
    "dlq list": (*_BROWSED, *_DEATH),
    "dlq show": (*_BROWSED, *_DEATH),
    "dlq export": (*_BROWSED, *_DEATH),
    "dlq groups": (
        "queue",
        "groups[].count",
        ".reason",
        ".error",
        ".last_at_ms",
        "others",
    ),
    "dlq redrive": ("queue", "redriven"),
    "dlq delete": ("queue", "key", "purged"),
    "hooks status": ("queue", "hooks"),
    "hooks deploy": _CHANGED,
    "hooks rollback": _CHANGED,
    "hooks show": _SETTINGS,
    "hooks history": ("queue", "versions[].version", ".at_ms", ".who", ".note", ".changed"),
    "hooks diff": ("queue", "old", "new", "changes[].setting", ".old", ".new"),
    "auth create": ("key_id", "token", "name", "is_superadmin", "expires_at_ms"),
    "auth list": ("keys[].key_id", ".name", ".created_at_ms", ".expires_at_ms", ".is_superadmin"),
    "auth revoke": ("key_id", "revoked"),
    "auth acl set": ("key_id", "permissions[].kind", ".pattern"),
    "auth acl add": ("key_id", "permissions[].kind", ".pattern"),
    "auth acl remove": ("key_id", "permissions[].kind", ".pattern"),
    "auth acl get": ("key_id", "is_superadmin", "permissions[].kind", ".pattern"),
    "context list": (
        "current",
        "contexts[].name",
        ".addr",
        ".tls",
        ".tls_ca_cert",
        ".tls_cert",
        ".tls_key",
        ".api_key_set",
    ),
    "context show": (*_CONTEXT, "current"),
    "context set": _CONTEXT,
    "context use": ("current",),
    "context delete": ("name", "deleted", "current"),
    "ping": ("addr", "took_ms", "authorized"),
    "whoami": (
        "auth",
        "key_id",
        "name",
        "expires_at_ms",
        "is_superadmin",
        "permissions",
    ),
    "version": ("version", "server"),
}

_AFTER_FIELDS: Final = """
`payload` is null when the message is not text; `payload_base64` is always exact. `settled` is
`ack`, `nack` or, with `--peek-only`, null. A `value` of null is a setting that is not set.
`fila stats QUEUE` prints what `fila queue inspect` does; `batches` are the open lease batches by
stream. `changed` of an update says whether there was anything to change;
`settings` are texts by name, empty where there is none; `queues` of an export has them by queue.
An `action` is `create`, `update` or `none`.
`permissions` are objects with `kind` and `pattern`. `server` has `addr` and either
`version` and `form`, or an `error`; `fila version --verbose` adds `form`, `python`, `platform` and
`engines`. `key` of `queue purge` is null when all keys were purged. A time of 0 means never. What
`explain` and `top` print is described in [spec/explain.md](../spec/explain.md); `journal tail`
prints the journal's rows, `pipeline` its reports.

"""


def markdown() -> str:
    """The whole page."""
    root = parser()
    common = [action for action in _shown(root) if _is_common(action)]
    parts = [_OPENING, _table("option", common), _AFTER_COMMON]
    parts += ["| with `--json` | fields |\n|---|---|\n", *map(_fields_row, JSON_FIELDS)]
    parts += [_AFTER_FIELDS, "## Commands\n\n"]
    for path, each in walk(root, ()):
        if path:
            parts.append(_section(path, each))
    return "".join(parts).rstrip("\n") + "\n"


def _section(path: tuple[str, ...], each: argparse.ArgumentParser) -> str:
    name = "fila " + " ".join(path)
    parts = [f"{'#' * (2 + len(path))} {name}\n\n{_prose(each.description or '')}\n\n"]
    if children(each):
        lines = [
            f"- [`{name} {verb}`](#{'-'.join((*name.split(), verb))}): {summary}\n"
            for verb, summary in summaries(each).items()
        ]
        parts.append("".join(lines) + "\n")
    else:
        own = [action for action in _shown(each) if not _is_common(action)]
        parts.append(f"```text\n{' '.join([name, *map(_usage, _in_usage_order(own))])}\n```\n\n")
        if own:
            parts.append(_table("argument", own) + "\n")
    if each.epilog:
        examples = each.epilog.removeprefix("examples:\n")
        parts.append("```sh\n" + "".join(f"{line[2:]}\n" for line in examples.splitlines()))
        parts.append("```\n\n")
    return "".join(parts)


def _prose(text: str) -> str:
    """A description, its indented lines as a block of their own."""
    blocks = []
    for indented, lines in groupby(text.splitlines(), lambda line: line.startswith("  ")):
        block = "\n".join(lines)
        blocks.append(f"\n```text\n{block}\n```\n" if indented else block)
    return "\n".join(blocks)


def _fields_row(command: str) -> str:
    return f"| `{command}` | {', '.join(f'`{field}`' for field in JSON_FIELDS[command])} |\n"


def _table(heading: str, actions: list[argparse.Action]) -> str:
    rows = [f"| `{_name(action)}` | {_help(action)} |\n" for action in actions]
    return f"| {heading} | meaning |\n|---|---|\n" + "".join(rows)


def _shown(each: argparse.ArgumentParser) -> list[argparse.Action]:
    return [
        action
        for action in each._actions
        if not isinstance(
            action, argparse._HelpAction | argparse._VersionAction | argparse._SubParsersAction
        )
    ]


def _is_common(action: argparse.Action) -> bool:
    return any(name in COMMON_NAMES for name in action.option_strings)


def _in_usage_order(actions: list[argparse.Action]) -> list[argparse.Action]:
    return sorted(actions, key=lambda action: bool(action.option_strings))


def _usage(action: argparse.Action) -> str:
    name = _name(action)
    if action.option_strings or action.nargs == "?":
        return f"[{name}]"
    return name


def _name(action: argparse.Action) -> str:
    if not action.option_strings:
        return str(action.metavar or action.dest)
    value = "" if action.nargs == 0 else f" {action.metavar or action.dest.upper()}"
    return action.option_strings[-1] + value


def _help(action: argparse.Action) -> str:
    text = (action.help or "") % {"default": action.default}
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(markdown())
