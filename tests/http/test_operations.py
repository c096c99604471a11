"""Operations of the table, asked as JSON: what they do, what they refuse, and who may."""

from __future__ import annotations

from typing import Any

import pytest

from fila.broker import operations
from fila.edges.http.operations import OFFERED
from fila.wire import layouts
from fila.wire.operations import OPERATIONS
from tests.http.conftest import ROOT
from tests.http.visitor import HttpBroker, Visitor


@pytest.fixture
def clerk(site: HttpBroker) -> Visitor:
    """A visitor who may post."""
    visitor = site.visitor()
    visitor.allow_posts()
    return visitor


def _do(visitor: Visitor, name: str, /, **fields: Any) -> Any:
    answer = visitor.post(f"operations/{name}", fields)
    assert answer.status == 200, answer.body
    return answer.json()


def test_every_operation_of_the_table_is_offered_but_those_with_codecs_by_hand() -> None:
    by_hand = {name for name, row in OPERATIONS.items() if row.by_hand}
    assert set(OFFERED) == set(OPERATIONS) - by_hand
    assert len(OFFERED) == len(operations.AT_ONCE) + len(operations.LATER)


def test_fields_of_every_kind_in_the_table_are_understood(clerk: Visitor) -> None:
    """What is wrong in each of them is answered as that, never by a failure of the broker."""
    for name, kind in OFFERED.items():
        for field in layouts.LAYOUTS[kind]:
            answer = clerk.post(f"operations/{name}", {field: 1.5})
            assert (answer.status, answer.code) == (400, "BadRequest"), (name, field)


def test_a_queue_is_changed_by_a_map_of_settings(clerk: Visitor, queue: str) -> None:
    _do(clerk, "CreateQueue", name=queue)
    assert _do(clerk, "UpdateQueue", queue=queue, settings={"max_attempts": "4"})["version"] == 2
    found = _do(clerk, "GetQueue", queue=queue)["settings"]
    assert {"key": "max_attempts", "value": "4"} in found
    wrongs: list[Any] = [[], "x", {"max_attempts": 4}]
    for wrong in wrongs:
        answer = clerk.post("operations/UpdateQueue", {"queue": queue, "settings": wrong})
        assert answer.status == 400
    stale = {"queue": queue, "settings": {"max_attempts": "5"}, "expected_version": 1}
    assert clerk.post("operations/UpdateQueue", stale).code == "VersionConflict"


def test_a_queue_is_created_listed_and_deleted(clerk: Visitor, queue: str) -> None:
    made = _do(
        clerk,
        "CreateQueue",
        name=queue,
        max_attempts=3,
        on_enqueue='function on_enqueue(msg) return { fairness_key = "all" } end',
    )
    assert set(made) == {"queue_id"}
    listed = _do(clerk, "ListQueues")
    assert listed["cluster_node_count"] == 0
    assert {queue, f"{queue}.dlq"} <= {one["name"] for one in listed["queues"]}
    again = clerk.post("operations/CreateQueue", {"name": queue})
    assert (again.status, again.code) == (409, "QueueAlreadyExists")
    assert _do(clerk, "DeleteQueue", queue=queue) == {}
    gone = clerk.post("operations/DeleteQueue", {"queue": queue})
    assert (gone.status, gone.code) == (404, "QueueNotFound")


def test_a_script_that_does_not_compile_is_refused_with_its_line(
    clerk: Visitor, queue: str
) -> None:
    answer = clerk.post("operations/CreateQueue", {"name": queue, "on_enqueue": "function ("})
    assert answer.status == 400 and answer.code == "LuaCompilationError"
    assert "1:" in answer.json()["error"]["message"]


def test_settings_are_written_listed_and_removed(clerk: Visitor, queue: str) -> None:
    key = f"throttle.{queue}"
    _do(clerk, "SetConfig", key=key, value="5,10")
    assert _do(clerk, "ListConfig", prefix=key) == {"entries": [{"key": key, "value": "5,10"}]}
    bad = clerk.post("operations/SetConfig", {"key": key, "value": "fast"})
    assert (bad.status, bad.code) == (400, "InvalidConfigValue")
    _do(clerk, "SetConfig", key=key, value="")
    assert _do(clerk, "ListConfig", prefix=key) == {"entries": []}


