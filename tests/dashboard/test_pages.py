"""Pages show what the broker does, as it does it."""

from __future__ import annotations

import re
from urllib.parse import quote

from playwright.sync_api import Locator, Page, expect

from fila.wire import bodies
from tests.dashboard.conftest import Open
from tests.dashboard.traffic import ORDERS
from tests.e2e.process import wait_until
from tests.http.visitor import HttpBroker

ACME = "/tenant?queue=orders&key=YWNtZQ"
THROTTLED = "/tenant?queue=mails&key=YWNtZQ"


def number(found: Locator) -> float:
    return float((found.text_content() or "").replace(",", ""))


def tile(page: Page, label: str) -> Locator:
    return page.locator(".tile", has=page.get_by_text(label, exact=True)).locator("dd").first


def test_the_overview_shows_queues_with_rates_sparklines_and_trouble(open_page: Open) -> None:
    page = open_page("/").page
    rows = page.locator(".queues tbody tr")
    expect(rows.filter(has_text="orders")).to_have_count(1)
    expect(page.locator(".queues a.row-link")).to_contain_text(["invoices", "mails", "orders"])
    orders = rows.filter(has_text="orders")
    expect(orders.locator(".spark polyline")).to_be_attached()
    wait_until(lambda: number(orders.locator("[data-label='Out /s']")) > 20, 10, "deliveries")
    # Nobody consumes the invoices: that is marked.
    expect(rows.filter(has_text="invoices").locator("[data-label=Consumers]")).to_have_class(
        re.compile("bad")
    )
    assert number(tile(page, "Pending")) > 40


def test_numbers_change_without_a_reload(open_page: Open, site: HttpBroker, queue: str) -> None:
    with site.peer() as peer:
        peer.create_queue(queue)
        page = open_page("/").page
        pending = page.locator(".queues tbody tr", has_text=queue).locator("[data-label=Pending]")
        expect(pending).to_have_text("0")
        expect(page.locator(".link")).to_have_text("live")
        peer.enqueue(queue, *[b"m"] * 17)
        expect(pending).to_have_text("17")
        peer.enqueue(queue, *[b"m"] * 5)
        expect(pending).to_have_text("22")


def test_a_queue_created_while_one_looks_appears(open_page: Open, site: HttpBroker) -> None:
    page = open_page("/").page
    expect(page.locator(".queues")).to_be_visible()
    with site.peer() as peer:
        peer.create_queue("appears")
    expect(page.get_by_role("link", name="appears", exact=True)).to_be_visible()


def test_a_queue_shows_each_tenants_share_against_its_fair_share(open_page: Open) -> None:
    page = open_page("/queue?name=orders").page
    shares = page.locator("#shares li")
    expect(shares.first).to_be_visible()
    wait_until(lambda: shares.count() == len(ORDERS), 15, "every tenant's share")
    names = {row.locator("a").inner_text() for row in shares.all()}
    assert names == {tenant for tenant, _, _ in ORDERS}
    expect(shares.first.locator("canvas")).to_be_attached()
    expect(shares.first.locator(".ratio")).to_contain_text(re.compile(r"\d+% of [\d.]+% due"))


def test_a_queue_says_that_its_tenants_share_bytes(
    open_page: Open, site: HttpBroker, queue: str
) -> None:
    with site.peer() as peer:
        made = bodies.CreateQueue(queue, None, None, 0, 0, "bytes")
        assert peer.request(made, bodies.CreateQueueResult).code == 0
    note = open_page(f"/queue?name={queue}").page.get_by_text("Shared by bytes")
    expect(note).to_contain_text("a turn is 16.0 KiB for a weight of 1")
    expect(open_page("/queue?name=orders").page.locator("#shares li").first).to_be_visible()
    expect(open_page("/queue?name=orders").page.get_by_text("Shared by bytes")).to_have_count(0)


def test_a_queue_lists_tenants_with_pending_weight_deficit_and_causes(open_page: Open) -> None:
    page = open_page("/queue?name=orders").page
    first = page.locator(".tenants .body .tenant").first
    expect(first.locator(".c-name")).to_have_text("acme")  # it has the largest backlog
    wait_until(lambda: number(first.locator(".c-pending")) > 10, 15, "a backlog")
    umbrella = page.locator(".tenants .body .tenant", has_text="umbrella")
    expect(umbrella.locator(".c-weight")).to_have_text("3")
    expect(umbrella.locator(".c-deficit")).to_have_text(re.compile(r"^\d+$"))
    expect(first.locator(".causebar i").first).to_be_attached()
    expect(page.locator("#waits li")).to_have_count(9)
    expect(page.locator("#waits .causebar i").first).to_be_attached()


def test_buckets_fill_and_empty_before_ones_eyes(open_page: Open, site: HttpBroker) -> None:
    page = open_page("/queue?name=mails").page
    dry = page.locator(".buckets li", has_text="provider:smtp-eu")
    # It starts full, and twice as much is asked of it as flows in.
    expect(dry).to_contain_text(re.compile(r"\d messages? wait"), timeout=30_000)
    meter = dry.get_by_role("meter")
    expect(meter).to_have_attribute("aria-valuemax", "20")
    assert float(meter.get_attribute("aria-valuenow") or "20") < 5
    seen = {meter.get_attribute("aria-valuenow")}

    def moved() -> bool:
        seen.add(meter.get_attribute("aria-valuenow"))
        return len(seen) >= 3

    wait_until(moved, 90, "the level to change")
    # A higher rate lets it fill: the page shows it without being asked.
    with site.peer() as peer:
        peer.set_config("throttle.provider:smtp-eu", "2000,20")
        try:
            expect(dry).to_contain_text("nobody waits")
            expect(meter).to_have_attribute("aria-valuenow", re.compile(r"^(1\d(\.\d)?|20)$"))
        finally:
            peer.set_config("throttle.provider:smtp-eu", "6,20")


