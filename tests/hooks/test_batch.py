from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from fila.core.verdict import DEFAULT_ASSIGNMENT
from fila.hooks.limits import HEADER_BYTES_MAX, HEADERS_MAX
from tests.hooks.trial import Trial, body, hook

ECHO = hook("""
    local h = msg.headers
    if h.fail then error("asked to fail") end
    return { fairness_key = (h.k or "?") .. ":" .. msg.payload_size, weight = #(h.pad or "") }""")


def echoed(headers: dict[str, str], payload: bytes) -> tuple[bytes, int]:
    key = f"{headers.get('k', '?')}:{len(payload)}".encode()
    return key, max(1, len(headers.get("pad", "").encode()))


def test_a_batch_larger_than_a_part_is_decided_in_order() -> None:
    trial = Trial().on_enqueue(ECHO)
    verdicts = trial.assign_all([body({"k": str(i)}, b"x" * (i % 3)) for i in range(1_000)])
    assert [one.fairness_key.decode() for one in verdicts] == [f"{i}:{i % 3}" for i in range(1_000)]
    assert trial.enqueue_stats.executions == 1_000


def test_long_headers_are_read_whole() -> None:
    trial = Trial().on_enqueue(ECHO)
    for size in (400, 500, 505, 511, 512, 600, 1_000, 4_000, 5_000, 9_000, 16_000):
        headers = {"k": "a", "pad": "p" * size, "last": "z"}
        verdict = trial.assign(headers, b"payload")
        assert (verdict.fairness_key, verdict.weight) == (b"a:7", size)
    assert trial.enqueue_stats.errors == 0


def test_headers_longer_than_the_limit_are_not_shown_and_do_not_trip_the_breaker() -> None:
    trial = Trial().on_enqueue(ECHO)
    fits = body({"pad": "p" * (HEADER_BYTES_MAX - 9)})
    too_long = body({"pad": "p" * (HEADER_BYTES_MAX - 8)})
    verdicts = trial.assign_all([fits, *[too_long] * 5, fits])
    assert [one.weight for one in verdicts] == [16_375, 1, 1, 1, 1, 1, 16_375]
    assert verdicts[1:6] == [DEFAULT_ASSIGNMENT] * 5
    assert trial.enqueue_stats.errors == 5
    assert trial.enqueue_stats.breaker == "closed"
    assert "over 16384 bytes of them, is not shown" in trial.enqueue_stats.last_problem


def test_more_headers_than_the_limit_are_not_shown_either() -> None:
    trial = Trial().on_enqueue(ECHO)
    most = {"k": "a", **{f"h{i}": "" for i in range(HEADERS_MAX - 1)}}
    bodies = [body(most), *[body({**most, "one": "more"})] * 5, body(most)]
    keys = [one.fairness_key for one in trial.assign_all(bodies)]
    assert keys == [b"a:0", *[b"default"] * 5, b"a:0"]
    assert trial.enqueue_stats.errors == 5
    assert trial.enqueue_stats.breaker == "closed"


def test_a_body_that_is_not_one_gets_the_defaults() -> None:
    trial = Trial().on_enqueue(ECHO)
    junk = [b"", b"\x00", b"\x00\x01", b"\xff" * 50, b"\x00\x05\x00\x01a", b"\x00\x01\x00\x09a"]
    verdicts = trial.assign_all([body({"k": "a"}), *junk, body({"k": "b"})])
    assert verdicts[0].fairness_key == b"a:0"
    assert verdicts[1:-1] == [DEFAULT_ASSIGNMENT] * len(junk)
    assert verdicts[-1].fairness_key == b"b:0"


def test_an_error_that_looks_like_cut_off_headers_is_the_scripts_own() -> None:
    trial = Trial().on_enqueue(hook("error('data string too short')"))
    assert trial.assign() == DEFAULT_ASSIGNMENT
    assert trial.enqueue_stats.errors == 1
    assert trial.enqueue_stats.last_problem == "on_enqueue:2: data string too short"


messages = st.tuples(
    st.dictionaries(
        st.sampled_from(["k", "pad", "fail", "other", "", "schlüssel"]),
        st.one_of(
            st.text(max_size=30),
            st.integers(480, 520).map(lambda n: "p" * n),
            st.sampled_from(["p" * 3_000, "p" * 5_000, "p" * 16_500]),
        ),
        max_size=5,
    ),
    st.sampled_from([b"", b"x", b"x" * 600, b"\x00\x02\x00\x01a"]),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(messages, max_size=40))
def test_every_message_gets_its_own_verdict_whatever_stands_around_it(
    batch: list[tuple[dict[str, str], bytes]],
) -> None:
    trial = Trial().on_enqueue(ECHO)
    trial.hooks.install("orders", ECHO, None, timeout_ms=1_000)
    verdicts = trial.assign_all([body(headers, payload) for headers, payload in batch])
    failed: dict[str, int] = {}  # by headers: after three failures those are in quarantine
    for (headers, payload), verdict in zip(batch, verdicts, strict=True):
        too_long = len(body(headers)) - 4 > HEADER_BYTES_MAX
        key, weight = echoed(headers, payload)
        whose = str(sorted(headers.items()))
        if too_long or "fail" in headers or len(key) > 512:
            failed[whose] = failed.get(whose, 0) + 1
            assert verdict == DEFAULT_ASSIGNMENT
        elif failed.get(whose, 0) < 3 or verdict != DEFAULT_ASSIGNMENT:
            assert (verdict.fairness_key, verdict.weight) == (key, weight)
    assert trial.enqueue_stats.breaker == "closed"
