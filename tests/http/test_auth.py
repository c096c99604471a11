"""Who gets what over HTTP when the broker asks for keys."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.grpc.talkers import FibpTalker, Talker
from tests.http.conftest import ROOT
from tests.http.visitor import HttpBroker, Visitor

_names = itertools.count(1)
READS = ("overview", "queue", "keys", "dead-letters", "buckets", "pipeline", "stream", "explain")


@pytest.fixture(scope="module")
def root(locked_site: HttpBroker) -> Iterator[Talker]:
    with FibpTalker(locked_site.address, ROOT) as talker:
        for queue in ("orders", "mail"):
            talker.create_queue(queue)
        yield talker


@pytest.fixture
def visitor(locked_site: HttpBroker, root: Talker) -> Visitor:
    found = locked_site.visitor()
    found.headers["Authorization"] = f"Bearer {ROOT}"
    found.wait(lambda one: one.get("/api/v1/queue", name="mail").status == 200, "the queues")
    return locked_site.visitor()


def make_key(root: Talker, *permissions: tuple[str, str]) -> tuple[str, str]:
    made = root.create_key(f"key-{next(_names)}", 0, False)
    root.set_acl(made.key_id, *permissions)
    return made.key_id, made.key


def test_an_unauthenticated_visitor_gets_nothing(visitor: Visitor) -> None:
    for name in READS:
        answer = visitor.get(f"/api/v1/{name}", queue="orders", name="orders", view="overview")
        assert answer.status == 401, name
        assert b"orders" not in answer.body
    assert visitor.get("/metrics").status == 401
    assert visitor.post("redrive", {"queue": "orders.dlq"}).status == 401
    assert visitor.get("/healthz").status == visitor.get("/readyz").status == 200
    session = visitor.api("session")
    assert session["auth"] is True and session["signed_in"] is False and session["csrf"] == ""


def test_signing_in_gives_a_cookie_scripts_cannot_read(visitor: Visitor) -> None:
    answer = visitor.login(ROOT)
    assert answer.status == 200 and answer.json()["signed_in"] is True
    cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and ROOT not in cookie
    assert {one["name"] for one in visitor.api("overview")["queues"]} >= {"orders", "mail"}
    assert visitor.get("/metrics").status == 200
    assert visitor.post("logout", {}).status == 200
    assert visitor.get("/api/v1/overview").status == 401


def test_posts_need_the_csrf_token_and_our_own_origin(visitor: Visitor) -> None:
    visitor.login(ROOT)
    token = visitor.headers.pop("X-Fila-CSRF")
    fields = {"queue": "orders.dlq"}
    assert visitor.post("redrive", fields).code == "CsrfMissing"
    assert visitor.post("redrive", fields, **{"X-Fila-CSRF": "x" * 43}).code == "CsrfMissing"
    right = {"X-Fila-CSRF": token}
    assert visitor.post("redrive", fields, **right).status == 200
    elsewhere = {**right, "Origin": "https://evil.example"}
    assert visitor.post("redrive", fields, **elsewhere).status == 403
    host, port = visitor.address
    assert visitor.post("redrive", fields, **right, Origin=f"http://{host}:{port}").status == 200
    plain = {**right, "Content-Type": "text/plain"}
    assert visitor.post("redrive", fields, **plain).status == 400


def test_a_key_sees_and_does_what_its_permissions_say(visitor: Visitor, root: Talker) -> None:
    _, secret = make_key(root, ("admin", "orders"), ("consume", "mail"))
    visitor.headers["Authorization"] = f"Bearer {secret}"
    shown = {one["name"]: one["admin"] for one in visitor.api("overview")["queues"]}
    assert shown == {"mail": False, "orders": True}
    assert visitor.get("/api/v1/queue", name="orders").status == 200
    assert visitor.get("/api/v1/keys", queue="orders").status == 200
    for name in ("queue", "keys", "key", "dead-letters", "explain"):
        assert visitor.get(f"/api/v1/{name}", queue="mail", name="mail").status == 403, name
        # A refusal tells nothing about what exists.
        assert visitor.get(f"/api/v1/{name}", queue="no-such", name="no-such").status == 403, name
    assert visitor.get("/api/v1/buckets").status == 403
    assert visitor.get("/api/v1/pipeline").status == 403
    assert visitor.get("/metrics").status == 403
    assert visitor.post("redrive", {"queue": "mail.dlq"}).status == 403
    assert visitor.post("redrive", {"queue": "orders.dlq"}).status == 403  # another queue's name
    assert visitor.post("try-hooks", {"queue": "mail", "on_enqueue": "x"}).status == 403
    events = list(visitor.events(view="queue", name="mail"))
    assert events[0][0] == "error" and events[0][1]["error"]["code"] == "Forbidden"


def test_a_revoked_key_ends_its_sessions_and_streams_at_once(
    visitor: Visitor, root: Talker
) -> None:
    id, secret = make_key(root, ("admin", "*"))
    assert visitor.login(secret).status == 200
    stream = visitor.events(view="overview")
    assert next(stream)[0] == "overview"
    root.revoke_key(id)
    assert visitor.get("/api/v1/overview").status == 401
    last = [kind for kind, _ in stream]
    assert last[-1] == "error"
    assert visitor.login(secret).status == 401


def test_guessing_keys_is_slowed_down(own_site: HttpBroker) -> None:
    own_site.settings["auth.bootstrap_apikey"] = ROOT
    own_site.start()
    visitor = own_site.visitor()
    for _ in range(10):
        assert visitor.login("wrong").status == 401
    answer = visitor.login("wrong")
    assert answer.status == 429 and 0 < int(answer.headers["Retry-After"]) <= 60
    assert answer.code == "TooManyAttempts"
    # Whoever else is at this address, or mistyped it ten times, gets in with the right one.
    assert visitor.login(ROOT).status == 200
    assert visitor.login("wrong").status == 429
