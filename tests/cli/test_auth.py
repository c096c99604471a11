"""`fila auth` against a broker that asks for keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from fila.testing import broker
from tests.cli.conftest import Result

BOOT = "boot-secret"


@pytest.fixture
def guarded(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A broker with a bootstrap key; commands use that key unless told otherwise."""
    with broker({"auth.bootstrap_apikey": BOOT}) as running:
        monkeypatch.setenv("FILA_ADDR", running.address)
        monkeypatch.setenv("FILA_API_KEY", BOOT)
        yield running.address


def _key(run: Callable[..., Result], *options: str) -> tuple[str, str]:
    made = run("auth", "create", "billing", *options, "--json").document
    return made["key_id"], made["token"]


def test_a_key_is_made_listed_and_revoked(guarded: str, run: Callable[..., Result]) -> None:
    made = run("auth", "create", "billing", "--superadmin")
    assert made.code == 0
    lines = made.out.splitlines()
    assert lines[0] == 'Created API key "billing"'
    assert lines[1].startswith("Key ID     : ")
    assert lines[2].startswith("Token      : ")
    assert len(lines[2].removeprefix("Token      : ")) == 32
    assert lines[3] == "Superadmin : yes"
    key_id = lines[1].removeprefix("Key ID     : ")
    assert key_id in run("auth", "list").out
    assert run("auth", "revoke", key_id).out == f"Revoked API key {key_id}\n"
    assert run("auth", "list").out == "No API keys found.\n"
    assert run("auth", "revoke", key_id).code == 1


def test_an_acl_is_set_and_shown(guarded: str, run: Callable[..., Result]) -> None:
    key_id, token = _key(run)
    assert run("auth", "acl", "get", key_id).out == "Permissions:\n  (none)\n"
    done = run("auth", "acl", "set", key_id, "produce:orders", "consume:orders.*")
    assert done.out == f"ACL updated for key {key_id}\n"
    assert run("auth", "acl", "get", key_id).out == (
        "Permissions:\n  produce:orders\n  consume:orders.*\n"
    )
    run("queue", "create", "orders")
    sent = run("enqueue", "orders", "--payload", "x", "--api-key", token)
    assert sent.code == 0, sent.err
    refused = run("consume", "orders", "--limit", "1", "--api-key", token)
    assert refused.code == 1
    assert 'no consume permission on queue "orders"' in refused.err
    assert "key does not have admin permission" in run("auth", "list", "--api-key", token).err


def test_single_permissions_are_given_and_taken(guarded: str, run: Callable[..., Result]) -> None:
    key_id = run("auth", "create", "single", "--json").document["key_id"]
    run("auth", "acl", "set", key_id, "produce:orders")
    assert run("auth", "acl", "add", key_id, "consume:orders", "produce:orders").code == 0
    assert run("auth", "acl", "get", key_id).out == (
        "Permissions:\n  produce:orders\n  consume:orders\n"
    )
    again = run("auth", "acl", "add", key_id, "consume:orders")
    assert "has these permissions already" in again.out
    assert run("auth", "acl", "remove", key_id, "produce:orders").code == 0
    assert run("auth", "acl", "get", key_id).out == "Permissions:\n  consume:orders\n"
    gone = run("auth", "acl", "remove", key_id, "produce:orders")
    assert (gone.code, "has no permission produce:orders" in gone.err) == (1, True)


def test_a_key_is_named_and_expires_by_options_too(
    guarded: str, run: Callable[..., Result]
) -> None:
    made = run("auth", "create", "--name", "billing", "--expires-at", "4102444800000", "--json")
    assert made.code == 0, made.err
    assert made.document["name"] == "billing"
    assert made.document["expires_at_ms"] == 4102444800000
    (listed,) = run("auth", "list", "--json").document["keys"]
    assert (listed["name"], listed["expires_at_ms"]) == ("billing", 4102444800000)


def test_permissions_are_given_by_repeated_options_too(
    guarded: str, run: Callable[..., Result]
) -> None:
    key_id, _ = _key(run)
    done = run("auth", "acl", "set", key_id, "--perm", "produce:orders", "--perm", "consume:a.*")
    assert done.out == f"ACL updated for key {key_id}\n"
    shown = run("auth", "acl", "get", key_id).out
    assert shown == "Permissions:\n  produce:orders\n  consume:a.*\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "a name is missing"),
        (["a", "--name", "b"], "two different names"),
        (["a", "--expires-at", "tomorrow"], "not a time in milliseconds"),
        (["a", "--expires-at", "1", "--expires-in", "1d"], "not both"),
    ],
)
def test_a_key_cannot_be_made_from_contradictions(
    guarded: str, run: Callable[..., Result], arguments: list[str], said: str
) -> None:
    done = run("auth", "create", *arguments)
    assert done.code == 2 and said in done.err
    assert run("auth", "list").out == "No API keys found.\n"


def test_a_superadmin_key_says_so(guarded: str, run: Callable[..., Result]) -> None:
    key_id, _ = _key(run, "--superadmin")
    shown = run("auth", "acl", "get", key_id).out
    assert shown.startswith("Superadmin: yes (all permissions granted)\nPermissions:\n")


def test_bad_permissions_are_refused_with_the_reason(
    guarded: str, run: Callable[..., Result]
) -> None:
    key_id, _ = _key(run)
    assert run("auth", "acl", "set", key_id, "produce").code == 2
    assert "invalid permission kind" in run("auth", "acl", "set", key_id, "write:orders").err
    assert 'invalid pattern "orders*"' in run("auth", "acl", "set", key_id, "produce:orders*").err


def test_a_wrong_or_missing_key_is_told(
    guarded: str, run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "the API key is not valid" in run("queue", "list", "--api-key", "wrong").err
    monkeypatch.delenv("FILA_API_KEY")
    assert "API key required" in run("queue", "list").err


def test_an_expiry_is_a_time_from_now(guarded: str, run: Callable[..., Result]) -> None:
    made = run("auth", "create", "short", "--expires-in", "30d", "--json").document
    assert made["expires_at_ms"] > 0
    assert run("auth", "create", "short", "--expires-in", "soon").code == 2
