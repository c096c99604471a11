"""Can this Fila read that part? One that it cannot is named, with what to do, in one line.

Owns what is asked of a part before it is read: its version is not newer than ours, and it has every
column but those that parts of older brokers lack (`optional` in the schema).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import pyarrow.parquet as pq

from fila.journal.schema import VERSION_KEY, specification


class OtherVersion(Exception):  # noqa: N818
    """A part that cannot be read, or that lacks what is asked for."""


def check(path: Path, needs: Collection[str] = ()) -> None:
    """Of a part on this machine; `needs` names columns that may not be missing either."""
    schema = pq.read_schema(path)
    check_columns(path.name, schema.names, needs, schema.metadata)


def check_columns(
    name: str,
    columns: Collection[str],
    needs: Collection[str] = (),
    metadata: Mapping[bytes, bytes] | None = None,
) -> None:
    own = int(specification()["version"])
    version = int((metadata or {}).get(VERSION_KEY, b"0"))
    if version > own:
        raise OtherVersion(
            f"{name} was written by a newer Fila: its journal has version {version}, and this one "
            f"reads up to {own}; upgrade"
        )
    wanted = [
        one["name"]
        for one in specification()["tables"]["events"]["columns"]
        if not one.get("optional") or one["name"] in needs
    ]
    missing = [one for one in wanted if one not in columns]
    if not missing:
        return
    if set(missing) <= set(needs):
        raise OtherVersion(
            f"{name} lacks {', '.join(missing)}, which this report needs: it was written by an "
            "older Fila; narrow the time to what a newer one wrote (--from)"
        )
    raise OtherVersion(f"{name} lacks {', '.join(missing)}: it is no whole part of a journal")
