"""Child processes and what they use, read from /proc.

Owns how a child is started and ended. A child dies with its parent, so that an interrupted run
leaves nothing behind.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


class ProcessError(Exception):
    """A child that did not start, or ended when it should not have."""


def end_with_children() -> None:
    """A SIGTERM is to unwind as Ctrl-C does, so that everything that was started is stopped."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


def start(
    arguments: Sequence[str],
    output: Path,
    env: Mapping[str, str] | None = None,
    user: str | int | None = None,
    cwd: Path | None = None,
) -> subprocess.Popen[bytes]:
    """Start a child. Everything it prints goes to the file `output`."""
    with open(output, "wb") as file:
        return subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            env=dict(env) if env is not None else None,
            cwd=cwd,
            user=user,
            preexec_fn=_die_with_parent,
        )


def end(child: subprocess.Popen[bytes], grace_s: float = 10.0) -> int:
    """Ask the child to stop; kill it when it does not."""
    if child.poll() is None:
        child.send_signal(signal.SIGTERM)
    try:
        return child.wait(grace_s)
    except subprocess.TimeoutExpired:
        child.kill()
        return child.wait()


def tail(output: Path, lines: int = 15) -> str:
    """The last lines a child printed, for an error message."""
    return "\n".join(output.read_text(errors="replace").splitlines()[-lines:])


def cpu_s(pid: int) -> float:
    """User and system time of a process and of all its living descendants."""
    total = 0
    for one in _family(pid):
        fields = _stat(Path(f"/proc/{one}/stat"))
        if fields:
            total += int(fields[11]) + int(fields[12])
            if one == pid:
                total += int(fields[13]) + int(fields[14])  # children that have ended
    return total * _TICK_S


def main_thread_cpu_s(pid: int) -> float:
    """User and system time of a process's first thread alone."""
    fields = _stat(Path(f"/proc/{pid}/task/{pid}/stat"))
    return (int(fields[11]) + int(fields[12])) * _TICK_S if fields else 0.0


def rss_bytes(pid: int) -> int:
    """Resident memory of a process and of all its living descendants."""
    total = 0
    for one in _family(pid):
        try:
            total += int(Path(f"/proc/{one}/statm").read_text().split()[1]) * _PAGE_BYTES
        except (OSError, IndexError):
            pass
    return total


def _family(pid: int) -> list[int]:
    family = [pid]
    for one in family:
        try:
            for task in os.listdir(f"/proc/{one}/task"):
                children = Path(f"/proc/{one}/task/{task}/children").read_text().split()
                family += [int(child) for child in children]
        except OSError:
            pass
    return family


def _stat(path: Path) -> list[str]:
    try:
        text = path.read_text()
    except OSError:
        return []
    return text[text.rindex(")") + 2 :].split()


def _die_with_parent() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
