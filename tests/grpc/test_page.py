"""docs/grpc.md: its grpcurl calls, run one after the other.

By our own reading of grpcurl, which is always there, and by the program itself (`make tools`).
"""

import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import fila.grpc
from tests.e2e.process import Broker
from tests.tools import tool

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "grpc.md"
OURS = [sys.executable, "-m", "tests.grpc.grpcurl"]


@pytest.fixture(params=["ours", "grpcurl"])
def program(request: pytest.FixtureRequest) -> list[str]:
    return OURS if request.param == "ours" else [tool("grpcurl")]


def run(program: list[str], line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*program, *shlex.split(line.removeprefix("grpcurl "))],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        cwd=ROOT,
    )


def test_the_calls_in_the_docs_work(own_broker: Callable[..., Broker], program: list[str]) -> None:
    with own_broker() as broker:
        host, port = broker.address
        lines = [line[2:] for line in PAGE.read_text().splitlines() if line.startswith("$ grpcurl")]
        assert len(lines) >= 7
        for line in lines:
            done = run(program, line.replace("localhost:5555", f"{host}:{port}"))
            if "/Consume" in line:
                assert '"payload": "aGVsbG8="' in done.stdout
                assert "DeadlineExceeded" in done.stderr
            else:
                assert done.returncode == 0, line + done.stderr
            if line.endswith(" list"):
                served = {"fila.v1.FilaAdmin", "fila.v1.FilaService", "grpc.health.v1.Health"}
                assert served <= set(done.stdout.split())
            elif " describe " in line:
                assert "rpc StreamEnqueue ( stream .fila.v1.StreamEnqueueRequest )" in done.stdout
            elif line.endswith("/GetStats"):
                assert '"depth": "1"' in done.stdout
            elif line.endswith("/Check"):
                assert '"status": "SERVING"' in done.stdout


def test_a_key_is_given_as_the_docs_say(
    own_broker: Callable[..., Broker], program: list[str]
) -> None:
    assert "-H 'authorization: Bearer " in PAGE.read_text()
    with own_broker(settings={"auth.bootstrap_apikey": "root"}) as broker:
        host, port = broker.address
        call = f"{host}:{port} fila.v1.FilaAdmin/ListQueues"
        assert run(program, f"-plaintext {call}").returncode == 64 + 16
        assert "Unauthenticated" in run(program, f"-plaintext {call}").stderr
        done = run(program, f"-plaintext -H 'authorization: Bearer root' {call}")
        assert done.returncode == 0, done.stderr


def test_the_python_program_in_the_docs_works(own_broker: Callable[..., Broker]) -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    with own_broker() as broker:
        host, port = broker.address
        done = subprocess.run(
            [sys.executable, "-c", program.replace("localhost:5555", f"{host}:{port}")],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    stored, shown, acknowledged = done.stdout.splitlines()
    assert shown == f"{stored.removeprefix('stored ')} b'hello'"
    assert acknowledged == "acknowledged True"


def test_every_service_has_a_stub_with_all_its_methods() -> None:
    class Channel:
        """Names what it was asked for; a stub calls nothing when it is made."""

        def __getattr__(self, kind: str) -> Callable[..., str]:
            return lambda path, **_: f"{kind} {path}"

    channel = Channel()
    service = fila.grpc.FilaServiceStub(channel)
    assert service.Consume == "unary_stream /fila.v1.FilaService/Consume"
    assert service.StreamEnqueue == "stream_stream /fila.v1.FilaService/StreamEnqueue"
    assert fila.grpc.FilaAdminStub(channel).GetStats == "unary_unary /fila.v1.FilaAdmin/GetStats"
    assert fila.grpc.FilaBulkStub(channel).Release == "unary_unary /fila.v1.FilaBulk/Release"
    with pytest.raises(AttributeError, match="FilaBulkStub has no method Enqeue"):
        _ = fila.grpc.FilaBulkStub(channel).Enqeue
