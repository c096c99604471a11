"""The options every command takes, before or after the sub-command.

Owns their names and help, and the one help format. What they mean together with the environment and
the contexts is `connection`'s part.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any, Final

DEFAULT_ADDR: Final = "localhost:5555"

# `parser.add_subparsers()` of any parser; argparse has no public name for the type.
Subparsers = Any

_GROUP: Final = "connection and output"
_COMMON: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    (
        "--addr",
        {
            "metavar": "HOST:PORT",
            "help": f"the broker (FILA_ADDR, else the current context, else {DEFAULT_ADDR}); "
            "a leading http:// or https:// is dropped",
        },
    ),
    ("--tls", {"action": "store_true", "help": "encrypt the connection"}),
    (
        "--tls-ca-cert",
        {"metavar": "FILE", "help": "trust this CA instead of the system's; implies --tls"},
    ),
    (
        "--tls-cert",
        {"metavar": "FILE", "help": "certificate to show to the broker; needs --tls-key"},
    ),
    ("--tls-key", {"metavar": "FILE", "help": "private key of --tls-cert"}),
    ("--api-key", {"metavar": "KEY", "help": "key to authenticate with (FILA_API_KEY)"}),
    ("--json", {"action": "store_true", "help": "print JSON instead of text"}),
)
COMMON_NAMES: Final = frozenset(name for name, _ in _COMMON)


class HelpFormat(argparse.RawDescriptionHelpFormatter):
    """Examples keep their lines; options line up further to the right than argparse's default."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30)


def command(
    subparsers: Subparsers, name: str, summary: str, *, about: str = "", examples: str = ""
) -> argparse.ArgumentParser:
    """A sub-command's parser, in the form all of ours have."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        name,
        help=summary,
        description=about or f"{summary[0].upper()}{summary[1:]}.",
        epilog=f"examples:\n{examples}" if examples else None,
        formatter_class=HelpFormat,
        allow_abbrev=False,
    )
    return parser


def verbs(parser: argparse.ArgumentParser) -> Subparsers:
    return parser.add_subparsers(dest="verb", metavar="COMMAND", required=True)


def add_common_everywhere(parser: argparse.ArgumentParser) -> None:
    """Give this parser and all below it the common options.

    No parser sets a default: what the inner one did not see must not hide what the outer one did.
    """
    for _, each in walk(parser, ()):
        group = each.add_argument_group(_GROUP)
        for name, settings in _COMMON:
            if name not in each._option_string_actions:
                group.add_argument(name, default=argparse.SUPPRESS, **settings)


def children(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The sub-commands' parsers by name."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def summaries(parser: argparse.ArgumentParser) -> dict[str, str]:
    """What --help says about each sub-command, by name."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return {choice.dest: choice.help or "" for choice in action._choices_actions}
    return {}


def walk(
    parser: argparse.ArgumentParser, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], argparse.ArgumentParser]]:
    """Every parser of the tree with its path, parents first."""
    yield path, parser
    for name, child in children(parser).items():
        yield from walk(child, (*path, name))


def whole_number(low: int, what: str) -> Callable[[str], int]:
    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = low - 1
        if value < low:
            raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
        return value

    return read
