"""The keyring follows committed rows; who changes keys sees what is under way."""

from __future__ import annotations

from collections.abc import Callable

from fila.security.keyring import Keyring, Row
from fila.security.permission import Permission


def numbers() -> Callable[[int], str]:
    given = iter(range(1, 1_000))
    return lambda size: f"{next(given):0{2 * size}x}"


def made(ring: Keyring) -> tuple[str, str, Row]:
    key, secret, row = ring.create("app", 0, False, 1, numbers())
    return key.id, secret, row


def test_a_key_counts_when_its_row_is_stored() -> None:
    ring = Keyring([])
    id, secret, row = made(ring)
    assert ring.find(secret) is None
    assert ring.get(id) is None
    assert [one.id for one in ring.all()] == [id]
    ring.follow(row)
    found = ring.find(secret)
    assert found is not None and found == ring.get(id)
    assert row.value is not None
    assert Keyring([(row.key, row.value)]).find(secret) == found


def test_a_revoked_key_is_good_until_its_row_is_gone_and_no_change_brings_it_back() -> None:
    ring = Keyring([])
    id, secret, row = made(ring)
    ring.follow(row)
    allowed = ring.set_permissions(id, (Permission("produce", "q"),))
    revoked = ring.revoke(id)
    assert ring.latest(id) is None
    assert ring.all() == []
    assert ring.find(secret) is not None
    assert not ring.grants(id).allow("produce", "q")
    ring.follow(allowed)
    assert ring.grants(id).allow("produce", "q")
    ring.follow(revoked)
    assert ring.find(secret) is None
    assert not ring.grants(id).allow("produce", "q")


def test_changes_under_way_build_on_each_other() -> None:
    ring = Keyring([])
    id, secret, row = made(ring)
    first = ring.set_permissions(id, (Permission("produce", "a"),))
    second = ring.set_permissions(id, (Permission("produce", "b"),))
    for one in (row, first, second):
        ring.follow(one)
    found = ring.find(secret)
    assert found is not None and found.permissions == (Permission("produce", "b"),)
