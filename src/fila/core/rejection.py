"""A client's mistake, as a value: what happened, to what, and what to do about it."""

from __future__ import annotations

from typing import Final, NamedTuple

# Numbers of the error catalogue (spec/errors.json); only those the core itself gives out.
OK: Final = 0x00
QUEUE_NOT_FOUND: Final = 0x01
MESSAGE_NOT_FOUND: Final = 0x02
QUEUE_ALREADY_EXISTS: Final = 0x03
NOT_A_DLQ: Final = 0x06
PARENT_QUEUE_NOT_FOUND: Final = 0x07
INVALID_CONFIG_VALUE: Final = 0x08
LUA_COMPILATION_ERROR: Final = 0x04
CHANNEL_FULL: Final = 0x09
BATCH_NOT_FOUND: Final = 0x11
SNAPSHOT_EXPIRED: Final = 0x12


class Rejection(NamedTuple):
    code: int
    message: str


def queue_not_found(queue: str) -> Rejection:
    return Rejection(QUEUE_NOT_FOUND, f'queue "{queue}" does not exist')


def invalid_value(what: str, why: str) -> Rejection:
    return Rejection(INVALID_CONFIG_VALUE, f"{what}: {why}")
