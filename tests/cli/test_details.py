"""What a person is told and asked: before a deletion, of a queue, when nothing comes or is new."""

from __future__ import annotations

import os
import pty
import subprocess

import pytest

from tests.cli.conftest import COMMAND


def at_terminal(broker: str, *words: str, answer: str = "") -> tuple[int, str]:
    """The command with a person at the terminal, who types an answer."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "FILA_ADDR": broker}
    with subprocess.Popen(
        [*COMMAND, *words], stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    ) as process:
        os.close(theirs)
        os.write(ours, f"{answer}\n".encode())
        told = b""
        try:
            while some := os.read(ours, 4_096):
                told += some
        except OSError:
            pass  # it has ended, and so the terminal
        code = process.wait(60)
    os.close(ours)
    return code, told.decode()


def test_a_deletion_asks_at_a_terminal_and_not_in_a_script(fila, broker, queue) -> None:
    fila("enqueue", queue, "--payload", "x", "--count", "3")
    code, told = at_terminal(broker, "queue", "delete", queue, answer="n")
    assert code == 1 and "3 waiting messages? [y/N]" in told and "Nothing was deleted" in told
    assert fila("queue", "inspect", queue).code == 0
    assert at_terminal(broker, "queue", "delete", queue, answer="y")[0] == 0
    assert fila("queue", "inspect", queue).code == 1


def test_a_deletion_that_is_told_yes_does_not_ask(broker, queue) -> None:
    code, told = at_terminal(broker, "queue", "delete", queue, "--yes")
    assert code == 0 and "[y/N]" not in told


def test_inspect_tells_age_settings_and_hooks(fila, queue) -> None:
    hook = "function on_enqueue(msg)\n  return {}\nend"
    fila("queue", "update", queue, "--visibility-timeout", "45s", "--on-enqueue", hook)
    told = fila("queue", "inspect", queue)
    assert "visibility_timeout_ms: 45.0 s" in told.out and "on_enqueue: 3 lines" in told.out
    assert "created: " in told.out and ", just now" in told.out
    document = fila("queue", "inspect", queue, "--json").document
    assert document["settings"]["on_enqueue"] == hook and document["created_ms"] > 0


@pytest.mark.parametrize(
    ("prepare", "why"),
    [
        ((), "Nothing waits in"),
        (
            ("queue", "pause", "NAME", "--reason", "maintenance"),
            "is paused by anybody: maintenance",
        ),
    ],
)
def test_consume_says_why_nothing_comes(fila, broker, queue, prepare, why) -> None:
    if prepare:
        fila("enqueue", queue, "--payload", "x")
        fila(*[queue if word == "NAME" else word for word in prepare])
    code, told = at_terminal(broker, "consume", queue)
    fila("queue", "resume", queue)
    assert code == 0 and "Nothing came." in told and why in " ".join(told.split())


def test_consume_says_that_what_waits_is_delayed(fila, broker, queue) -> None:
    fila("enqueue", queue, "--payload", "x", "--delay", "1h")
    assert "for the delay of a retry" in " ".join(at_terminal(broker, "consume", queue)[1].split())


def test_enqueue_says_what_was_there_already(fila, queue) -> None:
    first = fila("enqueue", queue, "--payload", "x", "--idempotency-key", "k", "--json").document
    assert first["duplicate"] is False
    again = fila("enqueue", queue, "--payload", "x", "--idempotency-key", "k")
    assert again.code == 0 and "knows the idempotency key" in again.out and first["id"] in again.out
    more = fila("enqueue", queue, "--payload", "x", "--idempotency-key", "k", "--count", "3")
    assert "Enqueued 2 messages" in more.out and "1 were there" in more.out
    told = fila("enqueue", queue, "--payload", "x", "--idempotency-key", "k", "--json").document
    assert told == {"queue": queue, "id": first["id"], "duplicate": True}
