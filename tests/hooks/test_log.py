from __future__ import annotations

import logging

import pytest

from tests.hooks.trial import MS, Trial, body, hook


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "fila.hooks"]


def test_a_failure_is_logged_with_the_scripts_own_line_and_message(
    caplog: pytest.LogCaptureFixture,
) -> None:
    Trial().on_enqueue("-- policy\n" + hook("local x = nil\nreturn x.y")).assign()
    assert lines(caplog) == [
        'queue "orders": on_enqueue failed, the message gets the defaults: '
        "on_enqueue:4: attempt to index a nil value (local 'x')"
    ]


def test_a_trip_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    trial = Trial().on_enqueue(hook("error('no luck')"))
    trial.assign_all([body()] * 500)
    trial.assign_all([body()] * 500)
    first, trip = lines(caplog)
    assert "on_enqueue failed" in first
    assert trip == (
        'queue "orders": on_enqueue is switched off for 10000 ms after 3 failures in a row, '
        "messages get the defaults; last problem: on_enqueue:2: no luck"
    )
    assert {record.levelno for record in caplog.records} == {logging.WARNING}


def test_each_further_trip_is_logged_and_so_is_recovery(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "fila.hooks")
    trial = Trial().on_enqueue(hook("return fila.get('good') and {} or nil"))
    trial.assign_all([body()] * 10)
    trial.now_ns += 10_000 * MS
    trial.assign_all([body()] * 10)
    trial.set_config("good", "yes")
    trial.now_ns += 10_000 * MS
    trial.assign_all([body()] * 10)
    assert [line.split(": ")[1].split(" ")[1] for line in lines(caplog)] == [
        "failed,",
        "is",
        "is",
        "works",
    ]
    assert trial.enqueue_stats.trips == 2
    assert trial.enqueue_stats.breaker == "closed"


def test_failures_that_never_trip_are_logged_now_and_then(caplog: pytest.LogCaptureFixture) -> None:
    trial = Trial().on_enqueue(hook("assert(msg.headers.good, 'bad one') return {}"))
    bodies = [body({"good": "y"} if i % 2 else {"n": str(i)}) for i in range(100)]
    trial.assign_all(bodies)
    assert len(lines(caplog)) == 1
    trial.now_ns += 10_000 * MS
    trial.assign_all(bodies)
    assert len(lines(caplog)) == 2
    assert "(49 more failures since the last line)" in lines(caplog)[1]
    assert trial.enqueue_stats.errors == 100


def test_neither_headers_nor_payloads_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    secret = "s3cr3t"
    statements = [
        "return nil + msg.headers.token",
        "return msg.headers.token + 1",
        "return msg.headers.token.x.y",
        "return msg.headers[msg.headers.token].x",
        "return msg.headers.token < 5",
        "return msg.headers.token()",
        "return #msg.headers.nothing",
        "return string.rep(msg.headers.token, msg.headers.token)",
        "return tonumber(msg.headers.token, 99)",
        "return math.floor(msg.headers.token)",
        "return string.format('%d', msg.headers.token)",
        "return table.concat({ msg.headers.token, {} })",
        "return { fairness_key = msg.headers.token .. '\\xff' }",
        "return { throttle_keys = { (msg.headers.token):rep(200) } }",
        "return fila.helpers.max_retries(msg.headers.token, 5)",
        "for i = msg.headers.token, 5 do end",
        "return 1 // 0 | msg.headers.token",
        "return ('x'):find(msg.headers.token .. '%')",
        "return fila.get(msg.headers.token)",
    ]
    for statement in statements:
        trial = Trial().on_enqueue(hook(statement))
        trial.assign_all([body({"token": secret}, secret.encode())] * 4)
        assert trial.enqueue_stats.errors == 3, statement
        assert secret not in trial.enqueue_stats.last_problem
    assert len(lines(caplog)) == 2 * len(statements)
    assert secret not in caplog.text


def test_a_message_of_many_lines_is_logged_on_one(caplog: pytest.LogCaptureFixture) -> None:
    Trial().on_enqueue(hook(r"error('one\ntwo\r\n\27[31mred\0\xff end', 0)")).assign()
    (line,) = lines(caplog)
    assert line.endswith(r"on_enqueue:2: one\ntwo\r\n\x1b[31mred\x00\xff end")


def test_a_very_long_message_is_cut(caplog: pytest.LogCaptureFixture) -> None:
    Trial().on_enqueue(hook("error(('x'):rep(100000))")).assign()
    (line,) = lines(caplog)
    assert len(line) < 600


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("error({ code = 5 })", "error object is a table value"),
        ("error()", "error object is a nil value"),
        ("error(42)", "error object is a number value"),
        ("error('plain', 0)", "plain"),
        ("error('located')", "on_enqueue:2: located"),
        ("error('on_enqueue:999: forged', 0)", "on_enqueue:999: forged"),
    ],
)
def test_whatever_is_thrown_can_be_told(
    statement: str, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    Trial().on_enqueue(hook(statement)).assign()
    assert lines(caplog)[0].endswith(told)
