"""With authentication on, nobody sees a thing before showing a key, and then what the key may."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Response, expect

from tests.dashboard.browser import Watched, origin_of, watched
from tests.dashboard.conftest import ROOT
from tests.grpc.talkers import FibpTalker, Talker
from tests.http.visitor import HttpBroker

SECRET_QUEUE = "payroll-secret"


@pytest.fixture(scope="module")
def root(locked_site: HttpBroker) -> Iterator[Talker]:
    with FibpTalker(locked_site.address, ROOT) as talker:
        for queue in (SECRET_QUEUE, "mail"):
            talker.create_queue(queue)
        visitor = locked_site.visitor()
        visitor.headers["Authorization"] = f"Bearer {ROOT}"
        visitor.wait(lambda one: one.get("/api/v1/queue", name="mail").status == 200, "queues")
        yield talker


@pytest.fixture
def seen(browser: Browser, locked_site: HttpBroker, root: Talker) -> Iterator[Watched]:
    with watched(browser, origin_of(locked_site.http_address)) as made:
        yield made
        assert made.strays == []


@pytest.mark.parametrize(
    "path", ["/", f"/queue?name={SECRET_QUEUE}", f"/tenant?queue={SECRET_QUEUE}&key=YQ"]
)
def test_an_unauthenticated_visitor_gets_nothing(seen: Watched, path: str) -> None:
    bodies: list[str] = []
    asked: list[str] = []

    def answered(response: Response | None) -> None:
        assert response is not None
        asked.append(response.url)
        bodies.append(response.text())

    seen.page.on("requestfinished", lambda request: answered(request.response()))
    seen.go(path)
    expect(seen.page.get_by_role("heading", level=1)).to_have_text("Sign in to Fila")
    expect(seen.page.get_by_label("API key")).to_be_focused()
    seen.page.wait_for_load_state("networkidle")
    assert not any(SECRET_QUEUE in body for body in bodies)
    assert SECRET_QUEUE not in seen.page.content()
    data = [url for url in asked if "/api/v1/" in url]
    assert [url.rpartition("/")[2] for url in data] == ["session"]
    assert seen.errors == []


def test_a_wrong_key_is_refused_with_a_word_and_the_right_one_opens(seen: Watched) -> None:
    seen.go("/")
    page = seen.page
    page.get_by_label("API key").fill("wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).not_to_be_empty()
    assert SECRET_QUEUE not in page.content()
    page.get_by_label("API key").fill(ROOT)
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name=SECRET_QUEUE)).to_be_visible()
    assert ROOT not in page.content()
    assert page.evaluate("document.cookie") == ""
    assert page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])") == "[{},{}]"
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in to Fila")
    assert SECRET_QUEUE not in page.content()
    assert all("401" in text for text in seen.errors)


def test_a_key_sees_and_opens_its_own_queues_alone(seen: Watched, root: Talker) -> None:
    made = root.create_key("mail-admin", 0, False)
    root.set_acl(made.key_id, ("admin", "mail"), ("admin", "mail.dlq"))
    seen.go("/")
    page = seen.page
    page.get_by_label("API key").fill(made.key)
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="mail", exact=True)).to_be_visible()
    assert SECRET_QUEUE not in page.content()
    seen.go(f"/queue?name={SECRET_QUEUE}")
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.locator(".panel")).to_have_count(0)


def test_a_revoked_key_is_shown_the_door_at_once(seen: Watched, root: Talker) -> None:
    made = root.create_key("short-lived", 0, False)
    root.set_acl(made.key_id, ("admin", "*"))
    seen.go(f"/queue?name={SECRET_QUEUE}")
    page = seen.page
    page.get_by_label("API key").fill(made.key)
    page.keyboard.press("Enter")
    expect(page.locator(".link")).to_have_text("live")
    root.revoke_key(made.key_id)
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in to Fila")
    assert SECRET_QUEUE not in page.locator("#app").inner_text()
