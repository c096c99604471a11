"""The pipeline's page shows what `fila pipeline run` left in the journal, and follows it."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, expect

from tests.dashboard.browser import DESK, origin_of, watched
from tests.http.visitor import HttpBroker


def document(delivered: int) -> dict[str, Any]:
    tenant = {"broker": "fila", "queue": "orders", "key": "<b>acme</b>"}
    return {
        "version": 1, "reached_ms": round(time.time() * 1_000), "minutes": 5,
        "queues": [{"broker": "fila", "queue": "orders"}],
        "fairness": [{**tenant, "weight": 1, "delivered": delivered, "fair": 90.0, "behind": 80.0,
                      "ratio": delivered / 90, "pending": 70}],
        "slo": [{**tenant, "deliveries": delivered, "slow": 5, "target": 0.99, "within_ms": 1_000,
                 "burn_rate": 50.0}],
        "blame": [{**tenant, "waited_s": 12.5, "messages": delivered,
                   "by": [{"key": "noisy", "s": 12.5}]}],
    }  # fmt: skip


def test_the_last_minutes_are_shown_and_followed(browser: Browser, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    settings = {"journal.enabled": True, "journal.path": str(journal)}
    with HttpBroker(tmp_path / "data", settings=settings) as broker:
        assert isinstance(broker, HttpBroker)
        with watched(browser, origin_of(broker.http_address), DESK) as seen:
            seen.go("/")
            page = seen.page
            page.get_by_role("link", name="Pipeline").click()
            expect(page.locator(".empty")).to_contain_text("fila pipeline run")
            (journal / "_live.json").write_text(json.dumps(document(10)))
            row = page.locator("#fairness tbody tr")
            expect(row).to_contain_text("<b>acme</b>")
            expect(row.locator("td").nth(5)).to_have_class(re.compile("bad"))
            expect(page.locator("#objectives tbody tr")).to_contain_text("50.00")
            expect(page.locator("#blame tbody tr")).to_contain_text("noisy 12.5 s")
            (journal / "_live.json").write_text(json.dumps(document(88)))
            expect(row.locator("td").nth(2)).to_have_text("88")
            assert seen.errors == []
            assert seen.strays == []
