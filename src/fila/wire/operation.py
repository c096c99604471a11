"""What there is to know about one operation: a row of the table in `operations`.

Owns the shape of a row and the texts made from it. Never touches bytes, sockets or permissions.

A layout is a field's name to how it travels: `string`, `u64`, `string?` (absent or there),
`Item[u16]` (a list of records, counted by a u16), `optional u64` (added later: old peers leave it
out, last in the body only). A default follows an equals sign: `u32 = 10`.
"""

import re
from typing import Any, Final, NamedTuple

Layout = dict[str, str]
EXPLAINED: Final[Layout] = {"message": "optional string"}  # the reason of a code that is not Ok

# Where a failure of an operation is told over FIBP. Over gRPC it is the call's status, but for
# PER_ITEM. What the guard refuses (Forbidden) is an Error frame wherever other failures go. With
# PER_ITEM one forbidden queue refuses the whole frame over FIBP, and nothing is stored; over gRPC
# it refuses the items of that queue, and the others go on.
IN_RESULT: Final = "in the result"
ERROR_FRAME: Final = "Error frame"
PER_ITEM: Final = "per item"

# What a caller needs. `on` names the request's field that holds the queue; BROKER: all of it. Other
# words in `on` are for the reference: the handler finds out what is touched and asks the guard.
PRODUCE: Final = "produce"
CONSUME: Final = "consume"
ADMIN: Final = "admin"
CONSUME_OR_ADMIN: Final = "consume or admin"
BROKER: Final = "*"

CLIENT: Final = "client"
SERVER: Final = "server"
BOTH: Final = "both"

_OPTIONAL_PART: Final = re.compile(r"\[([^\]]*)\]")
_FIELD: Final = re.compile(r"\{(\w+)\}")


class Operation(NamedTuple):
    """A request and its result."""

    name: str
    opcode: int
    result_opcode: int
    note: str  # what it does, in a sentence
    request: Layout
    result: Layout
    section: str = "admin"  # of spec/fibp.md
    failures: str = ERROR_FRAME
    permission: str = ""  # empty: the handler decides what the caller sees or may do
    on: str = ""
    unnamed: bool = False  # without a queue it asks for all on which the caller has the permission
    # For the audit log and the SDK's errors: `{field}` of the request or the result; a part in
    # square brackets is left out where its field is empty.
    action: str = ""
    subject: str = ""
    changes: bool = False  # something: written to the audit log when it is done
    repeatable: bool = False  # may be sent again when its answer was lost
    by_hand: bool = False  # has a codec or handlers of its own in the edges
    service: str = "FilaAdmin"  # that has its gRPC twin, if there is one
    result_name: str = ""

    def result_type(self) -> str:
        return self.result_name or self.name + "Result"


class Notice(NamedTuple):
    """A frame that stands alone: nothing answers it, and it answers nothing."""

    name: str
    opcode: int
    sender: str
    fields: Layout
    section: str


def kind_of(spec: str) -> str:
    """How a field travels, without its default."""
    return spec.partition(" = ")[0]


def default_of(spec: str) -> str:
    """The default as it stands in the table; empty: none."""
    return spec.partition(" = ")[2]


def text(template: str, fields: dict[str, Any]) -> str:
    """An operation's `action` or `subject` with the fields of a request, or its result, in it."""

    def part(found: re.Match[str]) -> str:
        inside = found.group(1)
        names = _FIELD.findall(inside)
        return inside if all(fields.get(name) for name in names) else ""

    kept = _OPTIONAL_PART.sub(part, template)
    return _FIELD.sub(lambda found: str(fields.get(found.group(1), "")), kept).strip()
