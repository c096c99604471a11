"""A queue whose rows cannot be read: the overview says so, and why."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, expect

from fila.core import rows
from fila.core.row_batch import PUT, RowBatch
from fila.storage.rocks import RocksStore
from tests.dashboard.browser import DESK, origin_of, watched
from tests.http.visitor import HttpBroker


def test_a_quarantined_queue_is_named_with_its_cause(browser: Browser, tmp_path: Path) -> None:
    broker = HttpBroker(tmp_path / "data")
    with broker.start(), broker.peer() as peer:
        for name in ("bad", "good"):
            peer.create_queue(name)
        assert broker.stop() == 0
    store = RocksStore(broker.data_dir)
    stored = store.get(rows.QUEUES, b"bad")
    assert stored is not None
    spoilt = rows.ledger_key(rows.read_queue(stored).group, 1 << 40)
    store.write([RowBatch(0, 0, [(PUT | rows.STATE, spoilt, b"\x09" + bytes(20))])])
    store.close()
    with broker.start(), watched(browser, origin_of(broker.http_address), DESK) as seen:
        seen.go("/")
        banners = seen.page.locator(".banner.bad")
        expect(banners).to_have_count(2)
        expect(banners.first).to_contain_text("bad is quarantined")
        expect(banners.first).to_contain_text("a stored ledger has version 9")
        expect(seen.page.locator("table.queues tbody tr")).to_have_count(1)
        assert seen.errors == []
