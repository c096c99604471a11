"""The pictures in docs/: `python -m tests.dashboard.pictures [DIRECTORY] [SECONDS]`.

A broker under the traffic of traffic.py for a while, then one picture per page.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser

from tests.dashboard.browser import DESK, PHONE, chromium, origin_of, watched
from tests.dashboard.traffic import Traffic, settle
from tests.http.visitor import HttpBroker

ROOT = Path(__file__).parents[2]
PAUSE_REASON = "provider outage, ticket 318"


def main() -> None:
    directory = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "pictures"
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 75.0
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        settings = {"backup.target": "backups"}  # beside its data
        with HttpBroker(Path(place) / "data", settings=settings) as broker:
            assert isinstance(broker, HttpBroker)
            visitor = broker.visitor()
            with Traffic(broker), chromium() as browser:
                settle(2)
                visitor.allow_posts()
                visitor.post("pause", {"queue": "search-index", "reason": PAUSE_REASON})
                visitor.post("operations/CreateBackup", {})
                settle(seconds)
                _take(browser, origin_of(broker.http_address), directory)
        locked = {"auth.bootstrap_apikey": "a-key-for-pictures"}
        with HttpBroker(Path(place) / "locked", settings=locked) as broker, chromium() as browser:
            assert isinstance(broker, HttpBroker)
            with watched(browser, origin_of(broker.http_address), (800, 520)) as seen:
                seen.go("/")
                seen.page.wait_for_selector("#api_key")
                seen.page.screenshot(path=directory / "dashboard-login.png")


def _take(browser: Browser, origin: str, directory: Path) -> None:
    queue, tenant = "/queue?name=orders", "/tenant?queue=orders&key=YWNtZQ"
    throttled = "/tenant?queue=mails&key=YWNtZQ"
    for name, path, size, theme, ready, whole in (
        ("overview", "/", (1280, 620), "light", ".queues .spark polyline", False),
        ("queue", queue, DESK, "light", ".tenant .causebar i", True),
        ("tenant-throttled", throttled, DESK, "dark", ".sentence", True),
        (
            "messages",
            "/messages?queue=orders.dlq",
            (1280, 640),
            "light",
            ".messages tbody tr",
            False,
        ),
        ("hooks", queue, (1280, 1080), "light", "#hooks button", False),
        ("settings", "/settings", (1280, 860), "light", "#buckets .gauge", False),
        ("overview-phone", "/", PHONE, "light", ".queues .spark polyline", False),
        ("tenant-phone", tenant, PHONE, "dark", ".sentence", False),
    ):
        with watched(browser, origin, size, color_scheme=theme) as seen:
            seen.go(path)
            seen.page.wait_for_selector(ready, state="attached")
            settle(6 if "buckets" in path or "mails" in path else 2.5)
            if name == "messages":
                seen.page.locator(".messages a.row-link").first.click()
                seen.page.wait_for_selector(".payload")
            if name == "hooks":
                seen.page.get_by_role("button", name="Change hooks").click()
                seen.page.get_by_role("button", name="Try", exact=True).click()
                seen.page.wait_for_selector(".tried p")
                seen.page.locator("#note").scroll_into_view_if_needed()
            seen.page.screenshot(path=directory / f"dashboard-{name}.png", full_page=whole)
            assert not seen.errors, seen.errors
            print(name)


if __name__ == "__main__":
    main()
