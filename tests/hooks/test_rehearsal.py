from __future__ import annotations

import pytest

from fila.core.verdict import Assignment, FailureVerdict
from fila.hooks.contract import HookError
from fila.hooks.rehearsal import Sample, Tried, read_samples, rehearse
from tests.hooks.trial import MESSAGE_ID, MESSAGE_ID_TEXT

ROUTE = """
function on_enqueue(msg)
  return { fairness_key = msg.headers.tenant:lower(), weight = fila.get("weight") }
end"""
RETRY = """
function on_failure(msg, error)
  return { action = msg.attempts < 3 and "retry" or "dlq", delay_ms = #error + #msg.headers }
end"""


def ticking() -> object:
    """A clock that moves by a microsecond each time it is read."""
    now = 0

    def clock() -> int:
        nonlocal now
        now += 1_000
        return now

    return clock


def rehearsed(
    on_enqueue: str | None, on_failure: str | None, samples: list[Sample], **options: object
) -> list[Tried]:
    settings: dict[str, object] = {"queue": "test", "config": {}, "clock": ticking(), "seed": 1}
    return rehearse(on_enqueue, on_failure, samples, **{**settings, **options})  # type: ignore[arg-type]


def test_each_message_is_told_with_its_verdict_time_and_memory() -> None:
    samples = [Sample({"tenant": "Acme"}), Sample({"tenant": "Globex"})]
    first, second = rehearsed(ROUTE, None, samples, config={"weight": "3"})
    assert first.assignment == Assignment(b"acme", 3, ())
    assert second.assignment == Assignment(b"globex", 3, ())
    assert (first.hook, first.number, second.number) == ("on_enqueue", 1, 2)
    assert first.problem == second.problem == ""
    assert first.time_ns > 0
    assert 0 < first.memory_bytes < 100_000


def test_both_hooks_may_be_tried_on_the_same_messages() -> None:
    samples = [Sample({"tenant": "a"}, b"", 2, "abc"), Sample({"tenant": "a"}, b"", 3, "abc")]
    tried = rehearsed(ROUTE, RETRY, samples)
    assert [one.hook for one in tried] == ["on_enqueue", "on_failure"] * 2
    assert tried[1].failure == FailureVerdict(False, 3)
    assert tried[3].failure == FailureVerdict(True, 0)


def test_a_failure_is_told_for_its_own_message_and_never_switches_the_script_off() -> None:
    samples = [Sample({})] * 10 + [Sample({"tenant": "a"})] + [Sample({})]
    tried = rehearsed(ROUTE, None, samples)
    assert [bool(one.problem) for one in tried] == [True] * 10 + [False, True]
    assert "on_enqueue:3: attempt to index a nil value" in tried[0].problem


def test_limits_can_be_tried_too() -> None:
    slow = "function on_enqueue(msg) for i = 1, 1e6 do end return {} end"
    (fast,) = rehearsed(slow, None, [Sample({})], timeout_ms=1)
    assert "took longer than 1 ms" in fast.problem
    (patient,) = rehearsed(slow, None, [Sample({})], timeout_ms=5_000)
    assert patient.problem == ""
    with pytest.raises(HookError, match="memory_limit_bytes must be between"):
        rehearsed(slow, None, [], memory_limit_bytes=1)


def test_a_script_that_does_not_load_is_an_error_before_any_message() -> None:
    with pytest.raises(HookError, match="on_enqueue does not compile: on_enqueue:1:"):
        rehearsed("nonsense", None, [])


def test_samples_are_json_lines() -> None:
    samples = read_samples(
        [
            '{"headers": {"tenant": "acme"}, "payload": "hé"}\n',
            "\n",
            '{"attempts": 4, "error": "boom", "id": "%s"}' % MESSAGE_ID_TEXT,  # noqa: UP031
            "{}",
        ]
    )
    assert samples == [
        Sample({"tenant": "acme"}, "hé".encode()),
        Sample({}, b"", 4, "boom", MESSAGE_ID),
        Sample({}),
    ]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("nonsense", "Expecting value"),
        ("[]", "must be a JSON object"),
        ('{"header": {}}', 'unknown field "header"'),
        ('{"headers": []}', '"headers" must be an object'),
        ('{"headers": {"a": 5}}', "values are strings"),
        ('{"payload": 5}', '"payload" and "error" must be strings'),
        ('{"error": null}', '"payload" and "error" must be strings'),
        ('{"attempts": "1"}', '"attempts" must be a whole number'),
        ('{"attempts": true}', '"attempts" must be a whole number'),
        ('{"attempts": -1}', '"attempts" must be a whole number'),
        ('{"id": "5"}', '"id" must be a UUID'),
        ('{"id": 5}', '"id" must be a UUID'),
        ('{"headers": {"a": "%s"}}' % ("x" * 65_536), "longer than 65535 bytes"),
        ('{"payload": "\\ud800"}', "surrogates not allowed"),
    ],
)
def test_a_bad_sample_is_told_with_its_line(line: str, why: str) -> None:
    with pytest.raises(HookError) as refusal:
        read_samples(["{}", line])
    assert str(refusal.value).startswith("line 2")
    assert why in str(refusal.value)
