"""`fila version`: which release this is, and which the broker's."""

from __future__ import annotations

import argparse
import platform
from typing import Any, Final

from fila import __version__, distribution
from fila.cli import connection
from fila.cli.failure import EXIT_USAGE, Failure, explain
from fila.cli.options import Subparsers, command
from fila.cli.output import say, say_json, shown

ASK_S: Final = 2.0  # longer than this nobody wants to wait for a version
# What the broker stands on, as the Python index calls it.
ENGINES: Final = ("rocksdict", "lupa", "uvloop", "protobuf", "hpack", "h11", "opentelemetry-sdk")


def add_parser(subparsers: Subparsers) -> None:
    parser = command(
        subparsers,
        "version",
        "print the version of this program and of the broker",
        about="Print the version of this program, and of the broker if it answers. The exit\n"
        "code is 0 also without a broker; `fila --version` asks none.",
        examples="  fila version\n  fila version --verbose\n"
        "  fila version --json | jq -r .server.version",
    )
    parser.add_argument(
        "--verbose",
        action="store_true",
        help="also which form runs (compiled or pure), the Python, and the engines' versions",
    )


def run(args: argparse.Namespace) -> int:
    addr = connection.target(args).addr
    server = _server(args)
    here: dict[str, Any] = {"version": __version__}
    if args.verbose:
        here |= {
            "form": distribution.form(),
            "python": platform.python_version(),
            "platform": f"{platform.system().lower()}-{platform.machine()}",
            "engines": _engines(),
        }
    if args.json:
        say_json({**here, "server": {"addr": addr, **server}})
        return 0
    say(f"fila {__version__}")
    if args.verbose:
        python = platform.python_implementation()
        say(f"{'form':<9}: {here['form']}")
        say(f"{'python':<9}: {python} {here['python']}, {here['platform']}")
        found = [f"{name} {version}" for name, version in here["engines"].items() if version]
        without = f"none here; {distribution.install('server')} brings them"
        say(f"{'engines':<9}: {', '.join(found) or without}")
    if "version" in server:
        say(f"{'server':<9}: {shown(server['version'])} ({shown(server['form'])}) at {shown(addr)}")
    else:
        say(f"{'server':<9}: {shown(server['error'])}")
    return 0


def _engines() -> dict[str, str | None]:
    from importlib import metadata  # costs more than the rest of --help

    found: dict[str, str | None] = {}
    for name in ENGINES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    return found


def _server(args: argparse.Namespace) -> dict[str, str]:
    """What the broker says of itself, or why it says nothing."""
    try:
        with connection.open_client(args, connect_timeout_s=ASK_S) as client:
            caller = client.who_am_i(timeout=ASK_S)
    except Exception as error:
        known = explain(error)
        if known is None or known.exit_code == EXIT_USAGE:
            raise
        return {"error": _reason(known)}
    return {"version": caller.version, "form": caller.form}


def _reason(known: Failure) -> str:
    return known.message.splitlines()[0] if known.message else "no answer"
