"""A stock Celery project. Which broker it uses is said by the environment, and nothing else here
is about Fila but the options that say whose task it is."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from celery import Celery

app = Celery(
    "project", broker=os.environ["PROJECT_BROKER"], backend=os.environ.get("PROJECT_BACKEND")
)
app.conf.update(
    task_acks_late=bool(os.environ.get("PROJECT_LATE")),
    worker_prefetch_multiplier=int(os.environ.get("PROJECT_PREFETCH", "4")),
    broker_transport_options={"visibility_timeout": 5},
    broker_connection_retry_on_startup=True,
    worker_cancel_long_running_tasks_on_connection_loss=False,
)
if os.environ.get("PROJECT_CA"):
    app.conf.broker_use_ssl = {"ca_certs": os.environ["PROJECT_CA"]}
LOG = Path(os.environ["PROJECT_LOG"])


def note(text: str) -> None:
    with LOG.open("a") as log:  # short lines, appended whole by several processes
        log.write(text + "\n")


@app.task(fila_key="tenant", fila_throttle="provider:{provider}")
def send(tenant: str, number: int, provider: str = "none") -> int:
    note(f"{tenant} {number}")
    return number


@app.task
def add(left: int, right: int) -> int:
    return left + right


@app.task
def total(numbers: list[int]) -> int:
    return sum(numbers)


@app.task
def sleep(name: str, seconds: float) -> None:
    note(f"begin {name}")
    time.sleep(seconds)
    note(f"end {name}")


@app.task(bind=True, max_retries=5)
def flaky(self: Any, name: str) -> str:
    note(f"{name} {self.request.retries}")
    if self.request.retries < 2:
        raise self.retry(countdown=0.2)
    return "at last"


@app.task(bind=True, acks_late=True)
def refuse(self: Any, name: str) -> None:
    from celery.exceptions import Reject

    note(f"refuse {name}")
    raise Reject("not for me", requeue=False)
