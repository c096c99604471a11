"""What a person does on a page is done by the broker, once, and said."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.dashboard.conftest import Open
from tests.http.visitor import HttpBroker, Visitor

DEAD = 'function on_failure(msg) return { action = "dlq" } end'


@pytest.fixture
def dead(site: HttpBroker, queue: str) -> str:
    """A queue with five dead letters of two errors."""
    with site.peer() as peer:
        peer.create_queue(queue, on_failure=DEAD)
        peer.enqueue(queue, *[b"m"] * 5)
        stream = peer.consume(queue)
        for at, message in enumerate(peer.take(stream, 5)):
            error = f"timeout after {at} s" if at < 3 else "disk full"
            peer.nack(queue, message.id, error=error)
        peer.disconnect()
    site.visitor().wait(lambda one: _depth(one, f"{queue}.dlq") == 5, "dead letters")
    return queue


def test_redrive_sends_dead_letters_back(open_page: Open, site: HttpBroker, dead: str) -> None:
    page = open_page(f"/queue?name={dead}").page
    groups = page.locator("#dead-letters tbody tr")
    expect(groups).to_have_count(2)
    expect(groups.first).to_contain_text("timeout after # s")
    expect(groups.first.locator("[data-label=Messages]")).to_have_text("3")

    page.get_by_role("button", name="Redrive").click()
    page.get_by_label("How many?").fill("2")
    page.get_by_role("dialog").get_by_role("button", name="Redrive").click()
    expect(page.locator("#dead-letters")).to_contain_text("2 messages sent back.")
    expect(page.locator("#dead-letters header")).to_contain_text("3 messages in")
    expect(page.locator(".tile dd").first).to_have_text("2")  # pending again

    page.get_by_role("button", name="Redrive").click()
    page.get_by_role("dialog").get_by_role("button", name="Redrive").click()
    expect(page.locator("#dead-letters")).to_contain_text("3 messages sent back.")
    expect(page.get_by_role("button", name="Redrive")).to_be_disabled()
    with site.peer() as peer:
        assert peer.stats(dead).depth == 5 and peer.stats(f"{dead}.dlq").depth == 0


def test_a_redrive_one_thinks_better_of_does_nothing(
    open_page: Open, site: HttpBroker, dead: str
) -> None:
    page = open_page(f"/queue?name={dead}").page
    page.get_by_role("button", name="Redrive").click()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("button", name="Redrive").click()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    with site.peer() as peer:
        assert peer.stats(f"{dead}.dlq").depth == 5


def test_a_queue_is_paused_with_a_reason_and_resumed(
    open_page: Open, site: HttpBroker, queue: str
) -> None:
    with site.peer() as peer:
        peer.create_queue(queue)
        stream = peer.consume(queue)
        _seen(site, queue)
        page = open_page(f"/queue?name={queue}").page
        page.get_by_role("button", name="Pause queue").click()
        page.get_by_label("Why?").fill("<b>provider</b> is down")
        page.get_by_role("dialog").get_by_role("button", name="Pause").click()
        expect(page.locator(".banner.paused")).to_contain_text("<b>provider</b> is down")
        peer.enqueue(queue, b"m")
        peer.expect_quiet(stream, 0.5)
        page.get_by_role("button", name="Resume queue").click()
        page.get_by_role("dialog").get_by_role("button", name="Resume").click()
        expect(page.locator(".banner.paused")).to_have_count(0)
        assert peer.take_one(stream).payload == b"m"


def test_one_tenant_is_paused_and_the_others_go_on(open_page: Open, site: HttpBroker) -> None:
    page = open_page("/tenant?queue=orders&key=c3Rhcms").page  # stark
    page.get_by_role("button", name="Pause tenant").click()
    page.get_by_label("Why?").fill("unpaid")
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    try:
        expect(page.locator(".banner.paused")).to_contain_text("This tenant is paused")
        expect(page.locator(".title .state")).to_have_text("paused")
        expect(page.locator(".sentence")).to_contain_text(re.compile("paused"))
    finally:
        page.get_by_role("button", name="Resume tenant").click()
        page.get_by_role("dialog").get_by_role("button", name="Resume").click()
    expect(page.locator(".banner.paused")).to_have_count(0)


def _seen(site: HttpBroker, queue: str) -> None:
    site.visitor().wait(lambda one: one.get("/api/v1/queue", name=queue).status == 200, queue)


def _depth(visitor: Visitor, queue: str) -> int:
    rows = visitor.api("overview")["queues"]
    return next((int(row["depth"]) for row in rows if row["name"] == queue), -1)
