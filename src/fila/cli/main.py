"""`fila`: reads the command line, runs one command, turns what happens into an exit code.

Owns the list of commands. Nothing that needs the SDK is imported before a command runs.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from types import FrameType, ModuleType
from typing import Final

from fila import __version__
from fila.cli import (
    apply,
    auth,
    backup,
    bench,
    completion,
    config,
    consume,
    context,
    demo,
    dlq,
    enqueue,
    explain,
    failure,
    hooks,
    journal,
    key,
    ping,
    pipeline,
    queue,
    redrive,
    stats,
    top,
    version,
    whoami,
)
from fila.cli.options import HelpFormat, Parser, add_common_everywhere

# Every module here offers `add_parser(subparsers)` and `run(args) -> int`.
COMMANDS: Final[dict[str, ModuleType]] = {
    "queue": queue,
    "apply": apply,
    "enqueue": enqueue,
    "consume": consume,
    "stats": stats,
    "explain": explain,
    "top": top,
    "key": key,
    "config": config,
    "redrive": redrive,
    "dlq": dlq,
    "hooks": hooks,
    "auth": auth,
    "backup": backup,
    "journal": journal,
    "pipeline": pipeline,
    "context": context,
    "whoami": whoami,
    "ping": ping,
    "demo": demo,
    "bench": bench,
    "completion": completion,
    "version": version,
}


def main(argv: list[str] | None = None) -> int:
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_DFL:  # not under nohup
            signal.signal(number, _on_terminate)
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character gets its escape instead of a traceback.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        try:
            code = _run(argv)
        except SystemExit as end:  # argparse's --help and usage errors; SIGTERM
            code = end.code if isinstance(end.code, int) else 0
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return failure.EXIT_INTERRUPTED
    except BrokenPipeError:
        # Python would complain once more when it flushes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return failure.EXIT_BROKEN_PIPE
    except OSError as error:
        sys.stderr.write(f"Error: cannot write the output: {error.strerror or error}\n")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return failure.EXIT_FAILED


def parser() -> argparse.ArgumentParser:
    """The whole command line; the reference and the completions are made from it."""
    root = Parser(
        prog="fila",
        description="Talk to a Fila broker: queues, messages, settings.",
        epilog="""examples:
  fila queue create orders
  fila enqueue orders --header tenant=acme --payload hello
  fila consume orders
  fila queue inspect orders
  fila --addr broker:5555 queue list --json

`fila COMMAND --help` says more. FILA_ADDR, FILA_API_KEY, FILA_TLS and FILA_TLS_* stand in
for --addr, --api-key, --tls and --tls-*.""",
        formatter_class=HelpFormat,
        allow_abbrev=False,
    )
    root.add_argument("--version", action="version", version=f"fila {__version__}")
    subparsers = root.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for module in COMMANDS.values():
        module.add_parser(subparsers)
    add_common_everywhere(root)
    return root


def _run(argv: list[str] | None) -> int:
    root = parser()
    words = sys.argv[1:] if argv is None else argv
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    args = root.parse_args(
        words,
        argparse.Namespace(
            addr=None,
            tls=False,
            tls_ca_cert=None,
            tls_cert=None,
            tls_key=None,
            api_key=None,
            json=False,
        ),
    )
    if args.command is None:
        root.print_help(sys.stderr)
        return failure.EXIT_USAGE
    try:
        code: int = COMMANDS[args.command].run(args)
        return code
    except BrokenPipeError:
        raise
    except Exception as error:
        known = failure.explain(error)
        if known is None:
            raise
        sys.stdout.flush()
        sys.stderr.write(failure.lines(known) + "\n")
        return known.exit_code


def _on_terminate(number: int, frame: FrameType | None) -> None:
    # An exception, so that a consumer still hands its messages back.
    sys.exit(failure.EXIT_SIGNAL + number)


if __name__ == "__main__":
    sys.exit(main())
