"""Every command is followed by one function, with the kind of reply that `apply` promises."""

from __future__ import annotations

import inspect
import typing

import pytest

from fila.core import applies, machine
from fila.core.applies import Applies
from fila.core.command import Command

COMMANDS = typing.get_args(Command)


def promised() -> dict[type, object]:
    """Reply types by command, as the overloads of `apply` say."""
    found: dict[type, object] = {}
    for overload in typing.get_overloads(Applies.apply):
        hints = typing.get_type_hints(overload, vars(applies))
        asked = hints["command"]
        if asked == Command:
            continue  # for those who do not know which command it is
        for one in typing.get_args(asked) or (asked,):
            assert one not in found, f"two overloads speak of {one.__name__}"
            found[one] = hints["return"]
    return found


def tables() -> dict[type, typing.Callable[..., object]]:
    return {**machine._ON_QUEUE, **machine._ON_CATALOGUE}


def test_every_command_is_in_one_table_and_under_one_overload() -> None:
    assert not machine._ON_QUEUE.keys() & machine._ON_CATALOGUE.keys()
    assert set(tables()) == set(COMMANDS) == set(promised())


@pytest.mark.parametrize("kind", COMMANDS, ids=lambda kind: kind.__name__)
def test_the_function_in_the_table_takes_the_command_and_replies_as_promised(kind: type) -> None:
    follow = tables()[kind]
    *_, asked = inspect.signature(follow).parameters
    hints = typing.get_type_hints(follow)
    assert hints[asked] is kind
    kinds = {type(None)} if hints["return"] is type(None) else set(_members(hints["return"]))
    assert kinds <= set(_members(promised()[kind]))


@pytest.mark.parametrize("kind", sorted(machine._ON_QUEUE, key=lambda one: str(one)))
def test_commands_that_need_a_queue_name_it(kind: type) -> None:
    assert "queue" in kind.__annotations__


def _members(kind: object) -> tuple[object, ...]:
    return typing.get_args(kind) if "|" in str(kind) or "Union" in str(kind) else (kind,)
