"""Operations carried out from the table: every row has one handler, and checks have one order."""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from fila.broker import operations
from fila.broker.session import Session, Sessions
from fila.core.effect import Delivery
from fila.core.rejection import Rejection
from fila.edges.fibp_operations import REQUESTS
from fila.edges.grpc.connection import METHODS
from fila.error_codes import FORBIDDEN, INVALID_CONFIG_VALUE, OK, QUEUE_NOT_FOUND
from fila.security.guard import Guard, Identity
from fila.security.keyring import PERMISSIONS_MAX, Keyring
from fila.wire import bodies as b
from fila.wire import layouts
from fila.wire.operation import ADMIN, BROKER, CONSUME
from tests.broker.turns import Bench

COLD = {request: row for request, row in layouts.OPERATIONS.items() if not row.by_hand}
HOUR_MS = 3_600_000


class Caller:
    """A connection as its session sees it."""

    def __init__(self, enabled: bool = False) -> None:
        self.bench = Bench()
        self.now_ms = 1_000_000
        self.expelled_for: list[Rejection] = []
        guard = Guard(Keyring([]), "bootstrap-secret", enabled)
        self.sessions = Sessions(self.bench.broker, guard, lambda n: "0" * n, lambda: self.now_ms)
        self.session: Session = self.sessions.open(self, "198.51.100.7:1")

    def takes_more(self) -> bool:
        return True

    def ask(self, request: Any) -> Any:
        """The result, or the rejection."""
        results: list[Any] = []
        fault = self.session.carry_out(request, results.append)
        self.bench.loop.settle()
        assert (fault is None) == (len(results) == 1)
        return results[0] if fault is None else fault

    def send(self, data: bytes) -> None: ...

    def deliver(self, delivery: Delivery) -> None: ...

    def consumer_ended(self, consumer: str, why: Rejection) -> None: ...

    def flush(self) -> None: ...

    def expelled(self, why: Rejection) -> None:
        self.expelled_for.append(why)


def test_every_row_that_is_not_by_hand_has_a_handler_and_no_other_row_has() -> None:
    assert set(operations.AT_ONCE) | set(operations.LATER) == set(COLD)
    assert not set(operations.AT_ONCE) & set(operations.LATER)
    assert set(REQUESTS) == {row.opcode for row in COLD.values()}


def test_every_operation_with_a_service_is_a_grpc_method() -> None:
    paths = {
        f"/fila.v1.{row.service}/{row.name}".encode()
        for row in layouts.OPERATIONS.values()
        if row.service
    }
    assert paths <= set(METHODS)


