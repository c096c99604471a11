"""docs/grpc.md: its grpcurl calls, run one after the other."""

import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.process import Broker

PAGE = Path(__file__).parents[2] / "docs" / "grpc.md"


@pytest.mark.skipif(shutil.which("grpcurl") is None, reason="grpcurl is not installed")
def test_the_calls_in_the_docs_work(own_broker: Callable[..., Broker]) -> None:
    with own_broker() as broker:
        host, port = broker.address
        lines = [line[2:] for line in PAGE.read_text().splitlines() if line.startswith("$ grpcurl")]
        assert len(lines) >= 7
        for line in lines:
            done = subprocess.run(
                shlex.split(line.replace("localhost:5555", f"{host}:{port}")),
                capture_output=True,
                text=True,
                timeout=30,
                check=False,
            )
            if "/Consume" in line:
                assert '"payload": "aGVsbG8="' in done.stdout
                assert "DeadlineExceeded" in done.stderr
            else:
                assert done.returncode == 0, line + done.stderr
