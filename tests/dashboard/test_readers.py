"""Readable on a phone and by keyboard, in the dark and in the light, with ten thousand tenants."""

from __future__ import annotations

import time

import pytest
from playwright.sync_api import Page, expect

from tests.dashboard.browser import DESK, PHONE
from tests.dashboard.conftest import Open
from tests.dashboard.traffic import many_keys
from tests.e2e.process import wait_until
from tests.http.visitor import HttpBroker

PAGES = ("/", "/queue?name=orders", "/queue?name=mails", "/tenant?queue=orders&key=YWNtZQ")
KEYS = 10_000
FOCUSED = """() => {
  const one = document.activeElement;
  if (!one || one === document.body) return "";
  const box = one.getBoundingClientRect();
  const style = getComputedStyle(one);
  return (one.innerText || one.getAttribute("aria-label") || one.tagName).trim()
    + "|" + (box.width > 0 && box.height > 0) + "|" + style.outlineStyle;
}"""


@pytest.fixture(scope="module")
def crowd(site: HttpBroker) -> str:
    with site.peer() as peer:
        many_keys(peer, "crowd", KEYS)
    visitor = site.visitor()
    visitor.wait(lambda one: one.get("/api/v1/queue", name="crowd").status == 200, "the crowd")
    return "crowd"


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("width", [320, 390, 820])
def test_no_page_scrolls_sideways(open_page: Open, path: str, width: int) -> None:
    page = open_page(path, (width, 844)).page
    expect(page.locator(".link")).to_have_text("live")
    expect(page.locator("h1")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    for button in page.get_by_role("button").all():
        box = button.bounding_box()
        assert box is None or box["x"] + box["width"] <= width


def test_a_phone_shows_queues_as_cards_with_every_number_labelled(open_page: Open) -> None:
    page = open_page("/", PHONE, has_touch=True, is_mobile=True).page
    card = page.locator(".queues tbody tr").first
    expect(card).to_be_visible()
    labels = card.locator("td[data-label]").evaluate_all("all => all.map(one => one.dataset.label)")
    assert labels[:4] == ["Pending", "In flight", "In /s", "Out /s"]
    card.get_by_role("link").first.tap()
    expect(page.locator(".tiles")).to_be_visible()


def test_tab_reaches_everything_in_reading_order_and_shows_where_it_is(open_page: Open) -> None:
    page = open_page("/queue?name=orders").page
    expect(page.locator(".tenants .body .tenant").first).to_be_visible()
    page.locator(".brand").focus()
    page.keyboard.press("Shift+Tab")
    reached = []
    for _ in range(60):
        text, visible, outline = page.evaluate(FOCUSED).rsplit("|", 2)
        assert visible == "true", text
        assert outline != "none", text
        reached.append(text)
        if text.startswith("Redrive"):
            break
        page.keyboard.press("Tab")
    expected = ["Skip to content", "Fila", "Settings", "API keys", "Pipeline", "Dark", "Shortcuts",
                    "Queues", "Messages", "Pause queue"]  # fmt: skip
    assert reached[: len(expected)] == expected
    for wanted in ("acme", "Find a tenant", "Pending", "orders.dlq", "Redrive"):
        assert any(text.startswith(wanted) for text in reached), wanted


def test_the_skip_link_leads_past_the_bar(open_page: Open) -> None:
    page = open_page("/").page
    expect(page.locator(".queues")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()


def test_shortcuts_find_move_open_go_up_and_turn_the_light(open_page: Open) -> None:
    page = open_page("/", color_scheme="light").page
    expect(page.locator(".queues")).to_be_visible()
    page.keyboard.press("/")
    expect(page.get_by_label("Find a queue")).to_be_focused()
    page.keyboard.type("order")
    expect(page.locator(".queues tbody tr")).to_have_count(1)
    page.get_by_role("link", name="orders", exact=True).focus()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("orders")
    table = page.get_by_role("grid", name="Tenants")
    expect(table.locator(".body .tenant").first).to_be_visible()
    table.focus()
    page.keyboard.press("ArrowDown")
    chosen = table.locator(".current a").inner_text()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text(chosen)
    page.keyboard.press("u")
    expect(page.locator("h1")).to_have_text("orders")
    page.keyboard.press("u")
    expect(page.locator("h1")).to_have_text("Queues")
    page.keyboard.press("t")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("dark or light")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_systems_wish_for_dark_or_light_is_followed(open_page: Open, theme: str) -> None:
    page = open_page("/queue?name=orders", color_scheme=theme).page
    expect(page.locator("html")).to_have_attribute("data-theme", theme)
    expect(page.locator("#flow canvas")).to_be_attached()
    assert (_brightness(page, "body") < 0.3) == (theme == "dark")
    assert _least_contrast(page) >= 4.5


def test_a_chosen_light_is_remembered(open_page: Open) -> None:
    page = open_page("/", color_scheme="light").page
    page.get_by_role("button", name="Dark").click()
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert _brightness(page, "body") < 0.3


def test_ten_thousand_tenants_are_shown_at_once_and_few_rows_are_drawn(
    open_page: Open, crowd: str
) -> None:
    seen = open_page("/")
    started = time.monotonic()
    seen.go(f"/queue?name={crowd}")
    page = seen.page
    rows = page.locator(".tenants .body .tenant")
    expect(rows.first).to_be_visible()
    took_s = time.monotonic() - started
    expect(page.locator("#tenants header")).to_contain_text("10,000 keys")
    assert rows.count() <= 60
    assert took_s < 30, f"{took_s:.1f} s to the first row"
    nodes = page.evaluate("document.querySelectorAll('*').length")
    assert nodes < 3_000


def test_ten_thousand_tenants_are_scrolled_sorted_and_searched(open_page: Open, crowd: str) -> None:
    page = open_page(f"/queue?name={crowd}").page
    table = page.get_by_role("grid", name="Tenants")
    expect(table.locator(".body .tenant").first).to_be_visible()
    page.get_by_role("columnheader", name="Tenant").get_by_role("button").click()
    expect(table.locator(".body .tenant a").first).to_have_text("tenant-00000")
    table.focus()
    page.keyboard.press("End")
    expect(table.get_by_role("link", name="tenant-09999")).to_be_in_viewport()
    page.keyboard.press("Home")
    expect(table.get_by_role("link", name="tenant-00000")).to_be_in_viewport()
    table.evaluate("one => { one.scrollTop = 5000 * 40 }")
    expect(table.get_by_role("link", name="tenant-05003", exact=True)).to_be_in_viewport()
    assert table.locator(".body .tenant").count() <= 60
    page.get_by_label("Find a tenant").fill("-0123")
    expect(table.locator(".body .tenant")).to_have_count(10)
    expect(page.locator("#tenants header")).to_contain_text("10 of 10,000 keys")


def test_an_open_page_of_ten_thousand_tenants_stays_smooth(open_page: Open, crowd: str) -> None:
    page = open_page(f"/queue?name={crowd}", DESK).page
    expect(page.locator(".tenants .body .tenant").first).to_be_visible()
    page.evaluate(
        """() => { window.slow = []; new PerformanceObserver((list) => {
          for (const one of list.getEntries()) window.slow.push(one.duration);
        }).observe({ type: "longtask" }); }"""
    )
    before = page.locator(".link").inner_text()
    wait_until(lambda: page.evaluate("performance.now()") > 6_000, 15, "a few beats")
    assert before == "live"
    assert sum(page.evaluate("window.slow")) < 1_500


def _brightness(page: Page, selector: str) -> float:
    found: float = page.eval_on_selector(
        selector,
        """one => {
          const [r, g, b] = getComputedStyle(one).backgroundColor.match(/\\d+/g).map(Number);
          return (0.299 * r + 0.587 * g + 0.114 * b) / 255;
        }""",
    )
    return found


def _least_contrast(page: Page) -> float:
    """Of all text against the nearest background that is painted (WCAG's measure)."""
    found: float = page.evaluate(
        """() => {
          const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
          const light = ([r, g, b]) => {
            const [x, y, z] = [r, g, b].map((v) => {
              v /= 255;
              return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
            });
            return 0.2126 * x + 0.7152 * y + 0.0722 * z;
          };
          const behind = (one) => {
            for (let at = one; at; at = at.parentElement) {
              const [r, g, b, a = 1] = parse(getComputedStyle(at).backgroundColor);
              if (a === 1 && r !== undefined) return [r, g, b];
            }
            return [255, 255, 255];
          };
          let least = 99;
          for (const one of document.querySelectorAll("#app *")) {
            const own = [...one.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
            if (!own || one.closest(":disabled") || !one.getClientRects().length) continue;
            const [a, b] = [light(parse(getComputedStyle(one).color)), light(behind(one))];
            least = Math.min(least, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
          }
          return least;
        }"""
    )
    return found
