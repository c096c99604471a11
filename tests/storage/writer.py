"""A process that writes to a store until it dies: `python -m tests.storage.writer PATH HOW`.

Prints the number of each batch once its commit was called back. Batch n puts one row into three
families, so that half a batch would show. HOW is `loop` to write until killed, `full` to write to a
disk that takes no more after a while, and then to tell what further writes say.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path

from fila.core.row_batch import PUT, RowBatch
from fila.core.rows import LEASES, MESSAGES, STATE
from fila.storage.committer import OsCommitter
from fila.storage.contract import StoreError
from fila.storage.rocks import RocksStore


def batch_of(number: int) -> list[RowBatch]:
    key = number.to_bytes(8, "big")
    ops = [(PUT | family, key, key * 20) for family in (MESSAGES, LEASES, STATE)]
    return [RowBatch(1, number, ops)]


def write_for_ever(committer: OsCommitter) -> None:
    number = 0
    while True:
        number += 1
        committer.commit(batch_of(number), lambda: print(number, flush=True))  # noqa: B023


def main(path: str, how: str) -> None:
    committer = OsCommitter(RocksStore(path))
    if how == "full":
        largest = max(one.stat().st_size for one in Path(path).iterdir())
        limit = largest + 200_000
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    try:
        write_for_ever(committer)
    except StoreError as error:
        print(f"refused: {error}", flush=True)
    try:
        committer.commit(batch_of(0), lambda: print("written after a failure", flush=True))
    except StoreError as error:
        print(f"refused again: {error}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
