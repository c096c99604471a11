"""The table of operations, the rows about what takes longer than a request: backups.

Such a request is answered when the work is begun, and another tells how far it is. `operations`
joins these rows with the others and lists what is made from the table.
"""

from typing import Final

from fila.wire.operation import ADMIN, BROKER, Layout, Operation

# Records that stand inside bodies. Nothing can be added to them.
RECORDS: Final[dict[str, Layout]] = {
    "Backup": {
        "name": "string",
        "state": "string",  # copying, done, failed
        "at_ms": "u64",  # it holds what was acknowledged by then
        "files": "u32",
        "bytes": "u64",
        "new_bytes": "u64",  # of them; the others lay there from earlier backups
        "done_bytes": "u64",
        "error": "string",
    },
}

JOBS: Final[tuple[Operation, ...]] = (
    Operation(
        "CreateBackup",
        0xC9,
        0xC8,
        "Begins a backup of all that is acknowledged; ListBackups tells when it is done.",
        {},
        {"code": "u8", "name": "string"},
        permission=ADMIN,
        on=BROKER,
        action='create backup[ "{name}"]',
        changes=True,
    ),
    Operation(
        "ListBackups",
        0xC7,
        0xC6,
        "The backups in the broker's place for them, and how far the one under way is.",
        {},
        # An empty target: the broker has no place for backups.
        {"code": "u8", "target": "string", "backups": "Backup[u16]"},
        permission=ADMIN,
        on=BROKER,
        action="list backups",
        repeatable=True,
    ),
)
