"""`fila queue update|settings`, `fila queue create --like` and `fila hooks deploy|…|rollback`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Fila = Callable[..., Any]

BY_TENANT = "function on_enqueue(msg) return { fairness_key = msg.headers.tenant } end"
BY_PLAN = "function on_enqueue(msg)\n  return { fairness_key = msg.headers.plan }\nend"
GIVE_UP = 'function on_failure(msg) return { action = "dlq" } end'


@pytest.fixture
def made(fila: Fila, queue: str) -> str:
    name = f"{queue}-changing"
    assert fila("queue", "create", name, "--on-enqueue", BY_TENANT).code == 0
    return name


def settings(fila: Fila, queue: str, *more: str) -> dict[str, str]:
    found: dict[str, str] = fila("queue", "settings", queue, "--json", *more).document["settings"]
    return found


def test_an_update_changes_what_it_names_and_says_the_version(fila: Fila, made: str) -> None:
    done = fila("queue", "update", made, "--max-attempts", "5", "--visibility-timeout", "2m")
    assert done.out == f'Queue "{made}" has version 2 now\n'
    found = settings(fila, made)
    assert found["on_enqueue"] == BY_TENANT
    assert (found["max_attempts"], found["visibility_timeout_ms"]) == ("5", "120000")
    again = fila("queue", "update", made, "--max-attempts", "5")
    assert again.out == f'Queue "{made}" is so already (version 2)\n'
    told = fila("queue", "settings", made).out
    assert "visibility_timeout_ms: 2 min 0 s" in told and "on_enqueue: 1 line" in told


def test_an_update_needs_something_to_change(fila: Fila, made: str) -> None:
    done = fila("queue", "update", made)
    assert (done.code, "name a setting" in done.err) == (2, True)


def test_a_version_that_is_not_there_any_more_is_refused(fila: Fila, made: str) -> None:
    fila("queue", "update", made, "--max-attempts", "5")
    done = fila("queue", "update", made, "--max-attempts", "6", "--expect-version", "1")
    assert done.code == 1
    assert "has version 2, not 1" in done.err


def test_a_script_that_does_not_compile_leaves_the_old_one(fila: Fila, made: str) -> None:
    done = fila("hooks", "deploy", made, "--on-enqueue", "function on_enqueue(")
    assert done.code == 1
    assert "does not compile" in done.err
    assert settings(fila, made)["on_enqueue"] == BY_TENANT


def test_a_script_that_fails_for_the_queues_messages_needs_a_word(fila: Fila, made: str) -> None:
    for _ in range(3):
        fila("enqueue", made, "--header", "tenant=acme", "--payload", "x")
    broken = "function on_enqueue(msg) return { fairness_key = string.upper(msg.headers.x) } end"
    done = fila("hooks", "deploy", made, "--on-enqueue", broken)
    assert done.code == 1
    assert "fails for a message like those of the queue" in done.err
    assert fila("hooks", "deploy", made, "--on-enqueue", broken, "--unrehearsed").code == 0


def test_hooks_are_deployed_compared_and_brought_back(
    fila: Fila, made: str, tmp_path: Path
) -> None:
    file = tmp_path / "policy.lua"
    file.write_text(BY_PLAN)
    done = fila("hooks", "deploy", made, "--on-enqueue", f"@{file}", "--note", "by plan")
    assert done.out == f'Queue "{made}" has version 2 now\n'
    fila("queue", "update", made, "--max-attempts", "3")
    assert BY_PLAN.splitlines()[1] in fila("hooks", "show", made).out
    assert fila("hooks", "diff", made).out == "-max_attempts: no limit\n+max_attempts: 3\n"
    difference = fila("hooks", "diff", made, "1", "2").out
    assert f"-{BY_TENANT}" in difference and "+  return { fairness_key" in difference
    history = fila("hooks", "history", made).out.splitlines()
    assert [line.split()[0] for line in history[1:]] == ["3", "2", "1"]
    assert "on_enqueue" in history[2] and history[2].endswith("by plan")
    assert fila("hooks", "rollback", made).out == f'Queue "{made}" has version 4 now\n'
    found = settings(fila, made)
    assert (found["on_enqueue"], found["max_attempts"]) == (BY_TENANT, "3")
    versions = fila("hooks", "history", made, "--json").document["versions"]
    assert versions[0]["note"] == "back to the hooks of version 1"


def test_a_rollback_without_other_hooks_says_so(fila: Fila, made: str) -> None:
    done = fila("hooks", "rollback", made)
    assert (done.code, "had no other hooks" in done.err) == (1, True)
    assert fila("hooks", "diff", made).code == 1


def test_a_whole_version_comes_back(fila: Fila, made: str) -> None:
    fila("queue", "update", made, "--max-attempts", "3", "--no-on-enqueue")
    fila("queue", "update", made, "--from-version", "1")
    found = settings(fila, made)
    assert (found["on_enqueue"], found["max_attempts"]) == (BY_TENANT, "0")
    assert settings(fila, made, "--version", "2")["max_attempts"] == "3"


def test_a_queue_like_another_has_its_settings_and_what_is_named(fila: Fila, made: str) -> None:
    fila("queue", "update", made, "--fail-mode", "reject", "--max-attempts", "4")
    like = f"{made}-like"
    assert fila("queue", "create", like, "--like", made, "--on-failure", GIVE_UP).code == 0
    found = settings(fila, like)
    assert found == {**settings(fila, made), "on_failure": GIVE_UP}


def test_a_value_out_of_bounds_is_told(fila: Fila, made: str) -> None:
    done = fila("queue", "update", made, "--hook-memory", "1")
    assert (done.code, "hook_memory_limit_bytes" in done.err) == (1, True)
    assert fila("queue", "update", made, "--max-attempts", "x").code == 2
