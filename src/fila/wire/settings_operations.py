"""The table of operations, the rows about a queue's settings and the versions of them.

`operations` joins them with the others and lists what is made from the table.
"""

from typing import Final

from fila.wire.operation import ADMIN, EXPLAINED, IN_RESULT, Layout, Operation

# Records that stand inside bodies. Nothing can be added to them.
RECORDS: Final[dict[str, Layout]] = {
    "QueueVersion": {
        "version": "u32",
        "at_ms": "u64",
        "who": "string",
        "note": "string",
        "changed": "string[]",
    },
}

SETTINGS: Final[tuple[Operation, ...]] = (
    Operation(
        "UpdateQueue",
        0xE3,
        0xE2,
        "Changes the settings of a queue that are named, all or none; or brings a version back.",
        {
            "queue": "string",
            "settings": "map",  # by name; an empty text is none, or the default
            "expected_version": "u32 = 0",  # refused where it is another by now; 0: whatever it is
            "from_version": "u32 = 0",  # begin with the settings of that one; 0: the present ones
            "note": 'string = ""',
            "unrehearsed": "bool = False",  # do not try new hooks on messages that came before
        },
        {"code": "u8", "version": "u32", **EXPLAINED},
        failures=IN_RESULT,
        permission=ADMIN,
        on="queue",
        action='update queue "{queue}"[ from version {from_version}][ to version {version}]',
        subject='queue "{queue}"',
        changes=True,
    ),
    Operation(
        "GetQueue",
        0xE1,
        0xE0,
        "The settings of a queue, as they are or were in an older version.",
        {"queue": "string", "version": "u32 = 0"},  # 0: the one that holds
        {
            "code": "u8",
            "settings": "ConfigEntry[u16]",
            "version": "u32",
            "at_ms": "u64",
            "who": "string",
            "note": "string",
            **EXPLAINED,
        },
        failures=IN_RESULT,
        permission=ADMIN,
        on="queue",
        action='settings of queue "{queue}"',
        subject='queue "{queue}"',
        repeatable=True,
    ),
    Operation(
        "ListVersions",
        0xDF,
        0xDE,
        "The versions of a queue's settings that are kept, the newest first.",
        {"queue": "string"},
        {"code": "u8", "versions": "QueueVersion[u16]", **EXPLAINED},
        failures=IN_RESULT,
        permission=ADMIN,
        on="queue",
        action='versions of queue "{queue}"',
        subject='queue "{queue}"',
        repeatable=True,
    ),
    Operation(
        "SetOverride",
        0xD5,
        0xD4,
        "Lets what is named hold for a fairness key, whatever its messages say; or clears it.",
        {
            "queue": "string",
            "fairness_key": "string",
            "settings": "map",  # weight, rate, burst, expires_in_ms; an empty text takes it away
            "clear": "bool = False",
            "note": 'string = ""',
        },
        {"code": "u8", **EXPLAINED},
        failures=IN_RESULT,
        permission=ADMIN,
        on="queue",
        action='override key "{fairness_key}" of queue "{queue}"[: {settings}]',
        subject='queue "{queue}"',
        changes=True,
    ),
    Operation(
        "ListOverrides",
        0xD3,
        0xD2,
        "The overrides of a queue: what holds for fairness keys instead of what messages say.",
        {"queue": "string"},
        {"code": "u8", "document": "bytes", **EXPLAINED},  # JSON: a list
        failures=IN_RESULT,
        permission=ADMIN,
        on="queue",
        action='overrides of queue "{queue}"',
        subject='queue "{queue}"',
        repeatable=True,
    ),
    Operation(
        "Reclassify",
        0xD1,
        0xD0,
        "Lets the hook judge what waits in a queue again, in the background; or cancels that.",
        {
            "queue": "string",
            "rate": "u32 = 0",  # messages per second; 0: as turns have room
            "dry_run": "bool = False",  # count what would change, and change nothing
            "cancel": "bool = False",
        },
        {"code": "u8", "document": "bytes", **EXPLAINED},  # JSON, as of GetReclassify
        failures=IN_RESULT,
        permission=ADMIN,
        on="queue",
        action='reclassify queue "{queue}"',
        subject='queue "{queue}"',
        changes=True,
    ),
    Operation(
        "GetReclassify",
        0xCF,
        0xCE,
        "How far the queue's reclassification is, or what the last one came to.",
        {"queue": "string"},
        {"code": "u8", "document": "bytes", **EXPLAINED},  # JSON
        failures=IN_RESULT,
        permission=ADMIN,
        on="queue",
        action='reclassification of queue "{queue}"',
        subject='queue "{queue}"',
        repeatable=True,
    ),
)
