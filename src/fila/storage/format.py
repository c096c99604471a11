"""The format version of a data directory, written once and checked at every start."""

from __future__ import annotations

from fila.core import rows
from fila.core.row_batch import PUT, RowBatch
from fila.storage.contract import Store, StoreError


def check_format(store: Store) -> None:
    """Stamp a new store; refuse one that this version cannot read."""
    stored = store.get(rows.DEFAULT, rows.FORMAT_KEY)
    if stored is None:
        version = rows.FORMAT_VERSION.to_bytes(4, "big")
        store.write([RowBatch(0, 0, [(PUT | rows.DEFAULT, rows.FORMAT_KEY, version)])])
        return
    found = int.from_bytes(stored, "big")
    if found != rows.FORMAT_VERSION:
        raise StoreError(
            f"the store has format {found}, this Fila reads format {rows.FORMAT_VERSION}; "
            "use the version of Fila that wrote it"
        )
