"""The recipe of CONTRIBUTING.md, "Add an operation": carried out, in a copy of the tree.

The blocks of the page are put into their files, everything generated is made again, and the made-up
operation is called over FIBP by the SDK, over gRPC by the official client, and by the command.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
HAND_WRITTEN_MAX = 5
COPIED = ("src", "spec", "docs", "tools")
BLOCK = re.compile(r"^```\w+ (\S+)\n(.*?)^```", re.MULTILINE | re.DOTALL)

# Where the blocks of each file go: before these texts, in the order of the page.
PLACES = {
    "src/fila/wire/operations.py": ['    Notice(\n        "Error",'],
    "src/fila/broker/queue_operations.py": ["def set_config(", "    b.SetConfig: set_config,"],
    "spec/proto/fila/v1/admin.proto": ["  // Makes an API key without", "message CreateApiKeyReq"],
    "src/fila/client/async_methods/administration.py": [
        "    async def get_stats(",
        "from fila.wire.bodies import ApiKeySummary",
    ],
    "src/fila/cli/queue.py": [
        "    pause_purge.add_parsers(inner)",
        '    if args.verb == "list":',
        "def _list(",
    ],
}

GENERATE = (
    "spec/wire/make.py",
    "spec/vectors/make.py",
    "spec/proto/make.py",
    "tools/generate_sync.py",
)


class Tree(NamedTuple):
    root: Path
    address: str
    environ: dict[str, str]

    def run(self, *arguments: str) -> str:
        """What a Python process over the changed tree prints."""
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.root,
            env=self.environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tree]:
    """The tree after the recipe, and a broker that runs it."""
    root = tmp_path_factory.mktemp("recipe")
    ignored = shutil.ignore_patterns("__pycache__", "static", "node_modules")
    for name in COPIED:
        shutil.copytree(ROOT / name, root / name, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", root)
    follow_the_recipe(root)
    environ = {name: text for name, text in os.environ.items() if not name.startswith("FILA_")}
    environ["PYTHONPATH"] = str(root / "src")
    environ["XDG_CONFIG_HOME"] = str(root / "config")
    plain = Tree(root, "", environ)
    for script in GENERATE:
        plain.run(script)
    program = (
        "import sys\n"
        "from fila.testing import broker\n"
        "with broker() as running:\n"
        "    print(running.address, flush=True)\n"
        "    sys.stdin.read()\n"
    )
    server = subprocess.Popen(
        [sys.executable, "-c", program],
        env=environ,
        cwd=root,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdin is not None and server.stdout is not None
    try:
        address = server.stdout.readline().strip()
        assert address, "the broker did not start"
        yield Tree(root, address, environ)
    finally:
        server.stdin.close()
        assert server.wait(30) == 0
        server.stdout.close()


def follow_the_recipe(root: Path) -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    blocks = BLOCK.findall(page[page.index("### Add an operation") :])
    assert [path for path, _ in blocks] == [path for path in PLACES for _ in PLACES[path]]
    assert len(PLACES) <= HAND_WRITTEN_MAX
    left = {path: list(places) for path, places in PLACES.items()}
    for path, block in blocks:
        file = root / path
        text = file.read_text(encoding="utf-8")
        place = left[path].pop(0)
        assert text.count(place) == 1, f"{path}: where is {place!r}?"
        file.write_text(text.replace(place, block + place), encoding="utf-8")


def test_the_sdk_calls_it_in_both_forms(tree: Tree) -> None:
    program = f"""
import asyncio
from fila import AsyncFilaClient, FilaClient

async def ask():
    async with await AsyncFilaClient.connect("{tree.address}") as client:
        return await client.count_queues("sdk")

with FilaClient("{tree.address}") as client:
    for name in ("sdk-1", "sdk-2", "other"):
        client.create_queue(name)
    print(client.count_queues("sdk"), client.count_queues(), asyncio.run(ask()))
"""
    counted, everything, awaited = map(int, tree.run("-c", program).split())
    assert (counted, awaited) == (4, 4)  # with their dead letter queues
    assert everything >= 6


def test_a_grpc_client_calls_it(tree: Tree) -> None:
    program = f"""
import grpc
from fila.edges.grpc.v1 import admin_pb2 as pb

channel = grpc.insecure_channel("{tree.address}")
def method(name, request, response):
    path = "/fila.v1.FilaAdmin/" + name
    return channel.unary_unary(path, request.SerializeToString, response.FromString)

create = method("CreateQueue", pb.CreateQueueRequest, pb.CreateQueueResponse)
count = method("CountQueues", pb.CountQueuesRequest, pb.CountQueuesResponse)
create(pb.CreateQueueRequest(name="grpc-1"))
print(count(pb.CountQueuesRequest(prefix="grpc")).count)
"""
    assert tree.run("-c", program).split() == ["2"]


def test_the_command_calls_it(tree: Tree) -> None:
    queue = ("-m", "fila.cli.main", "--addr", tree.address, "queue")
    tree.run(*queue, "create", "cli-1")
    assert tree.run(*queue, "count", "cli-").strip() == "2"


def test_the_references_and_the_vectors_have_it(tree: Tree) -> None:
    page = (tree.root / "spec/fibp.md").read_text(encoding="utf-8")
    row = (
        "| `DD` / `DC` | CountQueues / CountQueuesResult | `string` prefix / `u8` code, `u64` count"
    )
    assert row in page
    assert "`CountQueues`" in (tree.root / "docs/grpc.md").read_text(encoding="utf-8")
    assert "fila queue count" in tree.run("-m", "fila.cli.reference")
    rows = json.loads((tree.root / "spec/operations.json").read_text(encoding="utf-8"))
    told = {row["name"]: row for row in rows["operations"]}
    assert told["CountQueues"]["reply"] == "CountQueuesResult"
    vectors = json.loads((tree.root / "spec/vectors/admin.json").read_text(encoding="utf-8"))
    made = [one for one in vectors["vectors"] if one["operation"] == "CountQueues"]
    assert [one["body"] for one in made] == [{"prefix": "prefix"}]


def test_nothing_but_what_is_generated_changed_beside_the_five_files(tree: Tree) -> None:
    generated = {
        "src/fila/wire/opcodes.py",
        "src/fila/wire/admin_bodies.py",
        "src/fila/wire/bodies.py",
        "src/fila/edges/grpc/v1/admin_pb2.py",
        "src/fila/edges/grpc/v1/admin_pb2.pyi",
        "src/fila/client/sync_methods/administration.py",
        "spec/fibp.md",
        "spec/operations.json",
        "spec/vectors/admin.json",
        "spec/vectors/states.json",
        "docs/grpc.md",
    }
    changed = set()
    for name in COPIED:
        for path in (tree.root / name).rglob("*"):
            known = ROOT / path.relative_to(tree.root)
            if not path.is_file() or "__pycache__" in path.parts:
                continue
            if not known.exists() or known.read_bytes() != path.read_bytes():
                changed.add(path.relative_to(tree.root).as_posix())
    assert changed == generated | set(PLACES)
