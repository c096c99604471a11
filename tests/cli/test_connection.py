"""Which broker a command talks to: options, environment, contexts."""

import json
import os
import socket
import stat
from argparse import Namespace
from pathlib import Path

import pytest

from fila import testing
from fila.cli.connection import target

NOTHING_GIVEN = {
    "addr": None,
    "tls": False,
    "tls_ca_cert": None,
    "tls_cert": None,
    "tls_key": None,
    "api_key": None,
}


def resolved(**given):
    return target(Namespace(**{**NOTHING_GIVEN, **given}))


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def test_options_may_stand_before_between_and_after(run, broker):
    for argv in (
        ("--addr", broker, "--json", "queue", "list"),
        ("queue", "--addr", broker, "--json", "list"),
        ("queue", "list", "--addr", broker, "--json"),
        ("--json", "queue", "list", f"--addr={broker}"),
    ):
        result = run(*argv)
        assert result.code == 0, result.err
        assert "queues" in result.document


def test_of_two_addresses_the_one_nearer_to_the_command_counts(run, broker, closed_port):
    assert run("--addr", f"127.0.0.1:{closed_port}", "queue", "list", "--addr", broker).code == 0


@pytest.mark.parametrize("scheme", ["http://", "https://", "HTTP://"])
def test_a_leading_scheme_is_dropped(run, broker, scheme):
    assert run("--addr", scheme + broker, "queue", "list").code == 0


def test_https_without_tls_is_remarked_on(run, broker):
    result = run("--addr", f"https://{broker}", "queue", "list")
    assert "add --tls" in result.err


def test_nothing_given_is_localhost_5555():
    assert resolved().addr == "localhost:5555"


def test_the_environment_names_the_broker_and_the_key(monkeypatch):
    monkeypatch.setenv("FILA_ADDR", "http://broker:1")
    monkeypatch.setenv("FILA_API_KEY", "k")
    assert (resolved().addr, resolved().api_key) == ("broker:1", "k")


def test_options_win_over_the_environment(monkeypatch):
    monkeypatch.setenv("FILA_ADDR", "broker:1")
    monkeypatch.setenv("FILA_API_KEY", "k")
    found = resolved(addr="other:2", api_key="l")
    assert (found.addr, found.api_key) == ("other:2", "l")


def test_a_key_that_is_not_utf8_is_a_usage_error(run, broker):
    result = run("--addr", broker, "--api-key", os.fsdecode(b"caf\xe9"), "queue", "list")
    assert (result.code, result.err) == (2, "Error: the API key is not valid UTF-8\n")


def test_a_refused_connection_comes_with_a_hint(run, closed_port):
    addr = f"127.0.0.1:{closed_port}"
    result = run("--addr", addr, "queue", "list")
    assert (result.code, result.out) == (1, "")
    first, hint = result.err.splitlines()
    assert first == f"Error: cannot connect to {addr}: connection refused"
    assert hint.startswith(f"Hint: is fila-server running on {addr}?")


def test_an_unknown_host_is_an_error(run):
    result = run("--addr", "nowhere.invalid:5555", "queue", "list")
    assert result.code == 1
    assert result.err.startswith("Error: cannot connect to nowhere.invalid:5555: the host name")


@pytest.mark.parametrize("addr", ["host:port", ":5555", "host:99999", "::1"])
def test_an_address_that_is_none_is_a_usage_error(run, addr):
    result = run("--addr", addr, "queue", "list")
    assert result.code == 2 and result.err.startswith("Error: address")


def test_something_that_is_no_broker_is_an_error(run):
    with socket.create_server(("127.0.0.1", 0)) as server:
        import threading

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(100)
                connection.sendall(b"SSH-2.0-OpenSSH_9.6\r\n" * 3)

        thread = threading.Thread(target=answer)
        thread.start()
        result = run("--addr", f"127.0.0.1:{server.getsockname()[1]}", "queue", "list")
        thread.join()
    assert result.code == 1
    assert result.err.startswith("Error: ") and "Traceback" not in result.err


def test_a_certificate_without_its_key_is_a_usage_error(run):
    result = run("queue", "list", "--tls-cert", "c.pem")
    assert result.code == 2 and "--tls-cert and --tls-key belong together" in result.err


def test_tls_files_that_cannot_be_used_are_named(run, tmp_path: Path):
    result = run("queue", "list", "--tls-ca-cert", str(tmp_path / "ca.pem"))
    assert result.code == 1 and str(tmp_path / "ca.pem") in result.err


# contexts


def test_a_context_is_set_used_and_listed(run, broker):
    result = run("context", "set", "here", "--addr", broker)
    assert (result.code, result.out) == (0, 'Set context "here"\n')
    result = run("context", "use", "here")
    assert (result.code, result.out) == (0, 'Using context "here"\n')
    assert run("queue", "list").code == 0
    lines = [line.split() for line in run("context", "list").out.splitlines()]
    assert lines == [
        ["CURRENT", "NAME", "ADDR", "TLS", "API_KEY"],
        ["default", "localhost:5555", "no", "none"],
        ["*", "here", broker, "no", "none"],
    ]


def test_the_default_context_is_always_there(run):
    assert run("context", "list").out.splitlines()[1].split()[:2] == ["*", "default"]
    run("context", "set", "far", "--addr", "far:1")
    run("context", "use", "far")
    assert resolved().addr == "far:1"
    assert run("context", "use", "default").code == 0
    assert resolved().addr == "localhost:5555"