@pytest.mark.parametrize(
    "request_type",
    [request for request, row in COLD.items() if row.permission and " " not in row.on],
    ids=lambda one: one.__name__,
)
def test_permission_is_asked_before_anything_is_looked_up(
    request_type: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """None of what the requests name exists, and none of the callers is told so."""
    row = COLD[request_type]
    caller = Caller(enabled=True)
    caller.session.identity = Identity("nobody", False, "nobody")
    values = [_value(kind) for kind in layouts.LAYOUTS[request_type].values()]
    with caplog.at_level(logging.INFO, "fila.audit"):
        refused = caller.ask(request_type(*values))
    assert isinstance(refused, Rejection) and refused.code == FORBIDDEN
    if row.permission == CONSUME:
        assert refused.message == 'no consume permission on queue "x"'
    else:
        assert ADMIN in row.permission
        assert refused.message == "key does not have admin permission"
    assert row.on == BROKER or row.on in row.request
    (line,) = caplog.records
    assert line.getMessage() == "refused"
    assert line.__dict__["why"] == refused.message


def _value(kind: Any) -> Any:
    if isinstance(kind, layouts.ListOf):
        return ()
    return "x" if kind in ("string", "string?") else b"" if kind == "bytes" else 1


def test_too_many_permissions_are_no_answer_to_who_may_grant_none() -> None:
    many = tuple(b.Permission("consume", "x") for _ in range(PERMISSIONS_MAX + 1))
    caller = Caller(enabled=True)
    caller.session.identity = Identity("nobody", False, "nobody")
    assert caller.ask(b.SetAcl("k", many)).code == FORBIDDEN
    caller.session.identity = Identity("", True, "root")
    assert caller.ask(b.SetAcl("k", many)).code == INVALID_CONFIG_VALUE


def test_what_changes_something_is_written_down_once_it_is_done(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caller = Caller()
    caller.session.admit(None)
    with caplog.at_level(logging.INFO, "fila.audit"):
        assert caller.ask(b.CreateQueue("q")) == b.CreateQueueResult(OK, "q")
        assert caller.ask(b.GetStats("q")).code == OK
        assert caller.ask(b.PauseKey("q", "acme", "why")).code == OK
        assert caller.ask(b.PauseQueue("none")).code == QUEUE_NOT_FOUND
        made = caller.ask(b.CreateApiKey("ci"))
        assert caller.ask(b.Purge("q", "acme")) == b.PurgeResult(OK, 0)
    assert [record.__dict__["action"] for record in caplog.records] == [
        'create queue "q"',
        'pause key "acme" of queue "q"',
        f'create API key {made.key_id} "ci"',
        'purge key "acme" of queue "q"',
    ]
    assert made.key not in caplog.text


def test_a_session_ends_when_its_key_runs_out_and_not_before() -> None:
    caller = Caller(enabled=True)
    caller.session.identity = Identity("", True, "root")
    made = caller.ask(b.CreateApiKey("ci", caller.now_ms + 30 * HOUR_MS))
    assert caller.session.admit(made.key) is None
    for hours, ended in ((24, False), (6, True)):
        (timer,) = [one for one in caller.bench.loop.timers if one.delay_s > 60]
        caller.now_ms += hours * HOUR_MS + 1
        caller.bench.loop.timers.remove(timer)
        timer.call()
        assert bool(caller.expelled_for) is ended
    assert caller.expelled_for[0].message == "the API key has expired"


def test_a_session_that_closed_leaves_no_timer_behind() -> None:
    caller = Caller(enabled=True)
    caller.session.identity = Identity("", True, "root")
    made = caller.ask(b.CreateApiKey("ci", caller.now_ms + HOUR_MS))
    caller.session.admit(made.key)
    (timer,) = [one for one in caller.bench.loop.timers if one.delay_s > 60]
    caller.session.close()
    assert timer.cancelled


def test_explain_without_a_queue_shows_what_the_caller_administers_and_nothing_else() -> None:
    caller = Caller(enabled=True)
    caller.session.identity = Identity("", True, "root")
    for name in ("mine", "yours", "read"):
        assert caller.ask(b.CreateQueue(name)).code == OK

    def key_with(*permissions: tuple[str, str]) -> str:
        caller.session.identity = Identity("", True, "root")
        made = caller.ask(b.CreateApiKey("test"))
        wanted = tuple(b.Permission(*one) for one in permissions)
        assert caller.ask(b.SetAcl(made.key_id, wanted)).code == OK
        secret: str = made.key
        return secret

    caller.sessions.random_hex = iter_hex()
    both, reader = key_with(("admin", "mine"), ("consume", "read")), key_with(("consume", "read"))
    assert caller.session.admit(both) is None
    found = json.loads(caller.ask(b.Explain("")).document)
    assert [one["queue"] for one in found["queues"]] == ["mine"]
    assert caller.session.admit(reader) is None
    refused = caller.ask(b.Explain(""))
    assert isinstance(refused, Rejection) and refused.code == FORBIDDEN


def iter_hex() -> Callable[[int], str]:
    numbers = itertools.count(1)
    return lambda size: f"{next(numbers):0{size * 2}x}"


@pytest.mark.parametrize(
    "request_of",
    [
        lambda half: b.PauseQueue("q", half),
        lambda half: b.PauseKey("q", half, "why"),
        lambda half: b.PauseKey("q", "k", half),
        lambda half: b.Purge("q", half),
        lambda half: b.SetConfig("key", half),
        lambda half: b.SetConfig(half, "value"),
        lambda half: b.Explain(half),
        lambda half: b.CreateApiKey(half),
        lambda half: b.AckBatch("q", half),
    ],
)
def test_half_a_character_is_refused_before_anything_is_done_with_it(request_of: Any) -> None:
    caller = Caller()
    assert caller.session.admit(None) is None
    assert caller.ask(b.CreateQueue("q")).code == OK
    refused = caller.ask(request_of("a\ud800"))
    assert isinstance(refused, Rejection) and refused.code == INVALID_CONFIG_VALUE
    assert "character 1 is half of a surrogate pair" in refused.message
    assert caller.bench.faults == []
    assert caller.ask(b.PauseQueue("q", "a\U0001f600")).code == OK
