"""A client's mistake, as a value: what happened, to what, and what to do about it.

The codes are those of `fila.error_codes`; named here are the ones the core itself gives out.
"""

from __future__ import annotations

from typing import NamedTuple

from fila.error_codes import BATCH_NOT_FOUND as BATCH_NOT_FOUND
from fila.error_codes import CHANNEL_FULL as CHANNEL_FULL
from fila.error_codes import INVALID_CONFIG_VALUE as INVALID_CONFIG_VALUE
from fila.error_codes import LUA_COMPILATION_ERROR as LUA_COMPILATION_ERROR
from fila.error_codes import MESSAGE_NOT_FOUND as MESSAGE_NOT_FOUND
from fila.error_codes import NODE_NOT_READY as NODE_NOT_READY
from fila.error_codes import NOT_A_DLQ as NOT_A_DLQ
from fila.error_codes import OK as OK
from fila.error_codes import PARENT_QUEUE_NOT_FOUND as PARENT_QUEUE_NOT_FOUND
from fila.error_codes import QUEUE_ALREADY_EXISTS as QUEUE_ALREADY_EXISTS
from fila.error_codes import QUEUE_FULL as QUEUE_FULL
from fila.error_codes import QUEUE_NOT_FOUND as QUEUE_NOT_FOUND
from fila.error_codes import SNAPSHOT_EXPIRED as SNAPSHOT_EXPIRED
from fila.error_codes import STORAGE_ERROR as STORAGE_ERROR
from fila.error_codes import VERSION_CONFLICT as VERSION_CONFLICT


class Rejection(NamedTuple):
    code: int
    message: str
    metadata: tuple[tuple[str, str], ...] = ()  # for programs, where the catalogue names keys


def queue_not_found(queue: str) -> Rejection:
    return Rejection(QUEUE_NOT_FOUND, f'queue "{queue}" does not exist')


def invalid_value(what: str, why: str) -> Rejection:
    return Rejection(INVALID_CONFIG_VALUE, f"{what}: {why}")
