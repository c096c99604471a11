"""Every block of code in the documentation is compiled or parsed by its own language.

Most are also run: by test_snippets, test_walk, the pages' own tests, and the SDKs'. A block in a
language that nothing understands fails here. ```console and ```text are for reading.
"""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from lupa.lua54 import LuaRuntime

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [
        *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "spec").glob("*.md"),
        *(ROOT / "sdks").glob("*/README.md"),
    ]
)
FENCE = re.compile(r"^( *)```([^\n`]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
# Blocks for people: what was typed and shown, drawings, bytes, parts of a protocol.
FOR_READING = {"", "console", "text", "hex"}
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
    known = FOR_READING | set(OWN_TESTS) | {"bash", "sh", "python", "py", "lua", "json", "toml"}
    known |= {"yaml", "xml", "sql", "proto", "mermaid"}
    assert len(BLOCKS) > 200
    unknown = [str(block) for block in BLOCKS if block.language not in known]
    assert unknown == []


@pytest.mark.parametrize("block", of("python", "py"))
def test_python_compiles(block: Block) -> None:
    if block.page == "CONTRIBUTING.md" and " " in block.info:
        return  # parts of files, put together by tests/docs/test_recipe.py
    assert compile(block.text, str(block), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT).co_code


@pytest.mark.parametrize("block", of("bash", "sh"))
def test_bash_parses(block: Block) -> None:
    text = re.sub(r"^\$ ", "", block.text, flags=re.MULTILINE)
    done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


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


def test_sdks_compile_the_blocks_of_their_own_pages() -> None:
    for language, test in OWN_TESTS.items():
        assert "README" in (ROOT / test).read_text(encoding="utf-8"), test
        elsewhere = [
            str(block)
            for block in BLOCKS
            if block.language == language and not block.page.startswith(f"sdks/{language}/")
        ]
        assert language == "js" or elsewhere == []
