"""`fila-server` as a program: starting, refusing to start, and stopping."""

from __future__ import annotations

import json
import os
import signal
import socket
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fila import __version__
from fila.wire import bodies, errors
from tests.e2e.load import busy
from tests.e2e.peer import Closed, Peer
from tests.e2e.process import Broker, server_command, wait_until

Make = Callable[..., Broker]
READY_S_MAX = 1.5
STOP_S_MAX = 20.0  # the grace is 10 s; one that waits for a client waits for ever


def run(
    *arguments: str, cwd: Path, environ: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    clean = {name: text for name, text in os.environ.items() if not name.startswith("FILA_")}
    return subprocess.run(
        [*server_command(), *arguments],
        cwd=cwd,
        env={**clean, **(environ or {})},
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )


def test_the_server_is_ready_in_time_on_an_empty_directory(tmp_path: Path) -> None:
    """The median of three starts, counted in processor time when others are using the machine.

    From launch to a port that accepts. Wall time is held to the limit only if the machine is calm:
    if the starts used less than two thirds of the time they took, somebody else had the processor,
    and their own processor time, which no neighbour can stretch, is held to the limit instead.
    """
    wall, cpu = [], []
    for n in range(3):
        broker = Broker(tmp_path / f"data{n}")
        began = time.monotonic()
        with broker:
            socket.create_connection(broker.address, timeout=5).close()
            wall.append(time.monotonic() - began)
            cpu.append(broker.cpu_s())
    calm = statistics.median(cpu) > statistics.median(wall) * 2 / 3
    spent = wall if calm else cpu
    assert statistics.median(spent) < READY_S_MAX, f"wall {wall}, processor {cpu}"


@pytest.mark.parametrize("stop_signal", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_a_signal_stops_it_cleanly_with_everything_acknowledged_kept(
    own_broker: Make, stop_signal: signal.Signals, durability: str
) -> None:
    with own_broker(settings={"storage.durability": durability}) as broker:
        peer, idle = broker.peer(), broker.peer()
        peer.create_queue("orders")
        sent = [peer.post_enqueue("orders", [b"%d" % n] * 10) for n in range(100)]
        began = time.monotonic()
        broker.process.send_signal(stop_signal)
        acknowledged: list[str] = []
        try:
            for request in sent:
                acknowledged += [id for _, id in peer.enqueue_results(request)]
        except Closed:
            pass
        assert broker.wait() == 0
        assert time.monotonic() - began < STOP_S_MAX
        idle.expect_close()
        assert idle.disconnected
        broker.start()
        with broker.peer() as again:
            depth = again.stats("orders").depth
            assert depth >= len(acknowledged)
            stored = {one.id for one in again.take(again.consume("orders", 1_000), depth)}
            assert set(acknowledged) <= stored


def test_replies_that_are_due_come_before_the_goodbye(own_broker: Make) -> None:
    with own_broker(settings={"storage.durability": "fsync"}) as broker:
        peer = broker.peer()
        peer.create_queue("orders")
        requests = [peer.post_enqueue("orders", [b"x"]) for _ in range(50)]
        peer.enqueue_results(requests[0])
        broker.stop()
        peer.expect_close()
        stored = 1
        for request in requests[1:]:
            try:
                peer.enqueue_results(request)
            except Closed:
                break
            stored += 1
        assert peer.disconnected
        broker.start()
        with broker.peer() as again:
            assert again.stats("orders").depth == stored


def test_it_stops_in_time_though_a_client_does_not_read(own_broker: Make) -> None:
    with own_broker() as broker:
        peer = broker.peer(receive_buffer_bytes=4_096)
        peer.create_queue("orders")
        for _ in range(20):
            peer.enqueue("orders", bytes(1 << 20))
        peer.post(bodies.Consume("orders", 100))
        with broker.peer() as watcher:
            wait_until(lambda: watcher.stats("orders").in_flight > 0, 5, "deliveries on their way")
        began = time.monotonic()
        assert broker.stop() == 0
        assert time.monotonic() - began < STOP_S_MAX


def test_it_stops_in_time_under_load(own_broker: Make) -> None:
    with own_broker() as broker, busy(broker, "load"):
        began = time.monotonic()
        assert broker.stop() == 0
        assert time.monotonic() - began < STOP_S_MAX


def test_a_taken_port_is_one_clear_line(broker: Broker, tmp_path: Path) -> None:
    address = f"127.0.0.1:{broker.address[1]}"
    ended = run("--listen", address, "--data-dir", str(tmp_path / "data"), cwd=tmp_path)
    assert ended.returncode == 1
    [line] = ended.stderr.splitlines()
    assert line == f"fila-server: cannot listen on {address}: Address already in use"


def test_a_store_in_use_is_one_clear_line(broker: Broker, tmp_path: Path) -> None:
    ended = run("--listen", "127.0.0.1:0", "--data-dir", str(broker.data_dir), cwd=tmp_path)
    assert ended.returncode == 1
    [line] = ended.stderr.splitlines()
    assert "in use by another process" in line
    assert str(broker.data_dir) in line


def test_a_data_directory_that_cannot_be_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    path = str(tmp_path / "file" / "data")
    ended = run("--listen", "127.0.0.1:0", "--data-dir", path, cwd=tmp_path)
    assert ended.returncode == 1
    [line] = ended.stderr.splitlines()
    assert line.startswith("fila-server: cannot open the store in " + path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[server\n", "not valid TOML"),
        ("[scheduler]\nquantum = 'many'\n", "scheduler.quantum: 'many' is not a whole number"),
        ("[scheduler]\nquantum = 0\n", "scheduler.quantum: 0 is below the least, 1"),
        ("[server]\nlisten_addr = 'nowhere'\n", "server.listen_addr"),
        (
            "[storage]\ndurability = 'maybe'\n",
            'storage.durability: "maybe" is not one of os, fsync',
        ),
        ("[cluster]\nnodes = 3\n", "[cluster]"),
    ],
)
def test_a_bad_configuration_is_one_line_with_file_key_and_reason(
    tmp_path: Path, text: str, expected: str
) -> None:
    (tmp_path / "fila.toml").write_text(text)
    ended = run(cwd=tmp_path)
    assert ended.returncode == 1
    [line] = ended.stderr.splitlines()
    assert line.startswith("fila-server: ")
    assert expected in line
    assert "fila.toml" in line
    assert not (tmp_path / "data").exists()


def test_check_config_finds_the_same_fault(tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text("[scheduler]\nquantum = 0\n")
    ended = run("--check-config", "--config", "my.toml", cwd=tmp_path)
    assert ended.returncode == 1
    assert ended.stderr == "fila-server: my.toml: scheduler.quantum: 0 is below the least, 1\n"


def test_a_configuration_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    ended = run("--config", "missing.toml", cwd=tmp_path)
    assert ended.returncode == 1
    assert ended.stderr == "fila-server: missing.toml: no such file\n"


def test_what_the_program_says_on_a_terminal_is_escaped(tmp_path: Path) -> None:
    ended = run("--check-config", "--config", "no\x9b2J\x1b[2J.toml", cwd=tmp_path)
    assert ended.returncode == 1
    assert "no\\x9b2J\\x1b[2J.toml: no such file" in ended.stderr
    (tmp_path / "fila.toml").write_text('"evil\\u009b2J" = 1\n')
    ended = run("--check-config", cwd=tmp_path)
    assert ended.stderr.rstrip("\n").isprintable() and "evil\\x9b2J" in ended.stderr


def test_check_config_says_valid_and_warns_of_unknown_keys(tmp_path: Path) -> None:
    (tmp_path / "fila.toml").write_text("[scheduler]\nquantun = 3\n")
    ended = run("--check-config", cwd=tmp_path)
    assert ended.returncode == 0
    assert ended.stdout == "configuration is valid (fila.toml)\n"
    assert 'did you mean "quantum"?' in ended.stderr
    assert not (tmp_path / "data").exists()


def test_version_and_help_answer_without_starting(tmp_path: Path) -> None:
    version = run("--version", cwd=tmp_path)
    assert (version.returncode, version.stdout) == (0, f"fila-server {__version__}\n")
    help = run("--help", cwd=tmp_path)
    assert help.returncode == 0
    assert "--data-dir" in help.stdout
    unknown = run("--listn", "x", cwd=tmp_path)
    assert unknown.returncode == 2 and len(unknown.stderr.splitlines()) == 2
    assert "did you mean --listen?" in unknown.stderr
    assert list(tmp_path.iterdir()) == []


def test_both_port_files_get_the_bound_address(tmp_path: Path) -> None:
    one, two = tmp_path / "port", tmp_path / "fibp-port"
    environ = {"FILA_PORT_FILE": str(one), "FILA_FIBP_PORT_FILE": str(two)}
    process = subprocess.Popen(
        [*server_command(), "--listen", "127.0.0.1:0"],
        cwd=tmp_path,
        env={**os.environ, **environ},
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: one.exists() and two.exists(), 10, "the port files")
        assert one.read_text() == two.read_text()
        host, _, port = one.read_text().rpartition(":")
        with Peer((host, int(port))) as peer:
            peer.ping()
        assert (tmp_path / "data").is_dir()  # the default directory, under the working directory
    finally:
        process.terminate()
        assert process.wait(10) == 0


def test_two_addresses_are_both_served_and_each_has_its_port_file(tmp_path: Path) -> None:
    one, two = tmp_path / "port", tmp_path / "fibp-port"
    environ = {
        "FILA_PORT_FILE": str(one),
        "FILA_FIBP_PORT_FILE": str(two),
        "FILA_SERVER__LISTEN_ADDR": "127.0.0.1:0",
        "FILA_FIBP__LISTEN_ADDR": "127.0.0.1:0",
    }
    process = subprocess.Popen(
        server_command(), cwd=tmp_path, env={**os.environ, **environ}, stderr=subprocess.DEVNULL
    )
    try:
        wait_until(lambda: one.exists() and two.exists(), 20, "the port files")
        assert one.read_text() != two.read_text()
        for number, file in enumerate((one, two)):
            host, _, port = file.read_text().rpartition(":")
            with Peer((host, int(port))) as peer:
                peer.create_queue(f"q{number}")
                assert len(peer.queues()) == 2 * (number + 1)
    finally:
        process.terminate()
        assert process.wait(10) == 0


def test_an_unknown_key_is_a_warning_and_the_server_starts(tmp_path: Path) -> None:
    (tmp_path / "fila.toml").write_text("[storage]\ndurabilty = 'fsync'\n[whatever]\nx = 1\n")
    with Broker(tmp_path / "data") as broker:
        lines = [json.loads(line) for line in broker.log().splitlines()]
        warnings = [line["message"] for line in lines if line["level"] == "warning"]
        assert any("storage.durabilty" in text and '"durability"' in text for text in warnings)
        assert any("[whatever]" in text for text in warnings)


def test_logs_are_json_lines_without_payloads_or_header_values(own_broker: Make) -> None:
    with own_broker(settings={"log.level": "debug"}) as broker:
        peer = broker.peer()
        script = "function on_enqueue(msg) error('bad hook') end"
        peer.create_queue("orders", on_enqueue=script)
        [id] = peer.enqueue("orders", b"secret-payload", headers={"token": "secret-header"})
        peer.take_one(peer.consume("orders"))
        assert peer.nack("orders", id, error="went wrong") == [errors.OK]
        broker.stop()
    lines = [json.loads(line) for line in broker.log().splitlines()]
    assert {"ts", "level", "logger", "message"} <= set(lines[0])
    assert any("is ready on 127.0.0.1:" in line["message"] for line in lines)
    assert "secret" not in broker.log()
