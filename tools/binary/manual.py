"""Manual pages, fila(1) and fila-server(1), made from what --help says."""

from __future__ import annotations

import argparse
from pathlib import Path

from fila import __version__
from fila.cli import main as cli
from fila.cli.options import walk
from fila.server import main as server


def write(place: Path) -> None:
    place.mkdir(parents=True)
    (place / "fila.1").write_text(page("fila", cli.parser()))
    (place / "fila-server.1").write_text(page("fila-server", server.parser()))


def page(name: str, root: argparse.ArgumentParser) -> str:
    what = (root.description or "").partition(".")[0].partition("\n")[0]
    parts = [
        f'.TH {name.upper()} 1 "" "fila {__version__}" "Fila"',
        f".SH NAME\n{_roff(name)} \\- {_roff(what)}",
        f".SH SYNOPSIS\n.B {_roff(name)}\n{_roff(_usage(root, name))}",
        f".SH DESCRIPTION\n{_block(root.description or '')}",
    ]
    parts += [".SH OPTIONS", *_options(root)]
    commands = [(path, each) for path, each in walk(root, ()) if path]
    if commands:
        parts.append(".SH COMMANDS")
    for path, each in commands:
        parts.append(f".SS {_roff(' '.join([name, *path]))}")
        parts.append(_block(each.description or ""))
        parts += _options(each, common=False)
    if root.epilog:
        parts.append(f".SH EXAMPLES\n{_block(root.epilog.removeprefix('examples:').strip())}")
    return "\n".join(parts) + "\n"


def _options(each: argparse.ArgumentParser, common: bool = True) -> list[str]:
    from fila.cli.options import COMMON_NAMES

    lines = []
    for action in each._actions:
        if isinstance(action, argparse._HelpAction | argparse._SubParsersAction):
            continue
        if not common and any(name in COMMON_NAMES for name in action.option_strings):
            continue
        if action.help == argparse.SUPPRESS:
            continue
        name = ", ".join(action.option_strings) or str(action.metavar or action.dest)
        if action.option_strings and action.nargs != 0:
            name += f" {action.metavar or action.dest.upper()}"
        text = (action.help or "") % {**vars(action), "prog": each.prog}
        lines.append(f".TP\n.B {_roff(name)}\n{_roff(text)}")
    return lines


def _usage(root: argparse.ArgumentParser, name: str) -> str:
    words = root.format_usage().partition(name)[2]
    return " ".join(words.split())


def _block(text: str) -> str:
    return f".nf\n{_roff(text)}\n.fi"


def _roff(text: str) -> str:
    """Nothing of it is a request: backslashes, leading dots and quotes are themselves."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join(
        f"\\&{line}" if line[:1] in (".", "'") else line for line in escaped.split("\n")
    )
