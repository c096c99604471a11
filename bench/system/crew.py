"""A crew: the load processes of one measurement, started once, paused and resumed as needed.

Contestants that are to be compared get a crew each and run in turns (`race`), a moment each, so
that the machine's noise falls on all of them alike. Only one crew works at a time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from bench.record import ROOT
from bench.system import form, process
from bench.system.board import ACKED, READY, ROUND, RUN, SENT, STOP, STORED, Board
from bench.system.process import ProcessError

_READY_S = 60.0
_DRAINED_S = 0.05
_REST_S = 0.15
_POLL_S = 0.002


# When, stored, acknowledged, CPU seconds of the broker, CPU seconds of the workers
Moment = tuple[float, int, int, float, float]


class Job(NamedTuple):
    """One worker process: the module that is run, and what it is told."""

    module: str
    told: dict[str, Any]
    python: str = sys.executable
    compiled: bool | None = None  # which form of the SDK; None: the one that was chosen


class Window(NamedTuple):
    """What happened in one stretch of time."""

    seconds: float
    stored: int
    acked: int
    cpu_s: float  # of the broker
    load_cpu_s: float  # of the workers

    @property
    def rate(self) -> float:
        """Messages acknowledged per second."""
        return self.acked / self.seconds

    @property
    def cpu_us(self) -> float:
        """CPU time of the broker per acknowledged message."""
        return self.cpu_s * 1e6 / max(self.acked, 1)

    @property
    def load_cpu_us(self) -> float:
        """CPU time of producers and consumers per acknowledged message."""
        return self.load_cpu_s * 1e6 / max(self.acked, 1)

    @property
    def stored_rate(self) -> float:
        return self.stored / self.seconds

    @property
    def stored_cpu_us(self) -> float:
        return self.cpu_s * 1e6 / max(self.stored, 1)


class Crew:
    """Use as a context manager. `pid` is the broker whose CPU time is counted."""

    def __init__(self, jobs: Sequence[Job], place: Path, pid: int) -> None:
        self._place = place
        self._jobs = jobs
        self.pid = pid
        place.mkdir(parents=True)
        self._board = Board(place / "board", len(jobs))
        self._children: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Crew:
        try:
            for seat, job in enumerate(self._jobs):
                path = f"{form.package(job.compiled)}{os.pathsep}{ROOT}"
                env = dict(os.environ, PYTHONPATH=path)
                told = {
                    **job.told,
                    "board": str(self._place / "board"),
                    "seats": len(self._jobs),
                    "seat": seat,
                    "samples": str(self._place / f"samples-{seat}"),
                }
                arguments = [job.python, "-m", job.module, json.dumps(told)]
                output = self._place / f"worker-{seat}.log"
                self._children.append(process.start(arguments, output, env, cwd=ROOT))
            self._wait(lambda: self._board.total(READY) == len(self._jobs), _READY_S, "be ready")
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    @property
    def sent(self) -> int:
        return self._board.total(SENT)

    @property
    def stored(self) -> int:
        return self._board.total(STORED)

    @property
    def acked(self) -> int:
        return self._board.total(ACKED)

    def resume(self) -> None:
        self._board.slots[RUN] = 1

    def pause(self) -> None:
        self._board.slots[RUN] = 0

    def next_round(self) -> None:
        """Samples taken from now on belong to the next round."""
        self._board.slots[ROUND] += 1

    def window(self, seconds: float) -> Window:
        """Let it run, and count. Lasts longer when nothing was acknowledged in the time."""
        start = self._now()
        acked = self.acked
        time.sleep(seconds)
        self._wait(lambda: self.acked > acked, 60, "acknowledge anything")
        return _between(start, self._now())

    def stored_window(self, seconds: float) -> Window:
        """A window of enqueues, from one answer to another: frames may be few and large."""
        self._next_answer()
        start = self._now()
        time.sleep(seconds)
        self._next_answer()
        return _between(start, self._now())

    def drain(self, timeout_s: float = 120.0) -> None:
        """Wait until nothing is under way any more."""
        self._wait(lambda: self.acked >= self.sent, timeout_s, "settle what was sent")
        time.sleep(_DRAINED_S)  # answers that are still on their way are counted after this

    def rest(self) -> None:
        """After `pause`: give the workers time to notice and to let go."""
        time.sleep(_REST_S)

    def until(self, done: Callable[[], bool], timeout_s: float, what: str) -> Window:
        """Let it run until something is so, and count."""
        start = self._now()
        self._wait(done, timeout_s, what)
        return _between(start, self._now())

    def stop(self) -> None:
        """End the workers in order: each writes down the samples it took."""
        self._board.slots[STOP] = 1
        for seat, child in enumerate(self._children):
            try:
                code = child.wait(20)
            except subprocess.TimeoutExpired:
                code = process.end(child, 1)
            if code != 0:
                raise ProcessError(f"worker {seat} ended with {code}:\n{self._tail(seat)}")

    def samples(self) -> dict[int, array[int]]:
        """After `stop`: the latencies the workers measured, in ns by round."""
        found: dict[int, array[int]] = {}
        for path in sorted(self._place.glob("samples-*.*")):
            round_number = int(path.suffix[1:])
            found.setdefault(round_number, array("Q")).frombytes(path.read_bytes())
        return found

    def _next_answer(self) -> None:
        before = self.stored
        self._wait(lambda: self.stored != before, 30, "get an answer")

    def _now(self) -> Moment:
        load_cpu_s = sum([process.cpu_s(child.pid) for child in self._children])
        cpu_s = process.cpu_s(self.pid)
        return (time.monotonic(), self.stored, self.acked, cpu_s, load_cpu_s)

    def _wait(self, done: Callable[[], bool], timeout_s: float, what: str) -> None:
        deadline = time.monotonic() + timeout_s
        while not done():
            self._check()
            if time.monotonic() > deadline:
                raise ProcessError(
                    f"the workers did not {what} within {timeout_s:g} s: "
                    f"{self.sent} sent, {self.acked} acknowledged"
                )
            time.sleep(_POLL_S)

    def _check(self) -> None:
        for seat, child in enumerate(self._children):
            if child.poll() is not None:
                raise ProcessError(f"worker {seat} ended early:\n{self._tail(seat)}")

    def _tail(self, seat: int) -> str:
        return process.tail(self._place / f"worker-{seat}.log")

    def _end(self) -> None:
        self._board.slots[STOP] = 1
        for child in self._children:
            process.end(child, 3)


def race(
    crews: Mapping[str, Crew],
    rounds: int,
    window_s: float,
    settle_s: float,
    *,
    drain: bool = True,
    failed: Callable[[str, ProcessError], None] | None = None,
) -> dict[str, list[Window]]:
    """Windows of each contestant, taken in turns; who begins changes from round to round.

    A contestant that fails is out when `failed` is there to be told, else the race is off.
    """
    found: dict[str, list[Window]] = {name: [] for name in crews}
    names = list(crews)
    for at in range(rounds):
        first = at % len(names)
        for name in names[first:] + names[:first]:
            if name not in found:
                continue
            try:
                found[name].append(_turn(crews[name], window_s, settle_s))
                if len(names) > 1:
                    _make_way(crews[name], drain)
            except ProcessError as error:
                if failed is None:
                    raise
                del found[name]
                failed(name, error)
    return found


def _turn(crew: Crew, window_s: float, settle_s: float) -> Window:
    crew.next_round()
    crew.resume()
    time.sleep(settle_s)
    return crew.window(window_s)


def _make_way(crew: Crew, drain: bool) -> None:
    crew.pause()
    if drain:
        crew.drain()
    else:
        crew.rest()


def _between(start: Moment, stop: Moment) -> Window:
    return Window(
        stop[0] - start[0],
        stop[1] - start[1],
        stop[2] - start[2],
        max(stop[3] - start[3], 0.0),
        max(stop[4] - start[4], 0.0),
    )
