"""The demo, small and fast: a real broker, real queues, the same claims."""

import os
import pty
import signal
import subprocess
import time
from pathlib import Path

import pytest

from fila.cli.demo.race import FAIR, FIFO, TENANTS, Delivered, Race
from fila.cli.demo.screen import frame
from tests.cli.conftest import COMMAND

SMALL = ("demo", "--noisy", "300", "--quiet", "5", "--rate", "300")


def test_quiet_tenants_are_served_first_by_fila_and_last_by_fifo(run):
    document = run(*SMALL, "--json").document
    by_tenant = {one["tenant"]: one for one in document["tenants"]}
    assert list(by_tenant) == list(TENANTS)
    noisy = by_tenant.pop("noisy-corp")
    assert noisy["arrived"] == noisy["fifo"]["delivered"] == {"first": 1, "last": 300}
    assert noisy["fila"]["delivered"] == {"first": 1, "last": 315}
    for number, quiet in enumerate(by_tenant.values()):
        assert quiet["arrived"] == {"first": 301 + number, "last": 313 + number}
        assert quiet["fifo"]["delivered"] == quiet["arrived"]
        assert quiet["fila"]["delivered"] == {"first": 2 + number, "last": 18 + number}


def test_without_a_terminal_the_demo_is_plain_lines(shell):
    result = shell(*SMALL)
    assert (result.code, result.err) == (0, "")
    assert "\x1b" not in result.out
    assert "FIFO had served the quiet tenants after 315 deliveries, Fila after 20." in result.out
    assert "  FIFO  300 × noisy-corp, acme, globex, initech, acme, globex, …\n" in result.out
    assert "  Fila  noisy-corp, acme, globex, initech, noisy-corp, acme, …\n" in result.out
    assert max(map(len, result.out.splitlines())) <= 80


def test_on_a_terminal_the_bars_move_in_place():
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *SMALL],
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "PYTHONIOENCODING": "utf-8"},
    )
    os.close(theirs)
    seen = b""
    try:
        while data := os.read(ours, 65536):
            seen += data
    except OSError:
        pass  # the other end of a terminal closes with an error
    os.close(ours)
    assert process.wait(10) == 0
    assert seen.count(b"\x1b[5A") > 5
    assert "█" * 20 in seen.decode() and b"\x1b[?25h" in seen


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_an_interrupted_demo_leaves_no_broker_and_no_directory(tmp_path, number, code):
    with subprocess.Popen(
        [*COMMAND, "demo"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        start_new_session=True,
    ) as process:
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob("fila-*/data.port")):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        time.sleep(0.5)  # somewhere between the first message and the last
        os.killpg(process.pid, number)  # as a terminal does
        _, err = process.communicate(timeout=60)
    # Python may end by the signal itself, after all is cleaned up, when it came while a module was
    # being made by `exec`; a shell shows the same for both.
    ended = process.returncode if process.returncode >= 0 else 128 - process.returncode
    assert (ended, err) == (code, b"")
    assert list(tmp_path.iterdir()) == []
    assert not processes_that_mention(tmp_path)


def processes_that_mention(path: Path) -> list[str]:
    found = []
    for command_line in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(path).encode() in command_line.read_bytes():
                found.append(command_line.parent.name)
        except OSError:
            pass  # it has ended meanwhile
    return found


def test_settings_in_the_environment_do_not_reach_the_demos_broker(run, monkeypatch):
    monkeypatch.setenv("FILA_SCHEDULER__QUANTUM", "1000")
    monkeypatch.setenv("FILA_BOOTSTRAP_APIKEY", "secret")
    document = run("demo", "--noisy", "50", "--quiet", "2", "--rate", "1000", "--json").document
    assert document["tenants"][1]["fila"]["delivered"]["first"] == 2


def test_a_frame_shows_a_bar_per_tenant_and_queue():
    race = Race(noisy=200, quiet=100, rate=1)
    assert frame(
        race, {FIFO: {"noisy-corp": 100}, FAIR: {"noisy-corp": 25, "acme": 100}}, False
    ) == [
        "FIFO: a queue without a hook              Fila: fairness key = tenant",
        "noisy-corp ██████████··········     100   noisy-corp ██▌·················      25",
        "acme       ····················       0   acme       ████████████████████     100",
        "globex     ····················       0   globex     ····················       0",
        "initech    ····················       0   initech    ····················       0",
    ]


def test_a_race_is_over_when_both_queues_are_empty():
    race = Race(noisy=1, quiet=1, rate=1)
    assert len(race.arrivals) == 4 and not race.finished
    for queue in (FIFO, FAIR):
        race.delivered[queue] = [Delivered("acme", 1, 0)] * 4
    assert race.finished
