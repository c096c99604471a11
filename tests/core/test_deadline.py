from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fila.core.bucket import Bucket
from fila.core.deadline import Deadlines


def owner(name: bytes = b"t") -> Bucket:
    return Bucket(name, 1.0, 1.0, 0)


def popped(deadlines: Deadlines) -> list[tuple[int, bytes]]:
    found = []
    while at_ns := deadlines.next_ns():
        one = deadlines.pop()
        assert isinstance(one, Bucket)
        found.append((at_ns, one.name))
    return found


def test_without_deadlines_there_is_no_next_one() -> None:
    assert Deadlines().next_ns() == 0


def test_the_earliest_deadline_comes_first() -> None:
    deadlines = Deadlines()
    for at_ns in (30, 10, 20):
        deadlines.arm(owner(str(at_ns).encode()), at_ns)
    assert popped(deadlines) == [(10, b"10"), (20, b"20"), (30, b"30")]


def test_equal_deadlines_come_in_the_order_they_were_armed() -> None:
    deadlines = Deadlines()
    for name in (b"c", b"a", b"b"):
        deadlines.arm(owner(name), 10)
    assert [name for _, name in popped(deadlines)] == [b"c", b"a", b"b"]


def test_a_disarmed_owner_is_not_woken() -> None:
    deadlines = Deadlines()
    one = owner()
    deadlines.arm(one, 10)
    deadlines.disarm(one)
    assert deadlines.next_ns() == 0


def test_an_owner_armed_again_is_woken_at_the_new_time_only() -> None:
    deadlines = Deadlines()
    one = owner()
    deadlines.arm(one, 10)
    deadlines.arm(one, 30)
    assert popped(deadlines) == [(30, b"t")]
    deadlines.arm(one, 30)
    deadlines.arm(one, 10)
    assert popped(deadlines) == [(10, b"t")]


def test_an_owner_armed_back_and_forth_is_woken_once() -> None:
    deadlines = Deadlines()
    one = owner()
    for at_ns in (10, 20, 10, 20, 10):
        deadlines.arm(one, at_ns)
    assert popped(deadlines) == [(10, b"t")]


def test_arming_again_and_again_does_not_pile_up() -> None:
    deadlines = Deadlines()
    one = owner()
    for at_ns in range(1, 100_000):
        deadlines.arm(one, at_ns)
    assert len(deadlines) <= 1_100
    assert popped(deadlines) == [(99_999, b"t")]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 50)), max_size=200))
def test_whatever_is_armed_and_disarmed_each_owner_wakes_at_its_last_time(
    steps: list[tuple[int, int]],
) -> None:
    deadlines = Deadlines()
    owners = [owner(bytes([65 + at])) for at in range(6)]
    model: dict[bytes, int] = {}
    for at, at_ns in steps:
        if at_ns == 0:
            deadlines.disarm(owners[at])
            model.pop(owners[at].name, None)
        else:
            deadlines.arm(owners[at], at_ns)
            model[owners[at].name] = at_ns
    found = popped(deadlines)
    assert [at_ns for at_ns, _ in found] == sorted(model.values())
    assert {name: at_ns for at_ns, name in found} == model
