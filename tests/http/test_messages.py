"""A queue's messages over HTTP: listed, searched, shown whole, saved; nothing is taken."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

import pytest

from tests.e2e.peer import Peer
from tests.http.conftest import ROOT
from tests.http.visitor import HttpBroker, Visitor

BY_TENANT = 'function on_enqueue(msg) return { fairness_key = msg.headers["tenant"] } end'


def _all(visitor: Visitor, **query: object) -> list[dict[str, Any]]:
    """All pages of a list."""
    found = visitor.api("messages", **query)
    messages = list(found["messages"])
    while found["next"]:
        found = visitor.api("messages", **{**query, "cursor": found["next"]})
        messages += found["messages"]
    return messages


def test_messages_are_listed_page_by_page_and_stay_where_they_are(
    visitor: Visitor, peer: Peer, queue: str
) -> None:
    peer.create_queue(queue, on_enqueue=BY_TENANT)
    for tenant in ("acme", "<b>umbrella</b>"):
        peer.enqueue(queue, *[b"%d" % at for at in range(7)], headers={"tenant": tenant})
    leased = peer.take_one(peer.consume(queue, prefetch=1))
    found = _all(visitor, queue=queue, limit=4)
    assert len(found) == len({one["id"] for one in found}) == 14
    assert [one["id"] for one in found if one["state"] == "leased"] == [leased.id]
    by_tenant = [one for one in found if one["key"]["name"] == "acme"]
    assert [b64decode(one["preview"]) for one in by_tenant] == [b"%d" % at for at in range(7)]
    assert by_tenant[0]["headers"] == {"tenant": "acme"}
    assert by_tenant[0]["payload_bytes"] == 1 and by_tenant[0]["attempts"] == 0
    ref = by_tenant[0]["key"]["ref"]
    assert len(_all(visitor, queue=queue, key=ref, limit=2)) == 7
    assert len(_all(visitor, queue=queue, state=["leased"])) == 1
    assert peer.stats(queue).depth == 13


def test_a_search_looks_at_ids_keys_headers_and_payloads(
    visitor: Visitor, peer: Peer, queue: str
) -> None:
    peer.create_queue(queue, on_enqueue=BY_TENANT)
    peer.enqueue(queue, *[b"nothing"] * 30, headers={"tenant": "acme"})
    peer.enqueue(queue, b'{"card": "Stra\xc3\x9fe 7"}', headers={"tenant": "stark"})
    peer.enqueue(queue, b"\xff\x00", headers={"tenant": "wayne", "Region": "EU-west"})
    [by_payload] = _all(visitor, queue=queue, q="STRASSE")
    [by_header] = _all(visitor, queue=queue, q="eu-WEST")
    [by_key] = _all(visitor, queue=queue, q="Wayne")
    [by_id] = _all(visitor, queue=queue, q=by_key["id"])
    assert by_payload["key"]["name"] == "stark"
    assert by_header["id"] == by_key["id"] == by_id["id"]
    found = visitor.api("messages", queue=queue, q="not to be found")
    assert found["messages"] == [] and found["looked"] == 32 and found["next"] == ""


def test_one_message_is_shown_whole_and_its_payload_saved(
    visitor: Visitor, peer: Peer, queue: str
) -> None:
    peer.create_queue(queue)
    payload = bytes(range(256)) * 2_000
    peer.enqueue(queue, payload, headers={"long": "x" * 5_000})
    found = visitor.api("messages", queue=queue)
    [row] = found["messages"]
    assert len(b64decode(row["preview"])) == 512 and len(row["headers"]["long"]) == 512
    whole = visitor.api("message", snapshot=found["snapshot"], at=row["at"])
    assert whole["headers"] == {"long": "x" * 5_000} and whole["id"] == row["id"]
    assert b64decode(whole["payload"]) == payload[: 256 * 1024]
    assert whole["payload_bytes"] == len(payload)
    saved = visitor.get("/api/v1/payload", snapshot=found["snapshot"], at=row["at"])
    assert saved.body == payload
    assert saved.headers["Content-Type"] == "application/octet-stream"
    assert saved.headers["Content-Disposition"] == f'attachment; filename="{row["id"]}.bin"'
    assert saved.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"queue": "no-such-queue"}, 404),
        ({"queue": "q", "limit": "0"}, 400),
        ({"queue": "q", "state": "asleep"}, 400),
        ({"queue": "q", "key": "ä"}, 400),
        ({"cursor": "x"}, 400),
        ({"cursor": "x.0.zz"}, 400),
        ({"cursor": "x.99999999999.00"}, 400),
        ({"cursor": "x.0."}, 410),  # no such snapshot, or its time is up
    ],
)
def test_what_makes_no_sense_is_refused(
    visitor: Visitor, query: dict[str, object], status: int
) -> None:
    assert visitor.get("/api/v1/messages", **query).status == status


def test_places_that_do_not_exist_are_refused(visitor: Visitor, peer: Peer, queue: str) -> None:
    peer.create_queue(queue)
    snapshot = visitor.api("messages", queue=queue)["snapshot"]
    assert visitor.get("/api/v1/messages", cursor=f"{snapshot}.7.").status == 400
    assert visitor.get("/api/v1/message", snapshot=snapshot, at="00").status == 404
    assert visitor.get("/api/v1/message", snapshot="x", at="00").status == 410
    assert visitor.get("/api/v1/payload", snapshot=snapshot, at="zz").status == 400


def test_only_those_who_may_consume_see_messages(locked_site: HttpBroker) -> None:
    owner = locked_site.visitor()
    owner.login(ROOT)
    owner.post("operations/CreateQueue", {"name": "letters"})
    made = owner.post("operations/CreateApiKey", {"name": "watcher"}).json()
    watcher = locked_site.visitor()

    def allow(kind: str) -> None:
        permissions = [{"kind": kind, "pattern": "letters"}]
        fields = {"key_id": made["key_id"], "permissions": permissions}
        assert owner.post("operations/SetAcl", fields).status == 200

    assert watcher.get("/api/v1/messages", queue="letters").status == 401
    allow("consume")
    watcher.login(made["key"])
    snapshot = watcher.api("messages", queue="letters")["snapshot"]
    allow("admin")  # of the queue, which does not include its contents
    assert watcher.get("/api/v1/messages", queue="letters").status == 403
    for path in ("message", "payload"):
        assert watcher.get(f"/api/v1/{path}", snapshot=snapshot, at="00").status == 403
    assert watcher.get("/api/v1/messages", cursor=f"{snapshot}.0.").status == 403
