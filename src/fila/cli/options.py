"""The options every command takes, before or after the sub-command.

Owns their names and help, and the one help format. What they mean together with the environment and
the contexts is `connection`'s part.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, NoReturn

from fila.cli.failure import EXIT_USAGE

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
    ("--tls", {"action": "store_true", "help": "encrypt the connection (FILA_TLS=1)"}),
    (
        "--tls-ca-cert",
        {
            "metavar": "FILE",
            "help": "trust this CA instead of the system's; implies --tls (FILA_TLS_CA_CERT)",
        },
    ),
    (
        "--tls-cert",
        {
            "metavar": "FILE",
            "help": "certificate to show to the broker; needs --tls-key (FILA_TLS_CERT)",
        },
    ),
    ("--tls-key", {"metavar": "FILE", "help": "private key of --tls-cert (FILA_TLS_KEY)"}),
    ("--api-key", {"metavar": "KEY", "help": "key to authenticate with (FILA_API_KEY)"}),
    ("--json", {"action": "store_true", "help": "print JSON instead of text"}),
)
COMMON_NAMES: Final = frozenset(name for name, _ in _COMMON)
# What other systems' command lines call ours.
_ELSEWHERE: Final = {
    **dict.fromkeys(("send", "publish", "produce", "push", "put"), "enqueue"),
    **dict.fromkeys(("receive", "subscribe", "pop", "get"), "consume"),
}


class Parser(argparse.ArgumentParser):
    """Says what was not understood in one line, what may have been meant, and where help is."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        # argparse leaves it to the outermost parser to complain, which knows other options.
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return known, unknown

    def error(self, message: str) -> NoReturn:
        hint = f"`{self.prog} --help` shows the options"
        near = _meant(self, message)
        if near:
            hint = f"did you mean {near}? {hint}"
        self.exit(EXIT_USAGE, f"Error: {_plain(message)}\nHint: {hint}\n")


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


def _meant(parser: argparse.ArgumentParser, message: str) -> str:
    """The known word nearest to one that was not understood, or nothing."""
    import difflib

    _, unknown, rest = message.partition("unrecognized arguments: ")
    if unknown:
        word = next((part for part in rest.split() if part.startswith("-")), "")
        options = {name for _, each in walk(parser, ()) for name in each._option_string_actions}
        known = sorted(options - {word})
    else:
        found = re.search(r"invalid choice: '([^']*)'", message)
        word = found[1] if found else ""
        known = [*children(parser), *_choices(parser)]
        if _ELSEWHERE.get(word) in known:
            return _ELSEWHERE[word]
        deeper = next((path for path, _ in walk(parser, ()) if path[1:] == (word,)), None)
        if deeper:
            return " ".join(deeper)
    # Without dashes, which make short options look alike.
    bare = {name.lstrip("-"): name for name in known}
    near = difflib.get_close_matches(word.partition("=")[0].lstrip("-"), bare, 1)
    return bare[near[0]] if near else ""


def _choices(parser: argparse.ArgumentParser) -> list[str]:
    return [str(choice) for action in parser._actions for choice in action.choices or ()]


def _plain(message: str) -> str:
    """argparse's words without its list of everything there is."""
    found = re.match(r"argument COMMAND: invalid choice: ('[^']*')", message)
    if found:
        return f"there is no command {found[1]}"
    return message.replace("the following arguments are required: COMMAND", "a command is missing")


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
