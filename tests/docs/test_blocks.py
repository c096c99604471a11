"""Every block of code in the documentation is compiled or parsed by its own language.

Most are also run: by test_snippets, test_walk, the pages' own tests, and the SDKs'. A block in a
language that nothing understands fails here, and so does a fence on a page that nobody looks at.
What ```console shows as typed is read by the shell, and `fila` in it by its own command line;
```text is for reading.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import pytest
import yaml
from lupa.lua54 import LuaRuntime

from fila.cli.main import parser as command_line
from fila.server.main import parser as server_command_line

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [
        *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "spec").glob("*.md"),
        *(ROOT / "sdks").glob("*/*.md"),
    ]
)
FENCE = re.compile(r"^( *)```([^\n`]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
# Blocks for people: what was typed and shown, drawings, bytes, parts of a protocol.
FOR_READING = {"", "text"}
# Each has a test of its own that reads the page and compares, compiles or runs its blocks.
ELSEWHERE = {
    "hex": ("spec/fibp.md", "tests/wire/test_vectors.py"),
    "proto": ("CONTRIBUTING.md", "tests/docs/test_recipe.py"),
    "sql": ("docs/pipeline/source.md", "tests/spark/source/test_batch.py"),
}
# A shell in which every command is understood and none is carried out: `fila` writes down what it
# was given, everything else is not found, and that is no error.
NOTHING_IS_RUN = """\
PATH=/nowhere
command_not_found_handle() { return 0; }
kill() { return 0; }
seq() { echo 1; }
fila() { printf '%s\\0' fila "$@" $'\\n' >> "$SEEN"; }
fila-server() { printf '%s\\0' fila-server "$@" $'\\n' >> "$SEEN"; }
"""
# Compiled, and mostly run, by the SDK's own tests; each is named where it does so.
OWN_TESTS = {
    "go": "sdks/go/examples_test.go",
    "java": "sdks/java/src/test/java/dev/faisca/fila/ReadmeTest.java",
    "js": "sdks/js/test/examples.test.ts",
    "ruby": "sdks/ruby/test/integration/examples_test.rb",
    "rust": "sdks/rust/src/lib.rs",
}


class Block(NamedTuple):
    page: str
    line: int
    language: str
    info: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line} ({self.language})"


def blocks() -> list[Block]:
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for fence in FENCE.finditer(text):
            indent, info, body = fence.groups()
            language = re.split(r"[\s,]", info.strip(), maxsplit=1)[0]
            line = text[: fence.start()].count("\n") + 1
            body = re.sub(rf"^{indent}", "", body, flags=re.MULTILINE)
            found.append(Block(page.relative_to(ROOT).as_posix(), line, language, info, body))
    return found


BLOCKS = blocks()


def of(*languages: str) -> list[Any]:
    chosen = [block for block in BLOCKS if block.language in languages]
    assert chosen, languages
    return [pytest.param(block, id=str(block)) for block in chosen]


def test_every_language_is_understood_by_something() -> None:
    known = FOR_READING | set(ELSEWHERE) | set(OWN_TESTS)
    known |= {"bash", "sh", "console", "python", "py", "lua", "json", "toml", "yaml", "xml"}
    assert len(BLOCKS) > 200
    unknown = [str(block) for block in BLOCKS if block.language not in known]
    assert unknown == []


def test_no_fence_escapes() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    for name in listed:
        text = (ROOT / name).read_text(encoding="utf-8")
        marks = len(re.findall(r"^[ >]*(?:```|~~~)", text, re.MULTILINE))
        seen = sum(block.page == name for block in BLOCKS)
        assert marks == 2 * seen, f"{name}: {marks} marks of a fence, {seen} blocks are looked at"


@pytest.mark.parametrize("block", of("python", "py"))
def test_python_compiles(block: Block) -> None:
    if block.page == "CONTRIBUTING.md" and " " in block.info:
        return  # parts of files, put together by tests/docs/test_recipe.py
    assert compile(block.text, str(block), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT).co_code


@pytest.mark.parametrize("block", of("bash", "sh", "console"))
def test_the_shell_and_the_command_line_understand_what_is_typed(
    block: Block, tmp_path: Path
) -> None:
    text = typed(block)
    done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    if "fila" in text:
        for name, *words in calls(text, tmp_path):
            understood(server_command_line() if name == "fila-server" else command_line(), words)


def typed(block: Block) -> str:
    """What a person types: in ```console the lines after a prompt, and those they go on in."""
    if block.language != "console":
        return re.sub(r"^\$ ", "", block.text, flags=re.MULTILINE)
    lines, goes_on = [], False
    for line in block.text.splitlines():
        if goes_on or line.startswith(("$ ", "# ")):
            lines.append(line if goes_on else line[2:])
            goes_on = line.endswith("\\")
    assert lines, f"{block} shows nothing that is typed"
    return "\n".join(lines) + "\n"


def calls(text: str, place: Path) -> list[list[str]]:
    seen = place / "seen"
    seen.touch()
    bash = shutil.which("bash") or "bash"
    subprocess.run(
        [bash, "-c", NOTHING_IS_RUN + text],
        cwd=place,
        env={"SEEN": str(seen), "HOME": str(place)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
    )
    return [call.split("\0")[:-1] for call in seen.read_text().split("\n\0")[:-1]]


def understood(command: argparse.ArgumentParser, words: list[str]) -> None:
    said, code = io.StringIO(), 0
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            command.parse_args(words)
    except SystemExit as ended:
        code = int(ended.code or 0)
    assert code == 0, f"{words}: {said.getvalue()}"


def test_what_the_command_line_does_not_know_is_noticed(tmp_path: Path) -> None:
    block = Block(
        "page.md", 1, "console", "console", "$ fila queue make a \\\n    --swiftly\nmade\n"
    )
    assert calls(typed(block), tmp_path) == [["fila", "queue", "make", "a", "--swiftly"]]
    with pytest.raises(AssertionError, match="there is no command 'make'"):
        understood(command_line(), ["queue", "make", "a"])


@pytest.mark.parametrize("block", of("lua"))
def test_lua_compiles(block: Block) -> None:
    assert LuaRuntime().compile(block.text) is not None


@pytest.mark.parametrize("block", of("json", "toml", "yaml"))
def test_data_parses(block: Block) -> None:
    if block.language == "toml":
        assert isinstance(tomllib.loads(block.text), dict)
    elif block.language == "yaml":
        assert yaml.safe_load(block.text) is not None
    else:
        for document in documents(block.text):
            json.loads(document)


def documents(text: str) -> list[str]:
    """One document, or one per line; what an ellipsis leaves out is left out."""
    text = text.replace("…", "0") if re.search(r"[:\[,]\s*…", text) else text
    lines = text.strip().splitlines()
    try:
        json.loads(text)
    except ValueError:
        return lines
    return [text]


@pytest.mark.parametrize("block", of("xml"))
def test_xml_parses(block: Block) -> None:
    assert ElementTree.fromstring(f"<block>{block.text}</block>").iter()


@pytest.mark.parametrize("block", of("js"))
def test_javascript_parses(block: Block, tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not installed")
    module = "require(" not in block.text
    path = tmp_path / ("block.mjs" if module else "block.cjs")
    path.write_text(block.text)
    done = subprocess.run([node, "--check", str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("language", sorted(ELSEWHERE))
def test_blocks_with_a_test_of_their_own_stand_on_its_page_alone(language: str) -> None:
    page, test = ELSEWHERE[language]
    assert {block.page for block in BLOCKS if block.language == language} == {page}
    text = (ROOT / test).read_text(encoding="utf-8")
    assert Path(page).name in text and "```" in text


def test_sdks_compile_the_blocks_of_their_own_pages() -> None:
    for language, test in OWN_TESTS.items():
        assert "README" in (ROOT / test).read_text(encoding="utf-8"), test
        elsewhere = [
            str(block)
            for block in BLOCKS
            if block.language == language and not block.page.startswith(f"sdks/{language}/")
        ]
        assert language == "js" or elsewhere == []
