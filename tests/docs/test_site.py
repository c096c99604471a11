"""The documentation as a site: it builds without a warning, and works in a browser."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, expect

from tests.dashboard.browser import PHONE, watched
from tests.http_files import served

ROOT = Path(__file__).parents[2]


def build(place: Path, config: Path = ROOT / "mkdocs.yml") -> subprocess.CompletedProcess[str]:
    # Not --quiet: MkDocs then counts no warnings, and nothing is an error.
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "-f", str(config), "-d", str(place)],
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site") / "site"
    built = build(place)
    assert built.returncode == 0 and "WARNING" not in built.stderr, built.stderr
    return place


@pytest.fixture(scope="module")
def origin(site: Path) -> Iterator[str]:
    with served(site) as address:
        yield address


def test_a_broken_link_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    config = tmp_path / "mkdocs.yml"
    text = (ROOT / "mkdocs.yml").read_text()
    text = text.replace("tools/site.py", str(ROOT / "tools/site.py"))
    config.write_text(
        re.sub(r"^nav:\n(?:  .*\n)+", "nav:\n  - index.md\n", text, flags=re.MULTILINE)
    )
    (tmp_path / "docs/page.md").write_text("# A page\n\n[nowhere](../src/fila/nowhere.py)\n")
    told = build(tmp_path / "site", config)
    assert told.returncode != 0
    assert "nowhere.py, which is not there" in told.stdout + told.stderr


def test_no_page_asks_another_host_for_anything(site: Path) -> None:
    asked = re.compile(r'<(?:script|img|iframe|link)[^>]+(?:src|href)="?(https?://[^">\s]+)')
    found = {
        (str(page.relative_to(site)), url)
        for page in site.rglob("*.html")
        for url in asked.findall(page.read_text())
        if 'rel="canonical"' not in url
    }
    assert found == set()


def test_machines_get_every_page_in_one(site: Path) -> None:
    short, whole = (site / "llms.txt").read_text(), (site / "llms-full.txt").read_text()
    pages = re.findall(r"\]\((\S+\.html)\)", short)
    assert len(pages) > 30 and all((site / page).is_file() for page in pages)
    assert len(set(pages)) == len(pages)
    for page in pages:  # in order, each once
        name = re.sub(r"index\.html$|\.html$", "", page)
        names = (f"{name}.md", f"{name}README.md", f"{name}index.md")
        assert sum(whole.count(f"<!-- {one} -->") for one in names) == 1, page


def test_pages_from_all_over_the_repository_are_on_the_site(site: Path) -> None:
    for page in ("reference/http", "reference/fibp", "sdks/go", "sdks/rust", "changelog"):
        assert (site / f"{page}.html").is_file(), page
    front = (site / "index.html").read_text()
    assert 'href="sdks/go.html"' in front and "blob/main/sdks/go/README.md" not in front
    assert "blob/main/LICENSE" in front  # what is no page leads to the repository


def test_search_finds_what_a_page_says(origin: str, browser: Browser) -> None:
    with watched(browser, origin) as seen:
        seen.go("/index.html")
        seen.page.wait_for_load_state("networkidle")
        seen.page.locator("input.md-search__input").click()
        # One key pressed: each is a search of its own, and the list changes under the reader.
        # Again where nothing comes: what was typed before the search was ready is not looked for.
        box = seen.page.locator("input.md-search__input")
        first = seen.page.locator(".md-search-result__item").first
        box.fill("visibility timeou")
        for _ in range(15):
            box.press("t")
            seen.page.wait_for_timeout(2_000)
            if first.is_visible():
                break
            box.press("Backspace")
        expect(first).to_contain_text("visibility timeout", ignore_case=True)
        link = first.locator("a").first.get_attribute("href") or ""
        seen.page.goto(link)
        expect(seen.page.locator("article")).to_contain_text("isibility timeout")
        assert (seen.errors, seen.strays) == ([], [])


def test_a_tab_shows_its_own_language_and_no_other(origin: str, browser: Browser) -> None:
    with watched(browser, origin) as seen:
        seen.go("/quick-start.html")
        shown = seen.page.locator(".tabbed-block:visible")
        expect(shown).to_contain_text("from fila import FilaClient")
        for language, text in (
            ("Go", "fila.Dial"),
            ("JavaScript", "@fila/client"),
            ("Java", "FilaClient.builder"),
            ("Rust", "FilaClient::connect"),
            ("Ruby", "Fila::Client.open"),
        ):
            seen.page.get_by_text(language, exact=True).locator("visible=true").first.click()
            expect(shown).to_have_count(1)
            expect(shown).to_contain_text(text)
        assert (seen.errors, seen.strays) == ([], [])


def test_the_playground_runs_the_core_in_the_browser(origin: str, browser: Browser) -> None:
    with watched(browser, origin, PHONE) as seen:
        seen.go("/playground.html")
        expect(seen.page.locator("#playground[data-ready]")).to_be_visible(timeout=240_000)
        fair, fifo = (seen.page.locator(f"#seen-{kind} tbody tr") for kind in ("fair", "fifo"))
        # Some simulated seconds: the noisy tenant has a backlog, and only Fila spares the others.
        expect(fair.nth(0)).to_contain_text(re.compile(r"\d s"), timeout=120_000)
        expect(fair.nth(1)).to_contain_text(re.compile(r"\d ms"), timeout=120_000)
        expect(fifo.nth(1)).to_contain_text(re.compile(r"\d s"), timeout=120_000)
        limit = seen.page.get_by_label("noisy: limit")
        limit.fill("10")
        share = re.compile(r"noisy\D*(?:[1-4]\d|50) %")  # 10 of what 20 others and it send
        expect(fair.nth(0)).to_contain_text(share, timeout=120_000)
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
        assert (seen.errors, seen.strays) == ([], [])


def pages(site: Path) -> list[str]:
    """Every page but the playground, which has a test of its own, and the page of errors."""
    found = sorted(page.relative_to(site).as_posix() for page in site.rglob("*.html"))
    return [name for name in found if name not in ("playground.html", "404.html")]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_every_page_without_scrolling_sideways_or_an_error(
    site: Path, origin: str, browser: Browser, scheme: Literal["light", "dark"]
) -> None:
    names = pages(site)
    assert len(names) > 60
    wide = []
    with watched(browser, origin, PHONE, color_scheme=scheme) as seen:
        for name in names:
            seen.go(f"/{name}")
            expect(seen.page.locator("h1").first).to_be_visible(timeout=60_000)
            if seen.page.evaluate("document.documentElement.scrollWidth") > PHONE[0]:
                wide.append(name)
            broken = "[...document.images].filter(one => one.complete && !one.naturalWidth).length"
            assert seen.page.evaluate(broken) == 0, name
        assert (wide, seen.errors, seen.strays) == ([], [], [])


def test_the_dark_form_follows_the_system(origin: str, browser: Browser) -> None:
    with watched(browser, origin, color_scheme="dark") as seen:
        seen.go("/concepts.html")
        expect(seen.page.locator("body")).to_have_attribute("data-md-color-scheme", "slate")
        ground = seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert max(map(int, re.findall(r"\d+", ground)[:3])) < 80
        assert (seen.errors, seen.strays) == ([], [])