def test_a_context_carries_everything_about_its_connection(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("context", "set", "prod", "--addr", "prod:1", "--tls-ca-cert", "ca.pem")
    run("context", "set", "prod", "--addr", "prod:1", "--tls", "--api-key", "s3cret")
    run("context", "use", "prod")
    found = resolved()
    assert (found.addr, found.tls, found.api_key) == ("prod:1", True, "s3cret")
    assert found.tls_ca is None, "set replaces a context as a whole"


def test_certificate_paths_are_kept_in_full(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("context", "set", "prod", "--tls-ca-cert", "ca.pem")
    run("context", "use", "prod")
    assert resolved().tls_ca == str(tmp_path / "ca.pem")


def test_a_contexts_key_goes_to_no_other_broker(run, monkeypatch):
    run("context", "set", "prod", "--addr", "prod:1", "--tls", "--api-key", "s3cret")
    run("context", "use", "prod")
    assert resolved(addr="other:2") == ("other:2", False, None, None, None, None)
    monkeypatch.setenv("FILA_ADDR", "third:3")
    assert resolved().api_key is None


def test_keys_are_never_listed_and_the_file_is_its_owners(run, tmp_path):
    shown = run("context", "set", "prod", "--api-key", "s3cret", "--json").out
    shown += run("context", "list").out + run("context", "list", "--json").out
    assert "s3cret" not in shown
    file = tmp_path / "config" / "fila" / "contexts.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert os.listdir(file.parent) == ["contexts.json"]


def test_contexts_as_json(run):
    assert run("context", "use", "default", "--json").document == {"current": "default"}
    run("context", "set", "prod", "--addr", "prod:1", "--tls", "--api-key", "k")
    document = run("context", "list", "--json").document
    assert document["current"] == "default"
    assert document["contexts"][1] == {
        "name": "prod",
        "addr": "prod:1",
        "tls": True,
        "tls_ca_cert": None,
        "tls_cert": None,
        "tls_key": None,
        "api_key_set": True,
    }


def test_an_unknown_context_cannot_be_used(run):
    result = run("context", "use", "nope")
    assert result.code == 1
    assert result.err.startswith('Error: context "nope" does not exist\nHint: ')


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"contexts": {"a": {"addr": 7}}}', '{"contexts": []}', '"x"']
)
def test_a_broken_contexts_file_is_named(run, tmp_path, content):
    file = tmp_path / "config" / "fila" / "contexts.json"
    file.parent.mkdir(parents=True)
    file.write_text(content)
    result = run("queue", "list")
    assert result.code == 1
    assert result.err.startswith(f"Error: {file} is not a contexts file: ")


def test_an_address_given_does_not_need_the_contexts_file(run, broker, tmp_path):
    file = tmp_path / "config" / "fila" / "contexts.json"
    file.parent.mkdir(parents=True)
    file.write_text("{")
    assert run("--addr", broker, "queue", "list").code == 0


def test_contexts_live_in_the_home_directory_without_xdg(run, tmp_path, monkeypatch):
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    run("context", "set", "a", "--addr", "b:1")
    saved = json.loads((tmp_path / ".config" / "fila" / "contexts.json").read_text())
    assert saved == {"current": "default", "contexts": {"a": {"addr": "b:1"}}}


def test_the_environment_names_the_certificates(monkeypatch):
    monkeypatch.setenv("FILA_TLS", "1")
    monkeypatch.setenv("FILA_TLS_CA_CERT", "ca.pem")
    monkeypatch.setenv("FILA_TLS_CERT", "c.pem")
    monkeypatch.setenv("FILA_TLS_KEY", "k.pem")
    found = resolved()
    assert (found.tls, found.tls_ca, found.tls_cert, found.tls_key) == (
        True, "ca.pem", "c.pem", "k.pem",
    )  # fmt: skip
    assert resolved(tls_ca_cert="other.pem").tls_ca == "other.pem"


def test_a_switch_that_says_neither_yes_nor_no_is_a_usage_error(run, monkeypatch):
    monkeypatch.setenv("FILA_TLS", "maybe")
    assert run("queue", "list").code == 2


def test_an_empty_api_key_is_a_usage_error(run, broker):
    result = run("--addr", broker, "--api-key", "", "queue", "list")
    assert result.code == 2 and "--api-key is empty" in result.err


def test_the_dashboards_port_is_told_from_the_brokers(run):
    with socket.create_server(("127.0.0.1", 0)) as server:
        import threading

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(100)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        result = run("--addr", f"127.0.0.1:{server.getsockname()[1]}", "queue", "list")
        thread.join()
    assert result.code == 1 and "HTTP" in result.err and "5555" in result.err


def test_a_context_is_shown_and_deleted(run, monkeypatch, tmp_path: Path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    run("context", "set", "prod", "--addr", "broker:1", "--tls", "--api-key", "secret")
    run("context", "use", "prod")
    told = run("context", "show")
    assert "prod (current)" in told.out and "broker:1" in told.out and "secret" not in told.out
    assert run("context", "show", "default", "--json").document["current"] is False
    assert run("context", "delete", "prod", "--json").document == {
        "name": "prod", "deleted": True, "current": "default",
    }  # fmt: skip
    assert run("context", "show", "prod").code == 1
    assert run("context", "delete", "default").code == 1


def test_a_ping_says_whether_the_broker_answers(run, fila, closed_port, broker):
    assert fila("ping").out.startswith(f"{broker} answers in ")
    assert fila("ping", "--json").document["authorized"] is True
    assert run("--addr", f"127.0.0.1:{closed_port}", "ping").code == 1


def test_a_broker_that_asks_for_a_key_answers(run):
    with testing.broker({"auth.bootstrap_apikey": "secret"}) as locked:
        told = run("--addr", locked.address, "ping")
        assert told.code == 0 and "asks for an API key" in told.out
