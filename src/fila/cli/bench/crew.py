"""The processes that make the load: started together, watched, ended with the command.

Owns the counters they share and the moment at which all begin. A process is forked, connects, says
that it is ready and begins when everybody is; what it measured comes back through a pipe. When one
fails, or the command is interrupted, all are ended.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Sequence
from ctypes import c_int64
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from typing import Any, Final, NamedTuple

from fila.cli.failure import Failure
from fila.cli.progress import Progress

_GLANCE_S: Final = 0.1
_CONNECT_S: Final = 30.0
_LATE_S: Final = 30.0  # how long after its end a process may still wait for an answer
_FORK: Final = multiprocessing.get_context("fork")


class Span(NamedTuple):
    """When the load begins, from when on it is measured, and its end, on the monotonic clock."""

    begin: float
    measured: float
    end: float


class Seat:
    """A process's own counters, and a look at those of everybody."""

    def __init__(self, enqueued: Any, acked: Any, number: int) -> None:
        self._enqueued = enqueued
        self._acked = acked
        self._number = number

    def add_enqueued(self, count: int) -> None:
        self._enqueued[self._number] += count

    def add_acked(self, count: int) -> None:
        self._acked[self._number] += count

    def waiting(self) -> int:
        """Messages enqueued and not acknowledged yet, by all."""
        return int(sum(self._enqueued) - sum(self._acked))

    def acked(self) -> int:
        return int(sum(self._acked))


# What a process does: it opens what it needs and returns what to do once all are ready.
Work = Callable[[Seat], Callable[[Span], Any]]


def perform(
    works: Sequence[Work], warmup_s: float, duration_s: float, verb: str, quiet: bool
) -> list[Any]:
    """Let all of them run at once; returns what each measured, in order."""
    enqueued = _FORK.RawArray(c_int64, len(works))
    acked = _FORK.RawArray(c_int64, len(works))
    pipes: list[Connection] = []
    processes: list[ForkProcess] = []
    try:
        for number, work in enumerate(works):
            ours, theirs = _FORK.Pipe()
            seat = Seat(enqueued, acked, number)
            process = _FORK.Process(target=_live, args=(work, seat, theirs), daemon=True)
            process.start()
            theirs.close()
            pipes.append(ours)
            processes.append(process)
        for pipe in pipes:
            _heard(pipe, _CONNECT_S)
        begin = time.monotonic() + 0.02
        span = Span(begin, begin + warmup_s, begin + warmup_s + duration_s)
        for pipe in pipes:
            pipe.send(span)
        return _watched(pipes, span, lambda: max(sum(enqueued), sum(acked)), verb, quiet)
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.join(5)


def _watched(
    pipes: list[Connection], span: Span, done: Callable[[], int], verb: str, quiet: bool
) -> list[Any]:
    results: dict[int, Any] = {}
    shown = 0
    with Progress(verb, enabled=not quiet) as progress:
        while len(results) < len(pipes):
            if time.monotonic() > span.end + _LATE_S:
                raise Failure(f"the broker gave no answer within {_LATE_S:.0f} s")
            open_ = [pipe for at, pipe in enumerate(pipes) if at not in results]
            for pipe in wait(open_, _GLANCE_S):
                at = pipes.index(pipe)  # type: ignore[arg-type]
                results[at] = _heard(pipes[at], 0)
            now = done()
            progress.add(now - shown)
            shown = now
    return [results[at] for at in range(len(pipes))]


def _heard(pipe: Connection, timeout_s: float) -> Any:
    if timeout_s and not pipe.poll(timeout_s):
        raise Failure(f"a process of the load could not connect within {timeout_s:.0f} s")
    try:
        kind, value = pipe.recv()
    except EOFError:
        raise Failure("a process of the load ended without a word") from None
    if kind == "failed":
        raise Failure(*value)
    return value


def _live(work: Work, seat: Seat, pipe: Connection) -> None:
    """The life of one process; it leaves no traces at its end but what it says."""
    from fila.cli import failure

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command ends us
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        go = work(seat)
        pipe.send(("ready", None))
        span = pipe.recv()
        pipe.send(("done", go(span)))
    except EOFError:
        pass  # the command is gone
    except Exception as error:
        known = failure.explain(error)
        text = (known.message, known.hint) if known else (f"{type(error).__name__}: {error}",)
        pipe.send(("failed", text))
    finally:
        pipe.close()
        os._exit(0)  # not through what was forked with us: buffers, exit handlers
