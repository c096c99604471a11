from __future__ import annotations

import pytest

from fila.core import rows
from fila.core.row_batch import PUT, RowBatch
from fila.storage.contract import StoreError
from fila.storage.format import check_format
from fila.storage.memory import MemoryStore


def stamped(version: int) -> MemoryStore:
    store = MemoryStore()
    value = version.to_bytes(4, "big")
    store.write([RowBatch(0, 0, [(PUT | rows.DEFAULT, rows.FORMAT_KEY, value)])])
    return store


def test_a_new_store_is_stamped_with_the_format_version() -> None:
    store = MemoryStore()
    check_format(store)
    stored = store.get(rows.DEFAULT, rows.FORMAT_KEY)
    assert stored == rows.FORMAT_VERSION.to_bytes(4, "big")


def test_a_stamped_store_is_taken_as_it_is() -> None:
    store = stamped(rows.FORMAT_VERSION)
    check_format(store)
    assert store.unsynced_writes == 1


@pytest.mark.parametrize("version", [0, rows.FORMAT_VERSION + 1, 4_000_000_000])
def test_a_store_of_another_version_is_refused_with_both_versions(version: int) -> None:
    with pytest.raises(StoreError) as refused:
        check_format(stamped(version))
    assert f"has format {version}" in str(refused.value)
    assert f"reads format {rows.FORMAT_VERSION}" in str(refused.value)
    assert "use the version of Fila that wrote it" in str(refused.value)
