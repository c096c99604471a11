"""The conformance programme finds the faults it is there to find."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
RUN = REPOSITORY / "sdks" / "conformance" / "run.py"
LIAR = "{python} tests/conformance/liar.py"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(RUN), *arguments],
        cwd=REPOSITORY, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def results_of(fault: str, *scenarios: str) -> list[dict[str, Any]]:
    chosen = [part for name in scenarios for part in ("--scenario", name)]
    done = run("--lang", "python", "--command", f"{LIAR} {fault}", "--json", *chosen)
    results: list[dict[str, Any]] = json.loads(done.stdout)["results"]
    outcomes = {result["outcome"] for result in results}
    assert done.returncode == (0 if outcomes == {"passed"} else 1), done.stderr
    return results


def test_an_honest_adapter_passes() -> None:
    names = ["vectors-messages", "lifecycle", "order", "batches"]
    results = results_of("none", *names)
    assert [(one["scenario"], one["outcome"]) for one in results] == [
        (name, "passed") for name in names
    ]


@pytest.mark.parametrize(
    ("fault", "scenario", "said"),
    [
        ("wrong-order", "order", "seen.texts == "),
        ("lost-message", "lifecycle", "should have 1 entries"),
        ("lost-message", "order", ""),
        ("swallowed-error", "errors", "it succeeded with"),
        ("swallowed-error", "deadlines", "expected Timeout"),
        ("one-error-for-all", "errors", "expected QueueNotFound"),
        ("everything-retryable", "errors", "must have retryable False"),
        ("errors-without-text", "errors", "came without a text"),
        ("partial-failure-hidden", "batches", "answer.results[1] has no 'error'"),
        ("attempts-not-told", "attempts", "attempt_count is 0, expected 1"),
        ("yields-what-was-acked", "late-ack", "nothing.messages == [] does not hold"),
        ("drain-always-done", "drain-late", "it succeeded with {}, expected Timeout"),
        ("one-result-too-many", "nothing", "stored.results == [] does not hold"),
        ("swallowed-error", "not-leader-circle", "expected NotLeader"),
        ("swallowed-error", "no-reconnect", "expected ConnectionLost or ConnectFailed"),
        ("swallowed-error", "sent-again", "expected ConnectionLost"),
        ("swallowed-error", "limits", "expected InvalidArgument"),
        ("one-error-for-all", "deleted", "expected QueueNotFound"),
        ("trace-not-read", "trace", "does not hold"),
        ("one-trace-for-all", "trace", "sorted((m.headers.i, m.traceparent[-4])"),
        ("logs-the-payload", "log", "not any(secret in line.text"),
        ("wrong-byte", "vectors-messages", "encode 'handshake without a key'"),
        ("malformed-accepted", "vectors-malformed", "29 vectors differ"),
        ("answers-twice", "lifecycle", "which is not under way"),
        ("prints-to-stdout", "lifecycle", "what is no response"),
        ("hoards-memory", "slow-consumer", "after.rss_bytes - before.rss_bytes"),
        (
            "falls-back-to-plaintext",
            "tls-to-plaintext",
            "it succeeded with {}, expected ConnectFailed",
        ),
    ],
)
def test_a_planted_fault_is_found(fault: str, scenario: str, said: str) -> None:
    (result,) = results_of(fault, scenario)
    assert result["outcome"] == "failed"
    assert said in result["detail"]


def test_an_adapter_that_cannot_be_started_fails_the_run() -> None:
    done = run("--lang", "go", "--command", "no-such-program", "--scenario", "lifecycle", "--json")
    (result,) = json.loads(done.stdout)["results"]
    assert (done.returncode, result["outcome"]) == (1, "absent")


def test_an_adapter_that_ends_early_fails_instead_of_hanging() -> None:
    done = run("--lang", "go", "--command", "true", "--scenario", "vectors-states", "--json")
    (result,) = json.loads(done.stdout)["results"]
    assert result["outcome"] == "failed"
    assert "closed its stdout" in result["detail"] or "cannot be" in result["detail"]


def test_the_page_is_written_of_whole_runs_only() -> None:
    done = run("--markdown", "--lang", "python", "--scenario", "lifecycle")
    assert done.returncode == 2 and "--markdown writes the whole matrix" in done.stderr


def test_unknown_names_are_told() -> None:
    done = run("--scenario", "no-such-scenario")
    assert done.returncode == 2 and "no scenario 'no-such-scenario'" in done.stderr
    done = run("--lang", "cobol", "--list")
    assert done.returncode in (0, 2)
    done = run("--lang", "cobol")
    assert done.returncode == 2 and "no adapter 'cobol'" in done.stderr
