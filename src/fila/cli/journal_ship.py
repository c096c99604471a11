"""`fila journal ship`: a broker's sealed parts to an object store, until it is interrupted.

Owns the command line and what is tried again; the work is in `fila.journal.shipping`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fila.cli.durations import seconds
from fila.cli.failure import Failure
from fila.cli.options import Subparsers, command, whole_number
from fila.cli.output import count_of, note, say, say_json

if TYPE_CHECKING:
    from fila.journal.shipping import Made

_MIB: Final = 1024 * 1024
_POLL_S: Final = 5.0
_RETRY_MAX_S: Final = 60.0


def add_parser(inner: Subparsers, add_path: Callable[[argparse.ArgumentParser], None]) -> None:
    ship = command(
        inner,
        "ship",
        "ship sealed parts to an object store, with a manifest",
        about="Put the journal's sealed parts into an object store (or another directory): few\n"
        "large ones, by hour, with a manifest that readers go by. Runs beside the broker until it\n"
        "is interrupted; killed at any moment, it goes on where it was. Credentials and endpoint\n"
        "come from the environment (AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL, …).",
        examples="  fila journal ship data/journal --to s3://lake/fila\n"
        "  fila journal ship data/journal --to s3://lake/fila --once --retention-days 30",
    )
    add_path(ship)
    ship.add_argument(
        "--to", metavar="ADDRESS", required=True, help="where to, such as s3://bucket/folder"
    )
    ship.add_argument(
        "--every", metavar="TIME", type=seconds, default=60.0,
        help="ship what is smaller than a part after so long (default 60s)",
    )  # fmt: skip
    ship.add_argument(
        "--part-mib", metavar="N", type=whole_number(1, "a number of MiB"), default=128,
        help="how large parts should become (default 128)",
    )  # fmt: skip
    ship.add_argument(
        "--retention-days", metavar="N", type=whole_number(0, "a number of days"), default=0,
        help="remove older hours there (default: never)",
    )  # fmt: skip
    ship.add_argument("--once", action="store_true", help="ship all that is sealed now, and end")


def run(args: argparse.Namespace, root: Path) -> int:
    from fila.journal.manifest import ManifestError
    from fila.journal.shipping import Shipper, ShippingError, alone

    try:
        with alone(root):
            shipper = Shipper(root, args.to, args.part_mib * _MIB, args.every, args.retention_days)
            if args.once:
                _told(args, shipper.pass_once(every=True))
                return 0
            note(f"shipping {root} to {args.to}")
            _until_interrupted(args, shipper.pass_once)
    except (ShippingError, ManifestError) as error:
        raise Failure(str(error)) from error
    except OSError as error:
        raise Failure(f"{args.to} cannot be written: {error}") from error
    except KeyboardInterrupt:
        pass
    return 0


def _until_interrupted(args: argparse.Namespace, pass_once: Callable[[], list[Made]]) -> None:
    """A store that does not answer is tried again: nothing is lost meanwhile."""
    failures = 0
    while True:
        try:
            _told(args, pass_once())
            failures = 0
        except OSError as error:
            failures += 1
            wait_s = min(_RETRY_MAX_S, 2.0**failures)
            note(f"{error}; trying again in {wait_s:g} s")
            time.sleep(wait_s)
            continue
        time.sleep(min(_POLL_S, args.every))


def _told(args: argparse.Namespace, made: list[Made]) -> None:
    for one in made:
        if args.json:
            say_json(one._asdict())
        else:
            say(
                f"{one.path}: {count_of(one.events, 'event')} of {count_of(one.parts, 'part')}, "
                f"{one.size / _MIB:.1f} MiB"
            )
