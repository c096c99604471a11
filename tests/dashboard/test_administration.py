"""A person needs no terminal: queues, messages, settings and keys are looked after on pages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from fila.backup import restoring
from fila.backup.places import place_of
from fila.wire import bodies
from tests.dashboard.browser import PHONE, Watched, origin_of, watched
from tests.dashboard.conftest import ROOT, Open
from tests.http.visitor import HttpBroker

HOOK = 'function on_enqueue(msg) return { fairness_key = msg.headers["tenant"] } end'
DEAD = 'function on_failure(msg) return { action = "dlq" } end'
HOSTILE = '<img src=x onerror="alert(1)">\u202e'


def _dialog(page: Page, button: str) -> None:
    page.get_by_role("dialog").get_by_role("button", name=button, exact=True).click()


def _done(page: Page, button: str) -> None:
    """Press it, and wait until the dialog is gone."""
    _dialog(page, button)
    expect(page.get_by_role("dialog")).to_have_count(0)


def _forgive(seen: Watched, status: int) -> None:
    """The browser tells of every refused request; this one was meant."""
    assert all(f"status of {status}" in one for one in seen.errors), seen.errors
    seen.errors.clear()


def test_a_queue_is_made_with_a_hook_purged_and_deleted(
    open_page: Open, site: HttpBroker, queue: str
) -> None:
    seen = open_page("/")
    page = seen.page
    page.get_by_role("button", name="New queue").click()
    page.get_by_label("Name").fill(queue)
    page.get_by_label("Attempts before").fill("3")
    page.get_by_label("Hook on_enqueue").fill("function (")
    _dialog(page, "Create")
    expect(page.get_by_role("dialog")).to_contain_text("on_enqueue:1:")  # what the compiler said
    _forgive(seen, 400)
    page.get_by_label("Hook on_enqueue").fill(HOOK)
    _dialog(page, "Create")
    expect(page.get_by_role("heading", level=1)).to_have_text(queue)

    with site.peer() as peer:
        peer.enqueue(queue, *[b"m"] * 3, headers={"tenant": "acme"})
        expect(page.locator(".tile dd").first).to_have_text("3")
        page.get_by_role("button", name="Purge").click()
        page.get_by_label("Type the queue's name").fill("another")
        _dialog(page, "Purge")
        expect(page.get_by_role("dialog")).to_contain_text("not the name of this queue")
        page.get_by_label("Type the queue's name").fill(queue)
        _dialog(page, "Purge")
        expect(page.locator(".title")).to_contain_text("3 messages dropped.")
        assert peer.stats(queue).depth == 0

        page.get_by_role("button", name="Delete queue").click()
        page.get_by_label("Type the queue's name").fill(queue)
        _dialog(page, "Delete")
        expect(page.get_by_role("heading", level=1)).to_have_text("Queues")
        names = {one["name"] for one in site.visitor().api("overview")["queues"]}
        assert queue not in names


@pytest.fixture
def letters(site: HttpBroker, queue: str) -> str:
    """A queue with 60 messages of hostile names, and one dead letter."""
    with site.peer() as peer:
        peer.create_queue(queue, on_enqueue=HOOK, on_failure=DEAD)
        peer.enqueue(queue, b'{"card":{"number":"4711"}}', headers={"tenant": "dead"})
        message = peer.take_one(peer.consume(queue, prefetch=1))
        peer.nack(queue, message.id, error="card <b>refused</b>")
        for at in range(59):
            headers = {"tenant": HOSTILE, "number": f"n{at:02}"}
            peer.enqueue(queue, b"\xff\x00binary", headers=headers)
        peer.enqueue(queue, b"plain text", headers={"tenant": "quiet"})
        peer.disconnect()
    site.visitor().wait(
        lambda one: one.get("/api/v1/queue", name=f"{queue}.dlq").status == 200, queue
    )
    return queue


def test_messages_are_listed_searched_and_opened(open_page: Open, letters: str) -> None:
    page = open_page(f"/queue?name={letters}").page
    page.get_by_role("link", name="Messages", exact=True).click()
    rows = page.locator(".messages tbody tr")
    expect(rows).to_have_count(50)
    page.get_by_role("button", name="More").click()
    expect(rows).to_have_count(60)
    expect(page.get_by_role("button", name="More")).to_have_count(0)

    page.get_by_label("Find messages").fill("N17")
    page.get_by_role("button", name="Search").click()
    expect(rows).to_have_count(1)
    page.locator(".messages a.row-link").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(HOSTILE)
    expect(dialog.locator(".payload")).to_contain_text("ff 00 62 69 6e 61 72 79")
    dialog.get_by_role("button", name="text").click()
    expect(dialog.locator(".payload")).to_contain_text("binary")
    with page.expect_download() as download:
        dialog.get_by_role("link", name="Save").click()
    assert download.value.path().read_bytes() == b"\xff\x00binary"
    _done(page, "Close")

    page.get_by_label("State").select_option("leased")
    page.get_by_role("button", name="Search").click()
    expect(page.locator(".empty")).to_have_text("No message is like this.")


def test_a_dead_letter_says_on_its_page_why_it_died(open_page: Open, letters: str) -> None:
    page = open_page(f"/messages?queue={letters}.dlq", size=PHONE).page
    row = page.locator(".messages tbody tr")
    expect(row).to_have_count(1)
    expect(row).to_contain_text("hook: card <b>refused</b>")
    row.locator("a.row-link").press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("fila.dead.error")
    expect(dialog.locator(".payload")).to_contain_text('"number": "4711"')
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_limit_and_a_setting_are_set_changed_and_removed(open_page: Open, queue: str) -> None:
    seen = open_page("/settings")
    page = seen.page
    page.get_by_role("button", name="New limit").click()
    page.get_by_label("Throttle key").fill(f"provider:{queue}")
    page.get_by_label("Messages per second").fill("2.5")
    page.get_by_label("At once").fill("10")
    _done(page, "Set")
    row = page.locator(".settings tr", has_text=f"throttle.provider:{queue}")
    expect(row).to_contain_text("2.5,10")
    expect(page.locator("#buckets")).to_contain_text(f"provider:{queue}")

    row.get_by_role("button", name="Change").click()
    page.get_by_label("Value").fill("fast")
    _dialog(page, "Set")
    expect(page.get_by_role("dialog").get_by_role("alert")).not_to_be_empty()
    _forgive(seen, 400)
    page.get_by_label("Value").fill("3,10")
    _done(page, "Set")
    expect(row).to_contain_text("3,10")
    row.get_by_role("button", name="Remove").click()
    _done(page, "Remove")
    expect(row).to_have_count(0)

    page.get_by_role("button", name="New setting").click()
    page.get_by_label("Name").fill(f"{queue}.flag")
    page.get_by_label("Value").fill(HOSTILE)
    _done(page, "Set")
    page.get_by_label("Find a setting").fill(f"{queue}.F")
    expect(page.locator(".settings tbody tr")).to_have_count(1)
    expect(page.locator(".settings tbody tr")).to_contain_text(HOSTILE)


def test_a_key_is_made_used_limited_and_revoked(browser: Browser, locked_site: HttpBroker) -> None:
    with watched(browser, origin_of(locked_site.http_address)) as seen:
        page = seen.page
        seen.go("/keys")
        page.get_by_label("API key").fill(ROOT)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("button", name="New key").click()
        page.get_by_label("Name").fill("clerk")
        page.get_by_label("Permissions").fill("produce:orders\nadmin")
        _dialog(page, "Make")
        expect(page.get_by_role("dialog")).to_contain_text("is no permission")
        page.get_by_label("Permissions").fill("produce:orders\nadmin:mail.*")
        _done(page, "Make")
        secret = page.locator(".secret").inner_text()
        visitor = locked_site.visitor()
        assert visitor.login(secret).json()["administers_all"] is False

        row = page.locator(".api-keys tr", has_text="clerk")
        row.get_by_role("button", name="Permissions").click()
        field = page.get_by_role("dialog").get_by_label("Permissions")
        expect(field).to_have_value("produce:orders\nadmin:mail.*")
        field.fill("consume:orders")
        _done(page, "Set")
        whoami = visitor.post("operations/WhoAmI", {}).json()
        assert whoami["permissions"] == [{"kind": "consume", "pattern": "orders"}]

        row.get_by_role("button", name="Revoke").click()
        _done(page, "Revoke")
        expect(row).to_have_count(0)
        assert visitor.post("operations/WhoAmI", {}).status == 401
        assert seen.strays == []
        assert all("401" in one for one in seen.errors)


def test_who_may_not_look_after_the_broker_sees_no_links_to_it(
    browser: Browser, locked_site: HttpBroker
) -> None:
    owner = locked_site.visitor()
    owner.login(ROOT)
    owner.post("operations/CreateQueue", {"name": "parcels"})
    made = owner.post("operations/CreateApiKey", {"name": "watcher"}).json()
    permissions = [{"kind": "admin", "pattern": "parcels"}]
    owner.post("operations/SetAcl", {"key_id": made["key_id"], "permissions": permissions})
    with watched(browser, origin_of(locked_site.http_address)) as seen:
        page = seen.page
        seen.go("/")
        page.get_by_label("API key").fill(made["key"])
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("link", name="parcels")).to_be_visible()
        expect(page.get_by_role("link", name="Settings")).to_have_count(0)
        expect(page.get_by_role("link", name="API keys")).to_have_count(0)
        seen.go("/settings")
        expect(page.get_by_role("alert")).to_contain_text("admin")
        seen.go("/messages?queue=parcels")
        expect(page.get_by_role("alert")).to_contain_text("consume")


def test_a_hook_is_tried_changed_and_brought_back_while_the_queue_works(
    open_page: Open, site: HttpBroker, queue: str
) -> None:
    weighted = HOOK.replace("}", ', weight = tonumber(msg.headers["weight"] or "1") }', 1)
    with site.peer() as peer:
        peer.create_queue(queue, on_enqueue=HOOK)
        peer.enqueue(queue, b"m", headers={"tenant": "acme"})
        page = open_page(f"/queue?name={queue}").page
        page.get_by_role("button", name="Change hooks").click()
        dialog = page.get_by_role("dialog")
        hook = page.get_by_label("Hook on_enqueue")
        expect(hook).to_have_value(HOOK)
        sample = {"headers": {"tenant": HOSTILE, "weight": "7"}, "attempts": 9}
        page.get_by_label("Sample messages").fill(json.dumps(sample))
        _dialog(page, "Try")
        expect(dialog.locator(".tried")).to_contain_text("weight 1")
        hook.fill(weighted)
        expect(dialog.locator(".tried p")).to_have_count(0)  # said nothing of this one
        page.get_by_label("Hook on_failure").fill(DEAD)
        page.get_by_role("button", name="Try").focus()  # by keyboard
        page.keyboard.press("Enter")
        expect(dialog.locator(".tried")).to_contain_text("weight 7")
        expect(dialog.locator(".tried")).to_contain_text("dead letter")
        names = dialog.locator(".tried bdi.name").evaluate_all("all => all.map(one => one.title)")
        assert HOSTILE in names  # as text
        page.get_by_label("Why?").fill("weights by header")
        _done(page, "Deploy")
        expect(page.locator("#hooks")).to_contain_text("Version 2 decides now.")
        peer.enqueue(queue, b"m", headers={"tenant": "globex", "weight": "5"})
        keys = {one.key: one.weight for one in peer.stats(queue).fairness_keys}
        assert keys == {"acme": 1, "globex": 5}

        page.get_by_role("button", name="Change hooks").click()
        expect(page.get_by_label("Begin with").locator("option")).to_have_count(2)
        expect(page.get_by_label("Begin with")).to_contain_text("weights by header")
        page.get_by_label("Begin with").select_option("1")
        expect(hook).to_have_value(HOOK)
        expect(page.get_by_label("Hook on_failure")).to_have_value("")
        _done(page, "Deploy")
        expect(page.locator("#hooks")).to_contain_text("Version 3 decides now.")
        peer.enqueue(queue, b"m", headers={"tenant": "initech", "weight": "5"})
        keys = {one.key: one.weight for one in peer.stats(queue).fairness_keys}
        assert keys["initech"] == 1


def test_a_broken_hook_and_a_change_by_somebody_else_are_told(
    open_page: Open, site: HttpBroker, queue: str
) -> None:
    with site.peer() as peer:
        peer.create_queue(queue, on_enqueue=HOOK)
        seen = open_page(f"/queue?name={queue}", PHONE)
        page = seen.page
        page.get_by_role("button", name="Change hooks").click()
        dialog = page.get_by_role("dialog")
        page.get_by_label("Hook on_enqueue").fill("function (")
        _dialog(page, "Try")
        expect(dialog.locator(".tried")).to_contain_text("on_enqueue:1:")
        _dialog(page, "Deploy")
        expect(dialog.get_by_role("alert")).to_contain_text("on_enqueue:1:")
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0
        inside = dialog.evaluate("one => one.scrollWidth - one.clientWidth")
        assert inside <= 0, "the dialog fits on a phone"
        other = bodies.UpdateQueue(queue, {"max_attempts": "3"})
        assert peer.request(other, bodies.UpdateQueueResult).code == 0  # somebody else was faster
        page.get_by_label("Hook on_enqueue").fill(HOOK + "\n-- mine")
        _dialog(page, "Deploy")
        expect(dialog.get_by_role("alert")).to_contain_text("version")
        _forgive(seen, 400)


def test_the_second_week_without_a_terminal(browser: Browser, tmp_path: Path, queue: str) -> None:
    """A hook changed, a tenant's provider capped, a letter explained and sent back, a backup."""
    settings = {"backup.target": tmp_path / "backups"}
    with HttpBroker(tmp_path / "data", settings=settings) as site, site.peer() as peer:
        assert isinstance(site, HttpBroker)
        peer.create_queue(queue, on_enqueue=HOOK.replace("tenant", "tennant"), on_failure=DEAD)
        with watched(browser, origin_of(site.http_address), PHONE) as seen:
            page = seen.page
            seen.go(f"/queue?name={queue}")
            page.get_by_role("button", name="Change hooks").click()
            page.get_by_label("Hook on_enqueue").fill(
                HOOK.replace("}", ', throttle_keys = { "bank" } }', 1)
            )
            _done(page, "Deploy")
            expect(page.locator("#hooks")).to_contain_text("Version 2 decides now.")

            seen.go("/settings")
            page.get_by_role("button", name="New limit").click()
            page.get_by_label("Throttle key").fill("bank")
            page.get_by_label("Messages per second").fill("1000")
            page.get_by_label("At once").fill("10")
            _done(page, "Set")
            expect(page.locator("#buckets")).to_contain_text("bank")

            peer.enqueue(queue, b'{"total": "12,50"}', headers={"tenant": "acme"})
            message = peer.take_one(peer.consume(queue, prefetch=1))
            peer.nack(queue, message.id, error="a comma in a total")
            seen.go(f"/queue?name={queue}")
            expect(page.locator("#dead-letters")).to_contain_text("a comma in a total")
            page.locator("#dead-letters").get_by_role("button", name="Redrive").click()
            _done(page, "Redrive")
            expect(page.locator("#dead-letters")).to_contain_text("1 message sent back.")

            seen.go("/settings")
            page.get_by_role("button", name="Back up now").focus()
            page.keyboard.press("Enter")
            expect(page.locator("#backups tbody")).to_contain_text("done")
            wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0
            assert seen.errors == []
    assert restoring.check(place_of(str(tmp_path / "backups")), "latest").report.sound
