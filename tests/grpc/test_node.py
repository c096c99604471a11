"""Another language's client: Node's @grpc/grpc-js, which loads the .proto files as they are."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.process import Broker

HERE = Path(__file__).parent
PROTOS = HERE.parents[1] / "spec" / "proto"
STEPS = ["healthy", "created", "enqueued", "delivered", "settled", "streamed", "administered"]

PAGE = HERE.parents[1] / "docs" / "grpc.md"

pytestmark = [
    pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed"),
    pytest.mark.slow,
]


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the program and the packages it needs."""
    cache = Path(os.environ.get("FILA_TEST_CACHE") or tmp_path_factory.mktemp("node"))
    place = cache / "grpc-js"
    place.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "lifecycle.js"):
        shutil.copy(HERE / "node" / name, place / name)
    done = subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error"],
        cwd=place,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"npm could not fetch @grpc/grpc-js: {done.stderr.strip()[-300:]}"
    return place


@pytest.mark.parametrize("key", ["", "root"], ids=["open", "with a key"])
def test_grpc_js_runs_the_whole_lifecycle(
    own_broker: Callable[..., Broker], modules: Path, key: str
) -> None:
    settings = {"auth.bootstrap_apikey": key} if key else {}
    with own_broker(settings=settings) as broker:
        host, port = broker.address
        done = subprocess.run(
            ["node", "lifecycle.js", f"{host}:{port}", str(PROTOS), key],
            cwd=modules,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.split() == [*STEPS, "done"]
        assert broker.alive()


def test_the_program_in_the_docs_runs(own_broker: Callable[..., Broker], modules: Path) -> None:
    (block,) = re.findall(r"^```js\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    with own_broker() as broker:
        host, port = broker.address
        program = block.replace("localhost:5555", f"{host}:{port}").replace(
            "'spec/proto'", repr(str(PROTOS))
        )
        done = subprocess.run(
            ["node", "-e", program],
            cwd=modules,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        lines = done.stdout.split("\n")
        assert {line.split()[0] for line in lines if line} >= {"stored", "acknowledged"}
        assert any(line.endswith(" hello") for line in lines)
