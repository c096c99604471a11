"""Every SDK's five-minute start, followed as a newcomer would: the package as it would be
published, a directory of its own, the README's program as it stands, and one real broker for all.

    python sdks/five_minutes.py                 all languages
    python sdks/five_minutes.py --lang rust     one; repeatable

The packages are made from this checkout by the lines of docs/install.md, because what is on the
registries is another version; the README's own command for fetching it is looked up, so that it
names the right one. Exit code 0 when
every program ran and served its tenants in turns.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

SDKS = Path(__file__).resolve().parent
sys.path.insert(0, str(SDKS.parent / "src"))

from fila.testing import broker  # noqa: E402

LIMIT_S = 600.0  # a compiler may have to build everything
LINES = 4  # so many are enough to see both tenants


class StartError(Exception):
    """The README cannot be followed; the text says why."""


class Start:
    """The five-minute start of one README."""

    def __init__(self, language: str, tag: str, fetch: str) -> None:
        """`fetch` is how the README fetches the package, `tag` the language of its program."""
        text = (SDKS / language / "README.md").read_text(encoding="utf-8")
        if fetch not in text:
            raise StartError(f"README.md does not say {fetch!r}")
        _, _, section = text.partition("\n## Five minutes")
        found = re.search(rf"```{tag}\n(.*?)```", section, re.DOTALL)
        if found is None:
            raise StartError("README.md has no program in its five minutes")
        self.program = found[1]


def go(place: Path, address: str) -> list[str]:
    start = Start("go", "go", "go get github.com/faiscadev/fila/sdks/go\n")
    _write(place / "main.go", start, address)
    _run(place, "go", "mod", "init", "example")
    _install(place, "Go")
    _run(place, "go", "build", "-o", "program", ".")
    return _said(place, "./program")


def js(place: Path, address: str) -> list[str]:
    start = Start("js", "js run", "npm install @fila/client\n")
    (place / "package.json").write_text('{"name": "example", "private": true, "type": "module"}')
    _install(place, "JavaScript")
    _write(place / "main.js", start, address)
    return _said(place, "node", "main.js")


def java(place: Path, address: str) -> list[str]:
    start = Start("java", "java", "<artifactId>fila-client</artifactId>")
    _install(place, "Java")
    (jar,) = [
        path for path in (SDKS / "java" / "target").glob("fila-client-*.jar")
        if not path.stem.endswith(("sources", "javadoc"))
    ]  # fmt: skip
    found = re.search(r"class (\w+)", start.program)
    assert found is not None
    _write(place / f"{found[1]}.java", start, address)
    return _said(place, "java", "-cp", str(jar), f"{found[1]}.java")


def rust(place: Path, address: str) -> list[str]:
    start = Start("rust", "rust,no_run", "$ cargo add fila-client futures-util\n")
    os.environ.setdefault("CARGO_TARGET_DIR", str(SDKS / "rust" / "target"))
    _run(place, "cargo", "new", "--quiet", "--vcs", "none", "hello-fila")
    project = place / "hello-fila"
    _install(project, "Rust")
    _run(project, "cargo", "add", "--quiet", "futures-util")
    _run(project, "cargo", "add", "--quiet", "tokio", "--features", "macros,rt-multi-thread")
    _write(project / "src" / "main.rs", start, address)
    _run(project, "cargo", "build", "--quiet")
    return _said(project, "cargo", "run", "--quiet")


def ruby(place: Path, address: str) -> list[str]:
    start = Start("ruby", "ruby", "gem install fila-client\n")
    os.environ["GEM_HOME"] = str(place / "gems")
    _install(place, "Ruby")
    _write(place / "main.rb", start, address)
    return _said(place, "ruby", "main.rb")


STARTS: dict[str, Callable[[Path, str], list[str]]] = {
    "go": go, "js": js, "java": java, "rust": rust, "ruby": ruby,
}  # fmt: skip


def _write(path: Path, start: Start, address: str) -> None:
    if "localhost:5555" not in start.program:
        raise StartError("the program does not connect to localhost:5555")
    path.write_text(start.program.replace("localhost:5555", address), encoding="utf-8")


def _install(place: Path, language: str) -> None:
    """Type what docs/install.md says for a client from a checkout."""
    page = (SDKS.parent / "docs" / "install.md").read_text(encoding="utf-8")
    found = re.search(rf"^\| {language} \| `([^`]+)`", page, re.MULTILINE)
    if found is None:
        raise StartError(f"docs/install.md does not say how {language} gets its client")
    _run(place, "env", f"FILA={SDKS.parent}", "bash", "-euc", found[1])


def _run(place: Path, *command: str) -> None:
    done = subprocess.run(
        command, cwd=place, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    if done.returncode:
        raise StartError(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr)[-3000:]}")


def _said(place: Path, *command: str) -> list[str]:
    """The first lines of a program; one that waits for more is ended after them."""
    with (place / "stderr").open("w+") as errors:
        process = subprocess.Popen(
            command, cwd=place, stdout=subprocess.PIPE, stderr=errors, text=True,
            start_new_session=True,
        )  # fmt: skip
        assert process.stdout is not None
        lines = [line for line in (process.stdout.readline() for _ in range(LINES)) if line]
        if len(lines) < LINES and process.wait(60) != 0:
            errors.seek(0)
            raise StartError(f"the program failed:\n{errors.read()[-3000:]}")
        os.killpg(process.pid, 9) if process.poll() is None else None
        process.stdout.close()
        process.wait(60)
    return lines


def _checked(lines: list[str]) -> None:
    """The tenant with one message has not waited for the other's."""
    tenants = [re.split(r"\W", line)[0] for line in lines]
    waited = len(tenants) == LINES and tenants.count(tenants[-1]) == 1
    if len(set(tenants)) != 2 or waited:
        raise StartError(f"the tenants were not served in turns: {lines}")


def main() -> int:
    parser = argparse.ArgumentParser(description="Follow every SDK's five-minute start.")
    parser.add_argument("--lang", action="append", choices=STARTS, help="one; repeatable")
    chosen = parser.parse_args().lang or list(STARTS)
    failed = 0
    with broker() as running:  # one for all, as the quick start's reader has
        for language in chosen:
            started = time.monotonic()
            with tempfile.TemporaryDirectory(prefix="fila-start-") as place:
                try:
                    _checked(STARTS[language](Path(place), running.address))
                except (StartError, OSError, subprocess.TimeoutExpired) as why:
                    failed += 1
                    print(f"{language}: {why}", flush=True)
                else:
                    print(f"{language}: done in {time.monotonic() - started:.0f} s", flush=True)
    print(f"{len(chosen) - failed} of {len(chosen)} five-minute starts passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
