"""Nobody gets more than was given: patterns that look like others, and ACLs set by half-admins."""

import time
from collections.abc import Callable

import pytest

from tests.grpc.talkers import Fault, Talker
from tests.security.conftest import TALKERS, Key

EXCEEDS = "one or more permissions exceed the caller's admin scope"
protocols = pytest.mark.parametrize("protocol", list(TALKERS))


def refused(attempt: Callable[[], object]) -> tuple[str, str]:
    with pytest.raises(Fault) as caught:
        attempt()
    return caught.value.status, caught.value.text


# --- patterns

NAMES = {
    "orders": {"orders"},
    "orders.*": {"orders.eu", "orders.eu.west", "orders.", "orders..", "orders.*", "orders.dlq"},
    "*": {"anything", "orders", "*"},
    "orders.eu.*": {"orders.eu.west"},
    "sp ace": {"sp ace"},
    "ördêrs": {"ördêrs"},
}
OTHERS = {
    "orders": [
        "order",
        "orderss",
        "orders.eu",
        "orders.dlq",
        "Orders",
        "ORDERS",
        " orders",
        "orders ",
        "оrders",  # a Cyrillic o
        "orders\u200b",  # a space of no width
        "ｏrders",
        "orders/",
        "",
    ],
    "orders.*": ["orders", "ordersX", "orders-eu", "order.eu", "Orders.eu", "orders\u2024eu", "*"],
    "orders.eu.*": ["orders.eu", "orders.us.west", "orders.*"],
    "ördêrs": ["o\u0308rde\u0302rs", "orders"],  # the same letters, put together differently
}  # fmt: skip


@protocols
@pytest.mark.parametrize("pattern", list(NAMES))
def test_a_pattern_names_exactly_what_it_says(
    connect: Callable[..., Talker], key: Callable[..., Key], protocol: str, pattern: str
) -> None:
    talker = connect(protocol, key(("produce", pattern)).secret)
    for name in NAMES[pattern]:
        # Allowed, and then not found: the guard let it through.
        assert talker.enqueue_mixed((name, b"x"))[0] == "NOT_FOUND", name
    for name in OTHERS.get(pattern, []):
        status, text = refused(lambda name=name: talker.enqueue(name, b"x", headers={}))  # type: ignore[misc]
        assert (status, text) == ("PERMISSION_DENIED", f'no produce permission on queue "{name}"')


@protocols
@pytest.mark.parametrize(
    "pattern",
    ["", "orders*", "*orders", "ord*rs", "**", ".*", "*.*", "orders.**", "a\0b", "a\nb", "x" * 300],
)
def test_a_pattern_that_means_nothing_is_refused(
    root: Talker,
    connect: Callable[..., Talker],
    key: Callable[..., Key],
    protocol: str,
    pattern: str,
) -> None:
    target = key(("produce", "kept"))
    boss = connect(protocol, key(superadmin=True).secret)
    status, text = refused(lambda: boss.set_acl(target.id, ("produce", pattern)))
    assert status == "INVALID_ARGUMENT"
    assert "invalid pattern" in text
    assert root.get_acl(target.id) == (False, [("produce", "kept")])


@protocols
@pytest.mark.parametrize("kind", ["", "Produce", "produce ", "*", "superadmin", "рroduce"])
def test_a_kind_that_is_none_is_refused(
    connect: Callable[..., Talker], key: Callable[..., Key], protocol: str, kind: str
) -> None:
    boss = connect(protocol, key(superadmin=True).secret)
    status, text = refused(lambda: boss.set_acl(key().id, (kind, "orders")))
    assert status == "INVALID_ARGUMENT"
    assert text == f'invalid permission kind "{kind}"; use produce, consume or admin'


# --- ACLs


@protocols
@pytest.mark.parametrize(
    "wanted",
    [
        ("admin", "*"),
        ("produce", "*"),
        ("consume", "other"),
        ("produce", "team"),
        ("produce", "teams.a"),
        ("admin", "team.a.*"),
    ],
)
def test_half_an_admin_grants_only_what_lies_in_its_half(
    root: Talker,
    connect: Callable[..., Talker],
    key: Callable[..., Key],
    protocol: str,
    wanted: tuple[str, str],
) -> None:
    target = key()
    talker = connect(protocol, key(("admin", "team.*")).secret)
    if wanted[1] == "team.a.*":
        talker.set_acl(target.id, wanted, ("consume", "team.b"))
        assert root.get_acl(target.id)[1] == [wanted, ("consume", "team.b")]
    else:
        # One good permission beside it does not help.
        attempt = lambda: talker.set_acl(target.id, ("produce", "team.a"), wanted)  # noqa: E731
        assert refused(attempt) == ("PERMISSION_DENIED", EXCEEDS)
        assert root.get_acl(target.id) == (False, [])