def test_lists_longer_than_a_slice_come_whole(clerk: Visitor, queue: str, site: HttpBroker) -> None:
    with site.peer() as peer:
        for number in range(600):
            peer.set_config(f"{queue}.{number:03}", "x")
    found = _do(clerk, "ListConfig", prefix=f"{queue}.")["entries"]
    assert [one["key"] for one in found] == [f"{queue}.{number:03}" for number in range(600)]


@pytest.mark.parametrize(
    ("name", "fields", "told"),
    [
        ("CreateQueue", {}, "name is missing"),
        ("CreateQueue", {"name": 7}, "name is text"),
        ("CreateQueue", {"name": "q", "max_attempts": -1}, "max_attempts is a whole number"),
        ("CreateQueue", {"name": "q", "max_attempts": True}, "max_attempts is a whole number"),
        ("CreateQueue", {"name": "q", "colour": "red"}, "colour is no field of it"),
        ("SetAcl", {"key_id": "k", "permissions": 3}, "permissions is a list"),
        ("SetAcl", {"key_id": "k", "permissions": ["x"]}, "permissions[0] is no JSON object"),
        (
            "SetAcl",
            {"key_id": "k", "permissions": [{"kind": "admin"}]},
            "permissions[0].pattern is missing",
        ),
        ("CreateApiKey", {"name": "k", "is_superadmin": 1}, "is_superadmin is true or false"),
        ("CreateQueue", {"name": "\ud800"}, "half of a surrogate pair"),
    ],
)
def test_fields_that_make_no_sense_are_refused_by_name(
    clerk: Visitor, name: str, fields: dict[str, Any], told: str
) -> None:
    answer = clerk.post(f"operations/{name}", fields)
    assert answer.status == 400
    assert told in answer.json()["error"]["message"]


@pytest.mark.parametrize("name", ["Enqueue", "LeaseBatch", "Nonsense", "../login", ""])
def test_what_is_not_offered_is_not_found(clerk: Visitor, name: str) -> None:
    assert clerk.post(f"operations/{name}", {}).status == 404


def test_operations_need_post_and_the_token(site: HttpBroker) -> None:
    visitor = site.visitor()
    assert visitor.get("/api/v1/operations/ListQueues").status == 405
    refused = visitor.post("operations/ListQueues", {})
    assert (refused.status, refused.code) == (403, "CsrfMissing")


def test_a_key_is_made_limited_and_revoked_and_does_what_it_may(
    locked_site: HttpBroker, queue: str
) -> None:
    mail, bills = f"{queue}-mail", f"{queue}-bills"
    owner = locked_site.visitor()
    assert owner.login(ROOT).json()["administers_all"] is True
    _do(owner, "CreateQueue", name=mail)
    _do(owner, "CreateQueue", name=bills)
    made = _do(owner, "CreateApiKey", name="ops")
    allowed = [{"kind": "admin", "pattern": mail}]
    _do(owner, "SetAcl", key_id=made["key_id"], permissions=allowed)
    assert _do(owner, "GetAcl", key_id=made["key_id"])["permissions"] == allowed

    clerk = locked_site.visitor()
    assert clerk.login(made["key"]).json()["administers_all"] is False
    listed = _do(clerk, "ListQueues")["queues"]
    assert {one["name"] for one in listed} == {mail}
    _do(clerk, "PauseQueue", queue=mail, reason="maintenance")
    for name, fields in (
        ("DeleteQueue", {"queue": bills}),
        ("DeleteQueue", {"queue": "no-such-queue"}),
        ("SetConfig", {"key": "k", "value": "v"}),
        ("ListApiKeys", {}),
        ("Browse", {"queue": mail}),
    ):
        refused = clerk.post(f"operations/{name}", fields)
        assert (refused.status, refused.code) == (403, "Forbidden"), name

    _do(owner, "RevokeApiKey", key_id=made["key_id"])
    assert clerk.post("operations/ListQueues", {}).status == 401
    missing = owner.post("operations/RevokeApiKey", {"key_id": made["key_id"]})
    assert (missing.status, missing.code) == (404, "ApiKeyNotFound")
