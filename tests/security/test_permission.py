"""Permissions: what a pattern names, whatever the number of patterns."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fila.security.permission import ADMIN, ALL, CONSUME, KINDS, PRODUCE, Grants, Permission

NAMES = st.lists(st.sampled_from(["a", "b", "", "."]), max_size=5).map(".".join)
PATTERNS = st.one_of(st.just(ALL), NAMES, NAMES.map(lambda name: name + ".*"))
PERMISSIONS = st.builds(Permission, st.sampled_from(KINDS), PATTERNS)


def names(pattern: str, queue: str) -> bool:
    """What docs/security.md says."""
    if pattern == ALL:
        return True
    if pattern.endswith(".*"):
        return queue.startswith(pattern[:-1])
    return queue == pattern


def covers(wide: str, narrow: str) -> bool:
    if wide == ALL or narrow == ALL:
        return wide == ALL
    if wide.endswith(".*"):
        return narrow.startswith(wide[:-1])
    return wide == narrow


@given(st.lists(PERMISSIONS, max_size=6), st.sampled_from(KINDS), NAMES)
def test_a_queue_is_allowed_when_one_permission_of_the_kind_names_it(
    permissions: list[Permission], kind: str, queue: str
) -> None:
    expected = any(one.kind == kind and names(one.pattern, queue) for one in permissions)
    assert Grants(permissions).allow(kind, queue) == expected


@given(st.lists(PERMISSIONS, max_size=6), PATTERNS)
def test_a_pattern_is_administered_when_one_admin_permission_covers_all_of_it(
    permissions: list[Permission], pattern: str
) -> None:
    expected = any(one.kind == ADMIN and covers(one.pattern, pattern) for one in permissions)
    assert Grants(permissions).administer(pattern) == expected


def test_a_thousand_permissions_are_not_looked_at_one_by_one() -> None:
    class Counted(str):
        looked = 0

        def __eq__(self, other: object) -> bool:
            Counted.looked += 1
            return str.__eq__(self, other)

        def __hash__(self) -> int:
            return str.__hash__(self)

    many = [Permission(CONSUME, Counted(f"team-{at}")) for at in range(1_000)]
    grants = Grants([*many, Permission(PRODUCE, "a.b.*")])
    Counted.looked = 0
    assert not grants.allow(CONSUME, "a.b.c")
    assert grants.allow(PRODUCE, "a.b.c")
    assert Counted.looked < 5
