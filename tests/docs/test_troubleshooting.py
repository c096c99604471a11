"""The page for trouble: each text it quotes is brought about, and is what the programs print."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fila.cli.main import main
from fila.testing import RealBroker, broker
from tests.security.certificates import Authority

PAGE = Path(__file__).parents[2] / "docs" / "operations" / "troubleshooting.md"
KEY = "a bootstrap key of the tests"
# Every quotation of the page, without the name of a file, port or queue that differs here.
QUOTED = {
    line.removeprefix("Hint: ")
    for block in re.findall(r"^((?:> .*\n)+)", PAGE.read_text(), re.MULTILINE)
    for line in (one.removeprefix("> ") for one in block.splitlines())
}
Say = Callable[..., str]


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Say:
    """What a command prints."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("FILA_ADDR", "FILA_API_KEY", "FILA_TLS"):
        monkeypatch.delenv(name, raising=False)

    def run(addr: str, *argv: Any) -> str:
        capsys.readouterr()
        main(["--addr", addr, *map(str, argv)])
        told = capsys.readouterr()
        return told.out + told.err

    return run


def quoted(text: str, said: str) -> None:
    """The text is on the page, and it is what was said."""
    assert text in QUOTED, f"the page does not quote {text!r}"
    here = text.replace("localhost:5555: ", "")
    assert here.removeprefix("cannot connect to ") in said, said


@pytest.fixture(scope="module")
def plain() -> Iterator[RealBroker]:
    with broker({"gui.listen_addr": "127.0.0.1:0"}) as running:
        yield running


def test_connecting(say: Say, plain: RealBroker) -> None:
    quoted("cannot connect to localhost:5555: connection refused", say("127.0.0.1:1", "ping"))
    quoted("the host name cannot be resolved", say("nobody.invalid:5555", "ping"))
    (http,) = re.findall(r"http://(127\.0\.0\.1:\d+)", plain.log())
    quoted(
        "they are HTTP's; the broker's own port is another one (5555 by default)",
        say(http, "queue", "list"),
    )
    second = subprocess.run(
        [sys.executable, "-m", "fila.server.main", "--listen", "127.0.0.1:0",
         "--data-dir", str(plain.data_dir)],
        capture_output=True, text=True, timeout=60, cwd=plain.data_dir.parent,
    )  # fmt: skip
    assert second.returncode != 0
    quoted("is in use by another process", second.stderr)


def test_tls(say: Say, plain: RealBroker, tmp_path: Path) -> None:
    own, other = Authority(tmp_path / "own"), Authority(tmp_path / "other")
    cert, key = own.issue("broker")
    files = {"tls.cert_file": cert, "tls.key_file": key}
    quoted("speaks no TLS: leave --tls and its files out", say(plain.address, "--tls", "ping"))
    with broker(files) as running:
        told = say(running.address, "queue", "list")
        quoted("the broker closed the connection", told)
        quoted("does it speak TLS?", told)
        told = say(running.address, "--tls-ca-cert", other.cert, "queue", "list")
        quoted("unable to get local issuer certificate", told)
    away = Authority(tmp_path / "away", names="DNS:broker.example")
    cert, key = away.issue("broker")
    with broker({"tls.cert_file": cert, "tls.key_file": key}) as running:
        told = say(running.address, "--tls-ca-cert", away.cert, "queue", "list")
        quoted("certificate is not valid for", told)
    with broker({**files, "tls.ca_file": own.cert}) as running:
        told = say(running.address, "--tls-ca-cert", own.cert, "queue", "list")
        quoted("does it ask for certificates?", told)


def test_keys(say: Say) -> None:
    with broker({"auth.bootstrap_apikey": KEY}) as running:
        quoted("API key required", say(running.address, "queue", "list"))
        quoted("the API key is not valid", say(running.address, "--api-key", "x", "queue", "list"))
        say(running.address, "--api-key", KEY, "queue", "create", "orders")
        made = say(running.address, "--api-key", KEY, "auth", "create", "weak")
        (token,) = re.findall(r"Token +: (\w+)", made)
        told = say(running.address, "--api-key", token, "enqueue", "orders", "--payload", "x")
        quoted("no produce permission on queue", told)


def test_queues_and_what_they_wait_for(say: Say, plain: RealBroker) -> None:
    addr = plain.address
    quoted('queue "ordres" does not exist', say(addr, "consume", "ordres"))
    hook = "function on_enqueue(msg) return { throttle_keys = { 'slow' } } end"
    say(addr, "queue", "create", "orders", "--on-enqueue", hook)
    quoted("already exists", say(addr, "queue", "create", "orders"))
    stale = ("--max-attempts", "3", "--expect-version", "7")
    quoted("somebody changed it meanwhile", say(addr, "queue", "update", "orders", *stale))
    quoted("Nothing waits in", say(addr, "explain", "orders"))
    say(addr, "enqueue", "orders", "--payload", "x", "--count", "3")
    quoted("Nobody consumes", say(addr, "explain", "orders"))
    say(addr, "queue", "pause", "orders", "--reason", "a test")
    quoted("is paused", say(addr, "explain", "orders"))
    say(addr, "queue", "resume", "orders")
    say(addr, "config", "set", "throttle.slow", "0.001,1")
    with plain.client() as client, client.consume("orders") as messages:
        next(iter(messages)).ack()
        quoted("throttled", say(addr, "explain", "orders", "--key", "default"))


def test_hooks(say: Say, plain: RealBroker) -> None:
    addr = plain.address
    typo = "function on_enqueue(msg) retrun {} end"
    say(addr, "queue", "create", "wrong", "--on-enqueue", typo)
    say(addr, "enqueue", "wrong", "--payload", "x", "--count", "5")
    told = say(addr, "hooks", "status", "wrong")
    quoted("attempt to call a nil value", told)
    quoted("breaker open", told)
    by_tenant = "function on_enqueue(msg) return { fairness_key = msg.headers.tenant } end"
    say(addr, "queue", "create", "right", "--on-enqueue", by_tenant)
    for _ in range(3):
        say(addr, "enqueue", "right", "--header", "tenant=acme", "--payload", "x")
    told = say(addr, "hooks", "deploy", "right", "--on-enqueue", typo)
    quoted("fails for a message like those of the queue", told)
    told = say(addr, "queue", "create", "file", "--on-enqueue", "policy.lua")
    quoted("is a file's name, not Lua", told)


def test_a_server_without_its_packages(tmp_path: Path) -> None:
    """A wheel without the extra `server`: as if its packages were not there."""
    hidden = "import sys\nfor name in ('rocksdict', 'lupa', 'uvloop', 'h11', 'hpack'):\n"
    hidden += (
        "    sys.modules[name] = None\nfrom fila.server.program import main\nsys.exit(main())\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", hidden, "--listen", "127.0.0.1:0"],
        capture_output=True, text=True, timeout=60, cwd=tmp_path,
    )  # fmt: skip
    assert told.returncode != 0 and "Traceback" not in told.stderr, told.stderr
    quoted("pip install 'fila-broker[server]'", told.stderr)


def test_every_quotation_is_brought_about() -> None:
    calls = ast.walk(ast.parse(Path(__file__).read_text()))
    asked = {
        call.args[0].value
        for call in calls
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id == "quoted"
        and isinstance(call.args[0], ast.Constant)
    }
    assert len(QUOTED) > 20 and asked == QUOTED
