"""Chromium, and a page that remembers what it should not have done. Playwright lives here."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from playwright.sync_api import Browser, ConsoleMessage, Page, Request, expect, sync_playwright

DESK: Final = (1280, 900)
PHONE: Final = (390, 844)
FLAGS: Final = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--disable-dev-shm-usage",
)
WAIT_MS: Final = 15_000


def chromium_path() -> str | None:
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)


@contextmanager
def chromium() -> Iterator[Browser]:
    path = chromium_path()
    assert path is not None, "Chromium is missing: make chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


class Watched:
    """A page, with its errors and the requests that left its origin."""

    def __init__(self, page: Page, origin: str) -> None:
        self.page = page
        self.origin = origin
        self.errors: list[str] = []
        self.strays: list[str] = []
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", self._asked)
        page.on("dialog", lambda dialog: self.errors.append(f"dialog: {dialog.message}"))

    def go(self, path: str) -> None:
        self.page.goto(self.origin + path)

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(message.text)

    def _asked(self, request: Request) -> None:
        if not request.url.startswith((self.origin + "/", "data:")):
            self.strays.append(request.url)


@contextmanager
def watched(
    browser: Browser, origin: str, size: tuple[int, int] = DESK, **options: Any
) -> Iterator[Watched]:
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]}, reduced_motion="reduce", **options
    )
    context.set_default_timeout(WAIT_MS)
    expect.set_options(timeout=WAIT_MS)
    try:
        yield Watched(context.new_page(), origin)
    finally:
        context.close()


def origin_of(address: tuple[str, int]) -> str:
    return f"http://{address[0]}:{address[1]}"