def test_consumers_hooks_and_their_breakers_are_shown(open_page: Open) -> None:
    page = open_page("/queue?name=orders").page
    expect(page.locator("#consumers tbody tr")).to_have_count(1)
    expect(page.locator("#consumers")).to_contain_text("127.0.0.1:")
    expect(page.locator("#consumers")).to_contain_text("/ 24")
    hooks = page.locator(".hook")
    expect(hooks).to_have_count(2)
    expect(hooks.first).to_contain_text("on_enqueue")
    expect(hooks.first.locator(".state")).to_have_text("closed")


def test_an_open_breaker_and_its_last_problem_are_shown(
    open_page: Open, site: HttpBroker, queue: str
) -> None:
    with site.peer() as peer:
        peer.create_queue(queue, on_enqueue='function on_enqueue(msg) error("no such tenant") end')
        peer.enqueue(queue, *[b"m"] * 20)
        site.visitor().wait(
            lambda one: one.get("/api/v1/queue", name=queue).status == 200, "the queue"
        )
        hook = open_page(f"/queue?name={queue}").page.locator(".hook")
        expect(hook.locator(".state")).to_have_text("open")
        expect(hook).to_contain_text("fail mode default")
        expect(hook).to_contain_text("no such tenant")


def test_keys_a_hook_keeps_failing_for_are_shown(
    open_page: Open, site: HttpBroker, queue: str
) -> None:
    policy = """function on_enqueue(msg)
      if msg.headers.order == "broken" then error("no such order") end
      return { fairness_key = msg.headers.tenant }
    end"""
    with site.peer() as peer:
        peer.create_queue(queue, on_enqueue=policy)
        for tenant, order in (("acme", "fine"), ("evil", "fine"), ("evil", "broken")):
            peer.enqueue(queue, *[b"m"] * 10, headers={"tenant": tenant, "order": order})
        site.visitor().wait(
            lambda one: one.get("/api/v1/queue", name=queue).status == 200, "the queue"
        )
        hook = open_page(f"/queue?name={queue}").page.locator(".hook")
        expect(hook).to_contain_text("1 key in quarantine: evil")


def test_dead_letters_are_grouped_by_error(open_page: Open) -> None:
    page = open_page("/queue?name=orders#dead-letters").page
    groups = page.locator("#dead-letters tbody tr")
    wait_until(lambda: groups.count() >= 1, 30, "dead letters")
    # Two users, one group: digits do not make a new error.
    assert page.locator("#dead-letters tbody tr", has_text="mailbox unavailable").count() <= 1


def test_a_tenants_page_says_in_a_sentence_why_it_waits_and_for_whom(open_page: Open) -> None:
    page = open_page(THROTTLED).page
    sentence = page.locator(".sentence")
    # Another test may just have let the bucket fill: it takes a while to run dry again.
    expect(sentence).to_contain_text('bucket "provider:smtp-eu" is empty', timeout=30_000)
    expect(sentence).to_contain_text('"acme" in "mails"')
    expect(sentence).to_contain_text("globex")  # who took tokens meanwhile
    expect(page.locator(".why-parts .causes")).to_contain_text("throttled")
    expect(page.locator(".neighbours").first).to_contain_text("globex")
    expect(page.locator(".changes code").first).to_contain_text("fila config set")
    expect(page.locator("#buckets")).to_contain_text("provider:smtp-eu")
    expect(page.locator("#share canvas")).to_be_attached()


def test_pages_link_to_one_another_and_back(open_page: Open) -> None:
    page = open_page("/").page
    page.get_by_role("link", name="orders", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("orders")
    page.locator(".tenants a", has_text="acme").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("acme")
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("orders")
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("Queues")
    assert page.title() == "Queues · Fila"


def test_what_does_not_exist_is_said(open_page: Open) -> None:
    seen = open_page("/queue?name=" + quote("no such queue"))
    expect(seen.page.get_by_role("alert")).to_contain_text("does not exist")
    seen.go("/tenant?queue=orders&key=" + "bm9ib2R5")
    expect(seen.page.get_by_role("alert")).to_contain_text("no such key")
    seen.go("/nowhere")
    expect(seen.page.get_by_role("heading", level=1)).to_have_text("No such page")
    # The browser itself reports the two refusals; nothing else may be reported.
    assert all("404" in text for text in seen.errors)
    seen.errors.clear()


def test_a_deleted_queue_ends_its_page_with_a_word(
    open_page: Open, site: HttpBroker, queue: str
) -> None:
    with site.peer() as peer:
        peer.create_queue(queue)
        site.visitor().wait(
            lambda one: one.get("/api/v1/queue", name=queue).status == 200, "the queue"
        )
        seen = open_page(f"/queue?name={queue}")
        expect(seen.page.locator(".link")).to_have_text("live")
        peer.delete_queue(queue)
    expect(seen.page.get_by_role("alert")).to_contain_text("does not exist")
    expect(seen.page.locator(".link")).to_have_text("not live")
    seen.errors.clear()  # its dead letters are asked for once more, and refused
