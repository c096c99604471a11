"""`fila whoami` and `fila version`: who is asking, and whom."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from fila import FilaClient, Permission, __version__
from fila.cli.version import ENGINES
from fila.distribution import form
from fila.testing import broker
from tests.cli.conftest import Result

BOOT = "boot-secret"


def test_a_broker_without_keys_says_that_nobody_needs_one(fila: Callable[..., Result]) -> None:
    told = fila("whoami")
    assert told.out == "Key        : none; this broker asks for no key\nMay        : everything\n"
    document = fila("whoami", "--json").document
    assert (document["auth"], document["key_id"], document["is_superadmin"]) == (False, "", True)


def test_every_key_learns_who_it_is_and_what_it_may_do(
    run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    with broker({"auth.bootstrap_apikey": BOOT}) as running:
        monkeypatch.setenv("FILA_ADDR", running.address)
        monkeypatch.setenv("FILA_API_KEY", BOOT)
        assert run("whoami").out.splitlines() == [
            "Key        : the bootstrap key",
            "May        : everything",
        ]
        made = run("auth", "create", "billing", "--expires-at", "4102444800000", "--json").document
        mine = ("--api-key", made["token"])
        assert run("whoami", *mine).out.splitlines() == [
            "Key        : billing",
            f"Key ID     : {made['key_id']}",
            "Expires    : 2100-01-01 00:00 UTC",
            "May        : nothing; `fila auth acl set` gives permissions",
        ]
        run("auth", "acl", "set", made["key_id"], "produce:orders", "consume:orders.*")
        assert run("whoami", *mine).out.splitlines()[3:] == [
            "May        : produce:orders",
            "             consume:orders.*",
        ]
        document = run("whoami", *mine, "--json").document
        assert document["permissions"] == [
            {"kind": "produce", "pattern": "orders"},
            {"kind": "consume", "pattern": "orders.*"},
        ]
        with FilaClient(running.address, api_key=made["token"]) as client:
            caller = client.who_am_i()
        assert (caller.name, caller.version, caller.form) == ("billing", __version__, form())
        assert caller.permissions[0] == Permission("produce", "orders")
        refused = run("whoami", "--api-key", "wrong")
        assert refused.code == 1 and "the API key is not valid" in refused.err


def test_the_brokers_version_is_told_beside_ours(fila: Callable[..., Result], broker: str) -> None:
    assert fila("version").out.splitlines() == [
        f"fila {__version__}",
        f"server   : {__version__} ({form()}) at {broker}",
    ]
    document = fila("version", "--json").document
    assert document["server"] == {"addr": broker, "version": __version__, "form": form()}


def test_without_a_broker_the_version_is_told_all_the_same(run: Callable[..., Result]) -> None:
    with socket.socket() as nobody:  # bound, and not listening: refuses
        nobody.bind(("127.0.0.1", 0))
        addr = f"127.0.0.1:{nobody.getsockname()[1]}"
        told = run("version", "--addr", addr)
    assert told.code == 0 and told.err == ""
    assert told.out.splitlines()[0] == f"fila {__version__}"
    assert "connection refused" in told.out.splitlines()[1]


def test_a_broker_that_says_nothing_is_not_waited_for_long(run: Callable[..., Result]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        told = run("version", "--addr", f"127.0.0.1:{silent.getsockname()[1]}", "--json")
        assert time.monotonic() - began < 5
    assert told.code == 0 and "error" in told.document["server"]


def test_verbose_tells_the_form_the_python_and_the_engines(fila: Callable[..., Result]) -> None:
    told = fila("version", "--verbose").out
    assert f"form     : {form()}" in told
    python = ".".join(map(str, sys.version_info[:3]))
    assert f"CPython {python}" in told
    assert "rocksdict 0." in told and "lupa " in told
    document = fila("version", "--verbose", "--json").document
    assert set(document["engines"]) == set(ENGINES) and document["python"] == python


def test_help_pays_for_none_of_it() -> None:
    asked = "import sys; from fila.cli.main import main; main(['version', '--help'])"
    code = f"{asked}; print([m for m in ('importlib.metadata', 'asyncio') if m in sys.modules])"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert told.stdout.splitlines()[-1] == "[]", told.stderr
