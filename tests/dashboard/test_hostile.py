"""Names somebody else chose are text: they run nothing, load nothing and break no layout."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

from fila.edges.http.views import ref_of
from tests.dashboard.browser import PHONE
from tests.dashboard.conftest import Open
from tests.dashboard.traffic import HOOK
from tests.http.visitor import HttpBroker, Visitor

NAMES = {
    "html": '<img src=x onerror="alert(1)"><script>alert(2)</script>',
    "attribute": "\"'><svg/onload=alert(3)> javascript:alert(4)",
    "emoji": "🦀🏳️‍🌈 queue 👩‍👩‍👧‍👦",
    "right to left": "\u202eevil\u2066 طابور \u05ea\u05d5\u05e8",
    "255 bytes": "W" * 255,
    "template": "${7*7} {{7*7}} %3Cscript%3E &lt;b&gt; ../../etc?name=x#y&z",
    "blank": "\u200b\u2060",
}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
def test_a_hostile_name_is_inert_on_every_page(
    open_page: Open, site: HttpBroker, name: str
) -> None:
    with site.peer() as peer:
        peer.create_queue(name, on_enqueue=HOOK)
        peer.set_config(f"throttle.provider:{name}"[:255], "0.001,1")
        stream = peer.consume(name, prefetch=1)
        via = name[: 255 - len("provider:")]
        peer.enqueue(name, *[b"m"] * 4, headers={"tenant": name, "via": via})
        [message] = peer.take(stream, 1)
        peer.nack(name, message.id, error=name)
    try:
        site.visitor().wait(lambda one: _pending(one, name) >= 3, "the queue to be seen")
        places = (
            "/",
            "/queue?" + urlencode({"name": name}),
            "/tenant?" + urlencode({"queue": name, "key": ref_of(name.encode())}),
        )
        for path in places:
            for size in ((1280, 900), PHONE):
                seen = open_page(path, size)
                page = seen.page
                expect(page.locator("h1")).to_be_visible()
                expect(page.locator(".link")).to_have_text("live")
                expect(page.locator("bdi.name").first).to_be_attached()
                titles = page.locator("bdi.name").evaluate_all("all => all.map(one => one.title)")
                assert name in titles  # whole, as text
                assert page.locator("#app script, #app img:not([src='/favicon.svg'])").count() == 0
                assert page.locator("#app svg:not(.spark)").count() == 0
                wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
                assert wide <= 0, f"{path[:20]} is {wide} px too wide"
                assert seen.errors == []
    finally:
        with site.peer() as peer:
            peer.delete_queue(name)


def test_pages_run_under_a_policy_that_allows_no_inline_code(open_page: Open) -> None:
    seen = open_page("/")
    page = seen.page
    expect(page.locator(".queues")).to_be_visible()
    page.evaluate(
        """() => {
          const made = document.createElement("div");
          made.innerHTML = "<img src=x onerror='window.ran = true'>";
          document.body.append(made);
        }"""
    )
    page.wait_for_timeout(300)
    assert page.evaluate("window.ran") is None
    assert seen.errors and all("Content Security Policy" in text for text in seen.errors)
    seen.errors.clear()


def _pending(visitor: Visitor, name: str) -> int:
    rows = visitor.api("overview")["queues"]
    return next((int(row["depth"]) for row in rows if row["name"] == name), -1)
