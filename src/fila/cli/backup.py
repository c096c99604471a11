"""`fila backup create|list|verify|restore`.

Owns the commands. A running broker makes backups; reading them back needs no broker, only the place
where they lie, because that is when they are needed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from fila.cli import connection
from fila.cli.failure import EXIT_FAILED, Failure
from fila.cli.options import Subparsers, command, verbs
from fila.cli.output import count_of, moment, say, say_json, shown, table
from fila.cli.progress import Progress
from fila.distribution import install

if TYPE_CHECKING:
    from fila.backup.restoring import Checked
    from fila.client.sync import FilaClient
    from fila.wire.bodies import Backup

Got = TypeVar("Got")

_LOOK_S: Final = 0.25
_LATEST: Final = "latest"
_UNITS: Final = ("bytes", "KiB", "MiB", "GiB", "TiB")


def add_parser(subparsers: Subparsers) -> None:
    parser = command(
        subparsers,
        "backup",
        "back up a running broker, check backups, restore one",
        about="Back up a broker while it works, check backups, and restore one. The broker copies\n"
        "to where its configuration says ([backup] target); verify and restore read that place\n"
        f"themselves and need no broker, but its software ({install('server')}).",
        examples="  fila backup create\n  fila backup list\n"
        "  fila backup verify latest --from /var/backups/fila\n"
        "  fila backup restore latest --from s3://bucket/fila --into /var/lib/fila",
    )
    inner = verbs(parser)
    create = command(
        inner,
        "create",
        "back up the broker while it works",
        about="Back up the broker while it works: everything acknowledged before is in it, and\n"
        "nothing half. What earlier backups hold is not copied again. Needs `admin` on `*`.",
        examples="  fila backup create\n  fila backup create --no-wait --json",
    )
    create.add_argument(
        "--no-wait", action="store_true", help="do not wait until everything is copied"
    )
    listing = command(
        inner,
        "list",
        "list the backups there are",
        about="List the backups the broker knows, those under way and failed among them; with\n"
        "--from those that lie in a place, without a broker.",
        examples="  fila backup list\n  fila backup list --from s3://bucket/fila --json",
    )
    _add_from(listing, required=False)
    verify = command(
        inner,
        "verify",
        "read a backup back and check all of it",
        about="Read a backup back: every file against its checksum, then every row as\n"
        "`fila-server --verify` does. It is unpacked in a temporary directory for that.",
        examples="  fila backup verify latest --from /var/backups/fila\n"
        "  fila backup verify 2026-03-01T04-00-00.000Z --from s3://bucket/fila --scratch /mnt/tmp",
    )
    _add_name(verify)
    _add_from(verify)
    verify.add_argument(
        "--scratch", metavar="DIR", help="unpack it below this directory (default: TMPDIR)"
    )
    restore = command(
        inner,
        "restore",
        "put a backup into an empty directory",
        about="Put a backup into an empty directory, on this machine or another, and check it as\n"
        "verify does. A broker refuses the directory until that has come to its end.",
        examples="  fila backup restore latest --from /var/backups/fila --into restored\n"
        "  fila-server --data-dir restored",
    )
    _add_name(restore)
    _add_from(restore)
    restore.add_argument(
        "--into", metavar="DIR", required=True, help="an empty directory, or a new one"
    )
    restore.add_argument(
        "--unchecked",
        action="store_true",
        help="compare checksums, but do not read every row afterwards",
    )


def run(args: argparse.Namespace) -> int:
    if args.verb == "create":
        return _create(args)
    if args.verb == "list":
        return _list(args)
    return _from_place(args)


def _create(args: argparse.Namespace) -> int:
    with connection.open_client(args) as client:
        name = client.create_backup()
        made = _named(client, name) if args.no_wait else _waited_for(client, name)
    if args.json:
        fields = made._asdict()
        say_json({"backup": fields.pop("name"), **fields})
    elif made.state == "copying":
        say(f"Backup {name} has begun; `fila backup list` shows how far it is")
    elif made.state == "done":
        say(
            f"Backup {name}: {count_of(made.files, 'file')}, {_size(made.bytes)}, "
            f"of which {_size(made.new_bytes)} were copied"
        )
    if made.state == "failed":
        raise Failure(f"backup {name} failed: {made.error}")
    return 0


def _named(client: FilaClient, name: str) -> Backup:
    found = next((one for one in client.list_backups() if one.name == name), None)
    if found is None:
        raise Failure(
            f"the broker knows nothing of backup {name} any more",
            "was it restarted? `fila backup create` begins another, and copies what is missing",
        )
    return found


def _waited_for(client: FilaClient, name: str) -> Backup:
    told = 0
    with Progress("bytes") as progress:
        while True:
            found = _named(client, name)
            progress.add(found.done_bytes - told)
            told = found.done_bytes
            if found.state != "copying":
                return found
            time.sleep(_LOOK_S)


def _list(args: argparse.Namespace) -> int:
    if args.place is not None:
        target, found = args.place, _listed(args.place)
    else:
        with connection.open_client(args) as client:
            backups = client.list_backups()
        target, found = backups.target, [one._asdict() for one in backups]
    if args.json:
        say_json({"target": target, "backups": found})
        return 0
    if not target:
        say("The broker has no place for backups: set target under [backup] in its configuration")
        return 0
    if not found:
        say(f"There is no backup in {shown(target)}")
        return 0
    rows = [
        (
            shown(one["name"]),
            moment(one["at_ms"]) if one["at_ms"] else "-",
            one["files"],
            _size(one["bytes"]),
            _size(one["new_bytes"]),
            _state(one),
        )
        for one in found
    ]
    say(table(("BACKUP", "HOLDS ALL UNTIL", "FILES", "SIZE", "NEW", "STATE"), rows))
    say(f"\nIn {shown(target)}")
    return 0


def _state(one: dict[str, Any]) -> str:
    if one["state"] == "failed":
        return shown(f"failed: {one['error']}")
    if one["state"] == "copying" and one["bytes"]:
        return f"copying, {100 * one['done_bytes'] // one['bytes']} %"
    return str(one["state"])


def _listed(address: str) -> list[dict[str, Any]]:
    """The backups in a place, in the fields the broker tells of them."""

    def listed() -> list[dict[str, Any]]:
        from fila.backup.backups import standings_in
        from fila.backup.places import place_of
        from fila.wire.bodies import Backup

        return [dict(Backup(*one)._asdict()) for one in standings_in(place_of(address))]

    return _reading(listed)


def _from_place(args: argparse.Namespace) -> int:
    verifying = args.verb == "verify"
    with Progress("bytes and rows") as progress:
        told = {"": 0}

        def tell(what: str, count: int) -> None:
            progress.add(max(0, count - told.get(what, 0)))
            told[what] = count

        def carried_out() -> Checked:
            from fila.backup import restoring
            from fila.backup.places import place_of

            place = place_of(args.place)
            if verifying:
                return restoring.check(place, args.name, args.scratch, tell)
            return restoring.restore(place, args.name, args.into, tell, not args.unchecked)

        found = _reading(carried_out)
    manifest, report = found
    name = manifest.name
    if args.json:
        document: dict[str, Any] = {"backup": name}
        if not verifying:
            document["into"] = args.into
        say_json(
            document
            | {
                "sound": report.sound,
                "files": len(manifest.files),
                "bytes": manifest.size,
                "rows": report.rows,
                "findings": report.findings,
            }
        )
        return 0 if report.sound else EXIT_FAILED
    for finding in report.findings:
        say(f"damaged: {shown(finding)}")
    if report.more:
        say(f"damaged: and {report.more} more")
    if not report.sound:
        raise Failure(
            f"backup {name} is damaged",
            "an older one may be sound; `fila backup list --from` shows them"
            if verifying
            else f"{args.into} is left for a look at it; no broker opens it",
        )
    what = f"{count_of(len(manifest.files), 'file')}, {_size(manifest.size)}"
    if verifying:
        say(f"Backup {name} is sound: {what}, {sum(report.rows.values()):,} rows")
    else:
        say(f"Backup {name} is in {shown(args.into)}: {what}")
        say(f"It holds all that was acknowledged until {moment(manifest.at_ms)}")
        say(f"Start the broker with `fila-server --data-dir {shown(args.into)}`")
    return 0


def _reading(call: Callable[[], Got]) -> Got:
    """Do what needs the broker's software and reads a place; faults become sentences."""
    try:
        from fila.backup.places import PlaceError
        from fila.backup.restoring import StoreError
    except ImportError as error:
        raise Failure(
            f"{error.name} is missing; reading a backup needs the broker's software",
            install("server"),
        ) from error
    try:
        return call()
    except (PlaceError, StoreError) as error:
        raise Failure(str(error)) from error
    except OSError as error:
        raise Failure(f"cannot read or write: {error}") from error


def _size(count: int) -> str:
    value = float(count)
    for unit in _UNITS:
        if value < 1024 or unit == _UNITS[-1]:
            break
        value /= 1024
    return f"{value:,.0f} {unit}" if unit == "bytes" else f"{value:,.1f} {unit}"


def _add_name(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name",
        metavar="BACKUP",
        nargs="?",
        default=_LATEST,
        help="which, as list shows it (default: the latest)",
    )


def _add_from(parser: argparse.ArgumentParser, required: bool = True) -> None:
    parser.add_argument(
        "--from",
        dest="place",
        metavar="PLACE",
        required=required,
        help="where backups lie: a directory, or s3://BUCKET/PREFIX",
    )
