"""`fila apply` and `fila queue export`: queues as a file declares them."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.cli import declared

Fila = Callable[..., Any]

BY_TENANT = "function on_enqueue(msg)\n  return { fairness_key = msg.headers.tenant }\nend\n"
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=80)


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], str]:
    """Puts a declaration beside a script; the file's name."""
    (tmp_path / "policy.lua").write_text(BY_TENANT)

    def put(text: str) -> str:
        path = tmp_path / "queues.toml"
        path.write_text(text)
        return str(path)

    return put


def settings(fila: Fila, queue: str) -> dict[str, str]:
    found: dict[str, str] = fila("queue", "settings", queue, "--json").document["settings"]
    return found


def test_queues_are_made_changed_and_left_alone(
    fila: Fila, queue: str, write: Callable[[str], str]
) -> None:
    name = f"{queue}-declared"
    file = write(
        f'[queues.{name}]\non_enqueue = "@policy.lua"\nvisibility_timeout_ms = "2m"\n'
        f'fail_mode = "reject"\n\n[config]\n"throttle.{name}" = "10,20"\n'
    )
    dry = fila("apply", file, "--dry-run")
    assert dry.code == 2
    assert f'queue "{name}" would be created' in dry.out
    assert f'config "throttle.{name}": not set -> 10,20' in dry.out
    assert fila("queue", "settings", name).code == 1
    done = fila("apply", file)
    assert (done.code, f'queue "{name}" created' in done.out) == (0, True)
    found = settings(fila, name)
    assert (found["on_enqueue"], found["visibility_timeout_ms"]) == (BY_TENANT, "120000")
    assert found["fail_mode"] == "reject"
    assert fila("config", "get", f"throttle.{name}").out.endswith(": 10,20\n")
    for again in (fila("apply", file, "--dry-run"), fila("apply", file)):
        assert (again.code, again.out) == (0, "1 queue: all is as declared\n")


def test_only_what_the_file_names_changes_and_an_empty_text_takes_away(
    fila: Fila, queue: str, write: Callable[[str], str]
) -> None:
    name = f"{queue}-declared"
    fila("queue", "create", name, "--on-enqueue", BY_TENANT, "--max-attempts", "7")
    file = write(f'[queues.{name}]\non_enqueue = ""\n')
    dry = fila("apply", file, "--dry-run")
    assert (dry.code, "-function on_enqueue(msg)" in dry.out) == (2, True)
    document = fila("apply", file, "--note", "why", "--json").document
    (told,) = document["queues"]
    assert (told["action"], told["version"]) == ("update", 2)
    assert told["changes"] == [{"setting": "on_enqueue", "old": BY_TENANT, "new": ""}]
    assert settings(fila, name)["max_attempts"] == "7"
    assert fila("hooks", "history", name, "--json").document["versions"][0]["note"] == "why"


def test_the_cost_goes_through_a_file_and_is_kept_for_life(
    fila: Fila, queue: str, write: Callable[[str], str]
) -> None:
    name = f"{queue}-sized"
    file = write(f'[queues.{name}]\ncost = "bytes"\nmax_attempts = 3\n')
    assert fila("apply", file).code == 0
    assert settings(fila, name)["cost"] == "bytes"
    exported = fila("queue", "export", name).out
    assert 'cost = "bytes"\n' in exported
    assert fila("apply", write(exported), "--dry-run").code == 0
    assert fila("queue", "create", f"{name}-too", "--like", name).code == 0
    assert settings(fila, f"{name}-too")["cost"] == "bytes"
    other = write(f'[queues.{name}]\ncost = "messages"\nmax_attempts = 4\n')
    for refused in (fila("apply", other, "--dry-run"), fila("apply", other)):
        assert refused.code == 1
        assert f'queue "{name}" was made with the cost "bytes" and keeps it' in refused.err
    assert settings(fila, name)["max_attempts"] == "3"


def test_what_was_exported_is_what_is_there(
    fila: Fila, queue: str, write: Callable[[str], str]
) -> None:
    name = f"{queue}.exported"
    fila("queue", "create", name, "--on-enqueue", BY_TENANT, "--max-attempts", "7")
    text = fila("queue", "export", name).out
    assert "'''\nfunction on_enqueue(msg)\n" in text
    assert fila("apply", write(text), "--dry-run").code == 0
    everything = fila("queue", "export", "--json").document["queues"]
    assert name in everything and f"{name}.dlq" not in everything


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("queues = ", "is not TOML"),
        ("[topics.a]", 'there is no table "topics"'),
        ("[queues.a]\ncolour = 'red'", "there is no such setting"),
        ("[queues.a]\nmax_attempts = 1.5", "a text or a whole number"),
        ("[queues.a]\nmax_attempts = true", "a text or a whole number"),
        ("[queues.a]\nvisibility_timeout_ms = 'soon'", "is not a duration"),
        ("[queues.a]\non_enqueue = '@nowhere.lua'", "cannot read"),
        ("[config]\na = 5", "a text in quotes"),
        ("queues = 5", "has to be a table"),
    ],
)
def test_a_file_that_is_wrong_is_told_before_anything_is_done(
    fila: Fila, write: Callable[[str], str], text: str, says: str
) -> None:
    done = fila("apply", write(text))
    assert done.code == 1
    assert says in done.err


def test_a_hook_that_does_not_compile_ends_it(
    fila: Fila, queue: str, write: Callable[[str], str]
) -> None:
    name = f"{queue}-declared"
    done = fila("apply", write(f"[queues.{name}]\non_enqueue = 'function on_enqueue('\n"))
    assert (done.code, "does not compile" in done.err) == (1, True)


@given(
    st.dictionaries(
        TEXT.filter(bool),
        st.fixed_dictionaries({"on_enqueue": TEXT, "on_failure": TEXT, "fail_mode": TEXT}),
        max_size=3,
    ),
    st.dictionaries(TEXT, TEXT, max_size=3),
)
def test_every_text_comes_back_from_the_file(
    queues: dict[str, dict[str, str]], config: dict[str, str]
) -> None:
    found = tomllib.loads(declared.toml(queues, config))
    for name, given_settings in queues.items():
        read = found["queues"][name]
        kept = {one: text for one, text in given_settings.items() if text}
        assert {one: str(text) for one, text in read.items()} == kept
    assert found.get("config", {}) == config