@protocols
def test_half_an_admin_cannot_raise_itself(
    root: Talker, connect: Callable[..., Talker], key: Callable[..., Key], protocol: str
) -> None:
    mine = key(("admin", "team.*"))
    talker = connect(protocol, mine.secret)
    for wanted in (("admin", "*"), ("produce", "*"), ("admin", "team")):
        attempt = lambda wanted=wanted: talker.set_acl(mine.id, ("admin", "team.*"), wanted)  # noqa: E731
        assert refused(attempt) == ("PERMISSION_DENIED", EXCEEDS)
    assert root.get_acl(mine.id) == (False, [("admin", "team.*")])


@protocols
def test_half_an_admin_cannot_take_away_what_it_could_not_give(
    root: Talker, connect: Callable[..., Talker], key: Callable[..., Key], protocol: str
) -> None:
    target = key(("produce", "other"), ("produce", "team.a"))
    talker = connect(protocol, key(("admin", "team.*")).secret)
    for wanted in ((), (("produce", "team.a"),)):
        attempt = lambda wanted=wanted: talker.set_acl(target.id, *wanted)  # noqa: E731
        assert refused(attempt) == ("PERMISSION_DENIED", EXCEEDS)
    assert len(root.get_acl(target.id)[1]) == 2


@protocols
def test_an_admin_of_all_is_still_no_superadmin(
    root: Talker, connect: Callable[..., Talker], key: Callable[..., Key], protocol: str
) -> None:
    mine = key(("admin", "*"))
    boss = key(superadmin=True)
    talker = connect(protocol, mine.secret)
    assert refused(lambda: talker.create_key("evil", superadmin=True)) == (
        "PERMISSION_DENIED",
        "only superadmin keys can create other superadmin keys",
    )
    assert refused(lambda: talker.revoke_key(boss.id)) == (
        "PERMISSION_DENIED",
        "only superadmin keys can revoke superadmin keys",
    )
    assert refused(lambda: talker.set_acl(boss.id)) == ("PERMISSION_DENIED", EXCEEDS)
    assert root.get_acl(boss.id)[0]
    made = talker.create_key("helper")
    assert not made.is_superadmin
    assert root.get_acl(made.key_id) == (False, []), "a new key may do nothing"


@protocols
def test_producers_and_consumers_manage_nothing(
    connect: Callable[..., Talker], key: Callable[..., Key], protocol: str
) -> None:
    mine = key(("produce", "*"), ("consume", "*"))
    talker = connect(protocol, mine.secret)
    denied = ("PERMISSION_DENIED", "key does not have admin permission")
    assert refused(lambda: talker.create_key("x")) == denied
    assert refused(lambda: talker.create_key("x", superadmin=True)) == denied
    assert refused(lambda: talker.set_acl(mine.id, ("admin", "*"))) == denied
    assert refused(lambda: talker.set_acl("nobody", ("admin", "*"))) == denied
    assert refused(lambda: talker.revoke_key(mine.id)) == denied


@protocols
def test_half_an_admin_manages_no_keys_and_no_config(
    connect: Callable[..., Talker], key: Callable[..., Key], protocol: str
) -> None:
    talker = connect(protocol, key(("admin", "team.*"), ("admin", "x")).secret)
    denied = ("PERMISSION_DENIED", "key does not have admin permission")
    for attempt in (
        lambda: talker.create_key("x"),
        lambda: talker.revoke_key("x"),
        lambda: talker.api_keys(),
        lambda: talker.get_acl("x"),
        lambda: talker.set_config("a", "b"),
        lambda: talker.get_config("a"),
        lambda: talker.list_config(""),
    ):
        assert refused(attempt) == denied


@protocols
def test_permissions_given_and_taken_act_at_once_on_an_open_connection(
    root: Talker, connect: Callable[..., Talker], key: Callable[..., Key], queue: str, protocol: str
) -> None:
    root.create_queue(queue)
    mine = key()
    talker = connect(protocol, mine.secret)
    for _ in range(3):
        assert refused(lambda: talker.enqueue(queue, b"x", headers={}))[0] == "PERMISSION_DENIED"
        root.set_acl(mine.id, ("produce", queue))
        assert talker.enqueue(queue, b"x", headers={})
        root.set_acl(mine.id)


@protocols
def test_a_stream_ends_with_its_permission_its_key_and_its_expiry(
    root: Talker, connect: Callable[..., Talker], key: Callable[..., Key], queue: str, protocol: str
) -> None:
    root.create_queue(queue)
    root.enqueue(queue, *[b"x"] * 3, headers={})
    for end in ("acl", "revoked", "expired"):
        expires_ms = int(time.time() * 1000) + 700 if end == "expired" else 0
        mine = key(("consume", queue), expires_ms=expires_ms)
        stream = connect(protocol, mine.secret).consume(queue, prefetch=1)
        stream.take(1)
        if end == "acl":
            root.set_acl(mine.id, ("consume", "elsewhere"))
        elif end == "revoked":
            root.revoke_key(mine.id)
        fault = stream.ended()  # type: ignore[attr-defined]
        assert (fault.status, fault.text) == {
            "acl": ("PERMISSION_DENIED", f'no consume permission on queue "{queue}"'),
            "revoked": ("UNAUTHENTICATED", "the API key was revoked"),
            "expired": ("UNAUTHENTICATED", "the API key has expired"),
        }[end]
        assert root.stats(queue).consumers == 0
