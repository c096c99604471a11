"""Celery tells about every task before it is published; this puts on its headers whose it is.

Owns the order of precedence: headers of the call come before what the task declares.
"""

from __future__ import annotations

from typing import Any

from fila.task_keys import KEY, THROTTLE, WEIGHT, Declared, keys_of


def connect() -> None:
    from celery.signals import before_task_publish

    before_task_publish.connect(_on_publish, dispatch_uid="fila.kombu", weak=False)


def _on_publish(sender: Any = None, body: Any = None, headers: Any = None, **_: Any) -> None:
    from celery import current_app

    task = current_app.tasks.get(sender)
    if task is None or headers is None or not isinstance(body, tuple | list) or len(body) < 2:
        return
    declared = Declared(*(getattr(task, name, None) for name in (KEY, WEIGHT, THROTTLE)))
    found = keys_of(declared, task.name, task.run, body[0], body[1])
    if found.fairness_key:
        headers.setdefault(KEY, found.fairness_key)
    if found.weight:
        headers.setdefault(WEIGHT, found.weight)
    if found.throttle_keys:
        headers.setdefault(THROTTLE, list(found.throttle_keys))
