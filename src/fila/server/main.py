"""`fila-server`: puts the parts together, runs them, and stops them in order."""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
import signal
import sys
from pathlib import Path

from fila import __version__
from fila.broker.clock import Clock
from fila.cli.options import Parser
from fila.edges.tls import TlsError
from fila.server.collector import collect_little
from fila.server.config import ConfigError, load
from fila.server.malloc import keep_freed_memory
from fila.server.settings import Settings
from fila.storage.contract import StoreDamagedError, StoreError
from fila.text import shown

log = logging.getLogger("fila.server")


def main(argv: list[str] | None = None) -> int:
    args = parser().parse_args(argv)
    overrides = {}
    if args.data_dir:
        overrides["storage.data_dir"] = args.data_dir
    if args.listen:
        overrides["server.listen_addr"] = args.listen
        overrides["fibp.listen_addr"] = ""
    try:
        loaded = load(args.config, os.environ, overrides)
    except ConfigError as error:
        return _fail(str(error))
    if args.check_config:
        for warning in loaded.warnings:
            print(f"warning: {shown(warning)}", file=sys.stderr)
        print(f"configuration is valid ({loaded.source})")
        return 0
    if args.verify or args.salvage or args.set_clock_back:
        return _maintain(loaded.settings.storage.data_dir, args)

    from fila.server import log as logs

    own = loaded.settings.log
    lines = logs.set_up(own.level, own.format, own.max_waiting_lines)
    for warning in loaded.warnings:
        log.warning(warning)
    try:
        code, last_word = _run(loaded.settings)
    except (ConfigError, StoreError, TlsError, OSError) as error:
        code, last_word = 1, str(error)
    except ModuleNotFoundError:
        raise  # program.py says what to install
    except Exception as error:
        log.critical("the broker could not be started: a fault of its own", exc_info=error)
        code, last_word = 1, f"cannot start: {error!r}. Nothing was changed; please report this"
    if last_word:
        lines.say(f"fila-server: {shown(last_word)}")
    lines.close()
    return code


def _maintain(data_dir: str, args: argparse.Namespace) -> int:
    from fila.server import maintenance

    try:
        if args.salvage:
            return maintenance.run_salvage(data_dir, args.salvage, args.json)
        if args.set_clock_back:
            wall_ns = Clock().wall_ns()
            return maintenance.run_set_clock_back(data_dir, args.set_clock_back, wall_ns)
        return maintenance.run_verify(data_dir, args.json)
    except (StoreError, OSError) as error:
        return _fail(str(error))


def _run(settings: Settings) -> tuple[int, str]:
    """The exit code, and what to say last."""
    collect_little()
    keep_freed_memory()
    os.umask(0o077)  # only the owner may read messages and keys
    import uvloop

    return uvloop.run(_serve(settings))


async def _serve(settings: Settings) -> tuple[int, str]:
    # Imported here so that --help and a bad config answer at once.
    from fila.server.compose import Node

    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    faults: list[BaseException] = []

    def on_fault(error: BaseException) -> None:
        faults.append(error)
        stop.set()

    node = Node(settings, loop, on_fault)
    loop.add_signal_handler(signal.SIGHUP, node.reload_certificates)
    try:
        bound = [f"{host}:{port}" for host, port in await node.start()]
    except BaseException:
        node.abandon()
        raise
    gc.freeze()
    if node.http_address is not None and os.environ.get("FILA_GUI_PORT_FILE"):
        http_host, http_port = node.http_address
        _write_port_file(Path(os.environ["FILA_GUI_PORT_FILE"]), f"{http_host}:{http_port}")
    if node.sqs_address is not None and os.environ.get("FILA_SQS_PORT_FILE"):
        sqs_host, sqs_port = node.sqs_address
        _write_port_file(Path(os.environ["FILA_SQS_PORT_FILE"]), f"{sqs_host}:{sqs_port}")
    # The second address is [fibp] listen_addr; where there is one, it serves both.
    for name, address in (("FILA_FIBP_PORT_FILE", bound[-1]), ("FILA_PORT_FILE", bound[0])):
        if os.environ.get(name):
            _write_port_file(Path(os.environ[name]), address)
    log.info(
        f"Fila {__version__} is ready on {' and '.join(bound)}",
        extra={"data_dir": settings.storage.data_dir, "durability": settings.storage.durability},
    )
    await stop.wait()
    if not faults:
        log.info("stopping")
        try:
            await node.stop()
        except Exception as error:
            faults.append(error)
    if faults:  # before, or while it was stopping
        node.abandon()
        return 1, _text_of(faults[0])
    log.info("stopped")
    return 0, ""


def _text_of(fault: BaseException) -> str:
    if isinstance(fault, StoreDamagedError):
        return str(fault)
    if isinstance(fault, StoreError):
        return f"{fault}; stopped, nothing acknowledged is lost"
    log.critical("stopped by a fault in the broker itself", exc_info=fault)
    return f"fault in the broker: {fault!r}; stopped, nothing acknowledged is lost"


def _write_port_file(path: Path, text: str) -> None:
    """Readers never see half of it."""
    beside = path.with_name(path.name + ".tmp")
    beside.write_text(text)
    beside.chmod(0o644)
    beside.replace(path)


def _fail(text: str) -> int:
    print(f"fila-server: {shown(text)}", file=sys.stderr)
    return 1


def parser() -> argparse.ArgumentParser:
    """The command line; the manual page is made from it."""
    root = Parser(
        prog="fila-server",
        description="The Fila message broker: fair scheduling and per-key throttling.",
        epilog="""examples:
  fila-server                                  listen on port 5555, keep data in ./data
  fila-server --config /etc/fila/fila.toml     use a configuration file
  fila-server --listen 127.0.0.1:0 --data-dir /tmp/fila
  fila-server --check-config --config fila.toml
  fila-server --verify --data-dir /var/lib/fila     check a stopped broker's data
  fila-server --salvage /var/lib/fila-2 --data-dir /var/lib/fila

Settings come from --config, else ./fila.toml, else /etc/fila/fila.toml, else defaults.
FILA_<SECTION>__<KEY> overrides any setting, FILA_DATA_DIR the data directory.""",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    root.add_argument("--config", metavar="FILE", help="configuration file (TOML)")
    root.add_argument("--data-dir", metavar="DIR", help="where messages are kept")
    root.add_argument("--listen", metavar="HOST:PORT", help="address for clients")
    root.add_argument(
        "--check-config", action="store_true", help="check the configuration and exit"
    )
    offline = root.add_mutually_exclusive_group()
    offline.add_argument(
        "--verify",
        action="store_true",
        help="check every row of a stopped broker's data and exit: 0 sound, 3 damaged",
    )
    offline.add_argument(
        "--salvage",
        metavar="DIR",
        help="copy what can be read of damaged data into a new directory and exit",
    )
    offline.add_argument(
        "--set-clock-back",
        metavar="DIR",
        help="copy data whose times lie in the future into a new directory, set right, and exit",
    )
    root.add_argument(
        "--json", action="store_true", help="the report of --verify and --salvage as JSON"
    )
    root.add_argument("--version", action="version", version=f"fila-server {__version__}")
    return root


if __name__ == "__main__":
    sys.exit(main())
