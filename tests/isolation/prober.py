"""The prober: a process of its own that pings a broker every 5 ms and notes the worst answer.

`python -m tests.isolation.prober HOST PORT PID [KEY]` reads lines: `begin` starts a measurement,
`end` prints it as JSON, the end of its input ends it. Beside the time a ping took it notes how much
processor time the broker's loop used meanwhile, which a busy machine does not change.
"""

from __future__ import annotations

import contextlib
import json
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from fila.wire import bodies
from tests.e2e.peer import Closed, Peer

PING_S = 0.005
WAIT_S = 120.0


class Pause(NamedTuple):
    """The worst that was seen between `begin` and `end`."""

    worst_ms: float  # from ping to pong
    held_ms: float  # processor time of the broker's loop within one ping
    pings: int


class Prober:
    """The process, as who measures sees it."""

    def __init__(self, address: tuple[str, int], pid: int, key: str | None = None) -> None:
        command = [sys.executable, "-m", "tests.isolation.prober", address[0], str(address[1])]
        self._process = subprocess.Popen(
            [*command, str(pid), *([key] if key else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._say("begin") == "begun"

    def begin(self) -> None:
        assert self._say("begin") == "begun"

    def end(self) -> Pause:
        return Pause(**json.loads(self._say("end")))

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(WAIT_S)

    def _say(self, word: str) -> str:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(word + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()


def main(host: str, port: str, pid: str, key: str | None = None) -> None:
    used = Path(f"/proc/{pid}/task/{pid}/schedstat")  # of the thread that runs the loop
    peer = Peer((host, int(port)), handshake=False, wait_s=WAIT_S)
    peer.request(bodies.Handshake(1, key), bodies.HandshakeOk)
    worst_s = held_ns = pings = 0.0
    while True:
        began = time.perf_counter()
        before_ns = int(used.read_text().split()[0])
        peer.ping()
        took_s = time.perf_counter() - began
        worst_s = max(worst_s, took_s)
        held_ns = max(held_ns, int(used.read_text().split()[0]) - before_ns)
        pings += 1
        if select.select([sys.stdin], [], [], max(PING_S - took_s, 0))[0]:
            word = sys.stdin.readline().strip()
            if not word:
                return
            if word == "end":
                seen = Pause(worst_s * 1_000, held_ns / 1e6, int(pings))
                print(json.dumps(seen._asdict()), flush=True)
            else:
                print("begun", flush=True)
            worst_s = held_ns = pings = 0.0


if __name__ == "__main__":
    with contextlib.suppress(Closed):  # who measures says what went wrong
        main(*sys.argv[1:])
