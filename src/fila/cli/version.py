"""`fila version`: which release this is."""

from __future__ import annotations

import argparse

from fila import __version__
from fila.cli.options import Subparsers, command
from fila.cli.output import say, say_json


def add_parser(subparsers: Subparsers) -> None:
    command(subparsers, "version", "print the version of this program", examples="  fila version")


def run(args: argparse.Namespace) -> int:
    if args.json:
        say_json({"version": __version__})
    else:
        say(f"fila {__version__}")
    return 0
