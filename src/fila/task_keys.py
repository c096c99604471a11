"""Whose task is it? What a task's declaration says about its keys, applied to one call.

    fila_key="tenant"                   the value of the argument with this name
    fila_key=lambda order: order.shop   computed from the arguments
    fila_throttle="provider:{name}"     throttle keys, arguments filled in; one or several
    fila_weight=3

Owns these options, for Celery (`fila.kombu`) and Dramatiq (`fila.dramatiq`) alike. Pure.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

KEY: Final = "fila_key"
WEIGHT: Final = "fila_weight"
THROTTLE: Final = "fila_throttle"
OPTIONS: Final = (KEY, WEIGHT, THROTTLE)


class Declared(NamedTuple):
    """What a task says; None is nothing."""

    key: str | Callable[..., Any] | None = None
    weight: int | None = None
    throttle: str | Iterable[str] | None = None


class Keys(NamedTuple):
    """What that means for one call; what is empty is not said."""

    fairness_key: str = ""
    weight: int = 0
    throttle_keys: tuple[str, ...] = ()


def keys_of(
    declared: Declared,
    name: str,
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> Keys:
    if declared == Declared():
        return Keys()
    arguments = _arguments(function, args, kwargs)
    key = ""
    if callable(declared.key):
        key = str(declared.key(*args, **kwargs))
    elif declared.key is not None:
        key = str(_filled(f"{{{declared.key}}}", arguments, name, KEY))
    throttle = declared.throttle or ()
    templates = (throttle,) if isinstance(throttle, str) else throttle
    filled = tuple(_filled(one, arguments, name, THROTTLE) for one in templates)
    return Keys(key, int(declared.weight or 0), filled)


def _arguments(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments of a call by name, defaults included."""
    signature = inspect.signature(function)
    bound = signature.bind_partial(*args, **kwargs)
    bound.apply_defaults()
    found = dict(bound.arguments)
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            found |= found.pop(parameter.name, {})
    return found


def _filled(template: str, arguments: Mapping[str, Any], task: str, option: str) -> str:
    try:
        return template.format(**arguments)
    except (KeyError, IndexError, AttributeError) as error:
        known = ", ".join(arguments) or "none"
        raise TypeError(
            f"task {task}: {option} asks for {error}, which is no argument of this call; "
            f"there are: {known}"
        ) from None
