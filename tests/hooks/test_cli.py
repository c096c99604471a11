"""`fila hooks test`, run in this process through its own parser."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from fila.cli import hooks
from fila.cli.failure import EXIT_USAGE, Failure

POLICY = """
function on_enqueue(msg)
  return {
    fairness_key = msg.headers.tenant:lower(),
    weight = fila.get("weight"),
    throttle_keys = { msg.headers.provider },
  }
end
function on_failure(msg)
  return { action = msg.attempts < 3 and "retry" or "dlq", delay_ms = 250 }
end
"""
SAMPLES = """
{"headers": {"tenant": "Acme", "provider": "stripe"}, "payload": "hello"}
{"headers": {"tenant": "Globex"}, "attempts": 3, "error": "HTTP 503"}
"""


@pytest.fixture
def policy(tmp_path: Path) -> str:
    path = tmp_path / "policy.lua"
    path.write_text(POLICY)
    return f"@{path}"


@pytest.fixture
def samples(tmp_path: Path) -> str:
    path = tmp_path / "sample.jsonl"
    path.write_text(SAMPLES)
    return str(path)


def fila(*arguments: str) -> int:
    root = argparse.ArgumentParser(prog="fila")
    root.add_argument("--json", action="store_true")
    hooks.add_parser(root.add_subparsers(dest="command"))
    return hooks.run(root.parse_args(arguments))


def test_it_shows_what_on_enqueue_would_assign(
    policy: str, samples: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = fila(
        "hooks", "test", "--on-enqueue", policy, "--messages", samples, "--config", "weight=4"
    )
    assert code == 0
    header, first, second, summary = capsys.readouterr().out.splitlines()
    assert header.split() == [
        "MESSAGE",
        "FAIRNESS_KEY",
        "WEIGHT",
        "THROTTLE_KEYS",
        "TIME_US",
        "MEMORY_BYTES",
        "PROBLEM",
    ]
    assert first.split()[:4] == ["1", "acme", "4", "stripe"]
    assert second.split()[:4] == ["2", "globex", "4", "-"]
    assert summary.startswith("on_enqueue: 2 messages, 0 failed; median ")


def test_it_shows_what_on_failure_would_decide(
    policy: str, samples: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fila("hooks", "test", "--on-failure", policy, "--messages", samples) == 0
    header, first, second, _ = capsys.readouterr().out.splitlines()
    assert header.split()[:3] == ["MESSAGE", "ACTION", "DELAY_MS"]
    assert first.split()[:3] == ["1", "retry", "250"]
    assert second.split()[:3] == ["2", "dlq", "0"]


def test_a_message_the_script_fails_on_is_shown_and_the_exit_code_is_1(
    policy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fila("hooks", "test", "--on-enqueue", policy) == 1
    out = capsys.readouterr().out
    assert "on_enqueue:4: attempt to index a nil value (field 'tenant')" in out
    assert "1 message, 1 failed" in out


def test_json_holds_everything(
    policy: str, samples: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("hooks", "test", "--on-enqueue", policy, "--on-failure", policy)
    assert fila("--json", *arguments, "--messages", samples) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["failed"] == 0
    first = document["messages"][0]
    assert first["time_us"] > 0
    assert first["memory_bytes"] > 0
    assert {key: first[key] for key in ("message", "hook", "fairness_key", "weight")} == {
        "message": 1,
        "hook": "on_enqueue",
        "fairness_key": "acme",
        "weight": 1,
    }
    assert first["throttle_keys"] == ["stripe"]
    assert first["problem"] is None
    last = document["messages"][3]
    assert (last["hook"], last["action"], last["delay_ms"]) == ("on_failure", "dlq", 0)


def test_messages_may_come_from_stdin(
    policy: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", iter(['{"headers": {"tenant": "Piped"}}\n']))
    assert fila("hooks", "test", "--on-enqueue", policy, "--messages", "-") == 0
    assert "piped" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give --on-enqueue, --on-failure or both"),
        (("--on-enqueue", "x", "--config", "no-value"), "--config needs KEY=VALUE"),
    ],
)
def test_a_command_that_makes_no_sense_is_a_usage_error(
    arguments: tuple[str, ...], message: str
) -> None:
    with pytest.raises(Failure) as refusal:
        fila("hooks", "test", *arguments)
    assert refusal.value.exit_code == EXIT_USAGE
    assert message in refusal.value.message


def test_a_script_or_sample_that_cannot_be_read_is_told(tmp_path: Path, policy: str) -> None:
    latin = tmp_path / "latin.lua"
    latin.write_bytes(b"-- \xe9")
    for arguments, message in (
        (("--on-enqueue", "@/no/such.lua"), "cannot read /no/such.lua"),
        (("--on-enqueue", f"@{latin}"), "is not UTF-8 text"),
        (("--on-enqueue", policy, "--messages", "/no/such.jsonl"), "cannot read /no/such.jsonl"),
        (("--on-enqueue", policy, "--messages", str(latin)), "is not UTF-8 text"),
        (("--on-enqueue", "x y"), "on_enqueue does not compile: on_enqueue:1: syntax error"),
    ):
        with pytest.raises(Failure) as refusal:
            fila("hooks", "test", *arguments)
        assert message in refusal.value.message
