"""The stored form of a reclassification: how far it has come, drawn as in `rows.py`.

state     'r' · queue u32                              → reclassify record

reclassify
          u8 1 · began_ns u64 · next_lane u64 · version u32 · rate u32 · judged u64 · moved u64
          · reweighed u64 · undecided u64 · waiting u64 · len16 who · lane u64
              · stamp u64 · id 16
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from fila.core import rows

_HEAD: Final = struct.Struct(">BQQIIQQQQQ")
_U16: Final = struct.Struct(">H")
_CURSOR_BYTES: Final = 32
START: Final = b"\0" * _CURSOR_BYTES


class Course(NamedTuple):
    """How far it has come."""

    began_ns: int
    next_lane: int  # lanes with this number or a higher one were made later
    version: int  # of the queue's settings
    rate: int  # messages per second at most; 0: no limit
    judged: int
    moved: int  # to another key or set of throttle keys
    reweighed: int
    undecided: int  # the hook had no verdict: they stay as they are
    waiting: int  # messages when it began
    who: str
    after: bytes  # lane · stamp · id of the message looked at last


def row_key(queue: int) -> bytes:
    return rows.RECLASSIFY_PREFIX + rows.queue_prefix(queue)


def course_row(course: Course) -> bytes:
    who = course.who.encode()
    head = _HEAD.pack(1, *course[:9])
    return head + _U16.pack(len(who)) + who + course.after


def read_course(value: bytes) -> Course:
    version, *numbers = _HEAD.unpack_from(value)
    rows.check_version(version, "reclassify")
    who, at = rows.read_bytes16(value, _HEAD.size)
    if len(value) != at + _CURSOR_BYTES:
        raise rows.CorruptRowError("a stored reclassify record is cut off")
    return Course(*(*numbers, who.decode(), value[at:]))
