"""One reader, one data directory: from the README through the tutorials to Spark, in order.

Every ```bash and ```python block of these pages is run as it stands, on one broker that keeps what
the pages before have made. For docs/security.md the reader starts it with the page's configuration,
and afterwards without again, as the pages say.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fila.testing.process import ServerProcess

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(bash|python|toml)\n(.*?)^```", re.MULTILINE | re.DOTALL)
BEFORE = [
    "README.md",
    "docs/getting-started.md",
    "docs/hooks/tutorial-tenant-fairness.md",
    "docs/hooks/tutorial-provider-throttling.md",
    "docs/hooks/tutorial-retry-policies.md",
    "docs/tutorials/why-is-a-tenant-slow.md",
]
SECURITY = "docs/security.md"
OBSERVABILITY = "docs/observability.md"
SPARK = "docs/pipeline/tutorial.md"


class Reader:
    """Somebody who follows the pages, in one directory and with one broker."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.server: ServerProcess | None = None
        self.web = ""
        kept = {name: text for name, text in os.environ.items() if not name.startswith("FILA_")}
        self.environ = {
            **kept,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "XDG_CONFIG_HOME": str(place / "config"),
        }

    def start(self, **settings: object) -> None:
        own = {"gui.listen_addr": "127.0.0.1:0", **settings}
        self.server = ServerProcess(self.place / "data", own).start()
        (self.web,) = re.findall(r"https?://127\.0\.0\.1:(\d+)", self.server.log())[-1:]
        # What is not told otherwise talks to the broker of this walk.
        self.environ["FILA_ADDR"] = self.address

    @property
    def address(self) -> str:
        assert self.server is not None
        return f"localhost:{self.server.endpoint[1]}"

    def stop(self) -> None:
        if self.server is not None:
            assert self.server.stop() == 0
            self.server = None

    def run(self, language: str, block: str, timeout_s: float = 120.0) -> str:
        block = block.replace("localhost:5555", self.address) if self.server else block
        block = block.replace("localhost:8080", f"localhost:{self.web}")
        shell = ["bash", "-euo", "pipefail", "-c"]
        done = subprocess.run(
            [*(shell if language == "bash" else [sys.executable, "-c"]), block],
            env=self.environ,
            cwd=self.place,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        assert done.returncode == 0, f"{block}\n--- said\n{done.stdout}{done.stderr}"
        return done.stdout


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    made = Reader(tmp_path)
    yield made
    made.stop()


def blocks(page: str) -> list[tuple[str, str]]:
    found = BLOCK.findall((ROOT / page).read_text())
    assert found, f"{page} shows nothing to run"
    return found


def test_every_language_starts_with_a_queue_of_its_own() -> None:
    pages = [*BEFORE, SECURITY, OBSERVABILITY, SPARK]
    walked = "".join((ROOT / page).read_text() for page in pages)
    for language in ("go", "java", "js", "ruby", "rust"):
        page = (ROOT / "sdks" / language / "README.md").read_text()
        start = page.partition("\n## Five minutes")[2].partition("\n## ")[0]
        named = set(re.findall(r"""["'](mail[\w-]*|orders|jobs)["']""", start))
        assert named == {f"mail-{language}"} and f"mail-{language}" not in walked


@pytest.mark.slow
def test_every_page_in_order_on_one_broker(reader: Reader) -> None:
    assert set(map(str, (ROOT / "docs/tutorials").glob("*.md"))) <= {str(ROOT / p) for p in BEFORE}
    reader.start()
    for page in BEFORE:
        for language, block in blocks(page):
            if language != "toml":
                reader.run(language, block)
    reader.stop()
    secure(reader)
    reader.start()
    reader.environ.pop("FILA_ADDR")  # as `context use default` leaves it
    reader.run(
        "bash", f"fila context set default --addr {reader.address}; fila context use default"
    )
    for language, block in blocks(OBSERVABILITY):
        if language != "toml":
            reader.run(language, block)
    reader.environ["FILA_ADDR"] = reader.address
    spark(reader)


def secure(reader: Reader) -> None:
    """The page makes certificates and keys; in between the broker is started with its file."""
    tokens: dict[str, str] = {}
    for language, block in blocks(SECURITY):
        if language == "toml":
            (reader.place / "fila.toml").write_text(block)
            continue
        said = reader.run(language, block.replace("TOKEN", tokens.get("billing", "TOKEN")))
        if "> bootstrap.key" in block:
            key = (reader.place / "bootstrap.key").read_text().strip()
            reader.start(bootstrap_apikey=key)
            reader.environ.pop("FILA_ADDR")  # the page tells the command line by a context
        tokens |= dict(re.findall(r'Created API key "(\w+)"\n.*\nToken      : (\w+)', said))
    assert set(tokens) == {"ops", "billing"}
    reader.stop()
    (reader.place / "fila.toml").unlink()


def spark(reader: Reader) -> None:
    """The cells of the notebook, in one process; what it shows is what is on the page."""
    page = (ROOT / SPARK).read_text()
    cells = [block for language, block in blocks(SPARK) if language == "python"]
    said = reader.run("python", "\n".join(cells), timeout_s=600)
    (table,) = re.findall(r"^```text\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert table in said
    for line in ("30 orders charged", "50 orders charged now", "30 letters archived"):
        assert line in said
