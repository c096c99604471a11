"""`make demo-spark`: half a minute of trouble on a broker of its own, then what the journal says.

Owns the scene: a noisy tenant, one that pays for more, three quiet ones, one behind a slow
provider, one whose work keeps failing; and one worker that could do everybody's work, but not all
at once. The broker is a process like any other; its journal stays for looking further.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fila.testing.process import broker

if TYPE_CHECKING:
    from fila.client.sync import FilaClient

QUEUE: Final = "jobs"
PROVIDER: Final = "sms"
ON_ENQUEUE: Final = """function on_enqueue(msg)
  local keys = {}
  if msg.headers["provider"] then keys[1] = msg.headers["provider"] end
  return {
    fairness_key = msg.headers["tenant"],
    weight = tonumber(msg.headers["weight"] or "1"),
    throttle_keys = keys,
  }
end"""
ON_FAILURE: Final = """function on_failure(msg)
  if msg.attempts >= 3 then return { action = "dlq" } end
  return { action = "retry", delay_ms = 200 * msg.attempts }
end"""
QUIET: Final = ("acme", "globex", "initech")
_WORK_PER_S: Final = 1_200
_PREFETCH: Final = 20


def main(argv: list[str] | None = None) -> int:
    words = sys.argv[1:] if argv is None else argv
    seconds = float(words[0]) if words else 30.0
    home = Path("build") / "demo-spark"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    journal = home / "journal"
    print(f"A broker with its journal on, seven tenants, one worker, {seconds:.0f} s …", flush=True)
    with running_broker(home, journal) as address:
        trouble(address, seconds)
    return _tell(home, journal)


def trouble(address: str, seconds: float) -> None:
    """Tenants send and the worker works, for so long."""
    from fila.client.sync import FilaClient

    ends_at = time.monotonic() + seconds

    def over() -> bool:
        return time.monotonic() >= ends_at

    with FilaClient(address) as client:
        prepare(client)
        worker = threading.Thread(target=work, args=(address, over))
        send(client, "noisy", round(400 * seconds))
        send(client, "gold", round(400 * seconds), weight="3")
        send(client, "mailer", round(40 * seconds), provider=PROVIDER)
        worker.start()
        rng = random.Random(1)
        while not over():
            trickle(client, rng)
            time.sleep(0.1)
        worker.join()


def prepare(client: FilaClient) -> None:
    """The queue with its hooks, and the provider's limit."""
    client.set_config(f"throttle.{PROVIDER}", "20,20")
    client.create_queue(QUEUE, on_enqueue=ON_ENQUEUE, on_failure=ON_FAILURE)


def trickle(client: FilaClient, rng: random.Random) -> None:
    """What the quiet tenants and the failing one send in a tenth of a second."""
    for tenant in QUIET:
        if rng.random() < 0.5:
            send(client, tenant, 1)
    send(client, "flaky", rng.randint(0, 2))


@contextmanager
def running_broker(home: Path, journal: Path, **settings: object) -> Iterator[str]:
    """A broker that writes its journal there, as long as the block lasts. Yields its address."""
    chosen = {"journal.enabled": True, "journal.path": journal.absolute(), **settings}
    with broker(chosen, directory=home) as running:
        try:
            yield running.address
        finally:
            running.stop()  # only then the journal is complete


def send(client: FilaClient, tenant: str, count: int, **headers: str) -> None:
    if count:
        client.enqueue_many(
            (QUEUE, {"tenant": tenant, **headers}, f"{tenant} {at}") for at in range(count)
        )


def work(address: str, over: Callable[[], bool]) -> None:
    """Handle so many messages a second; what the flaky tenant wants fails half of the time."""
    from fila.client.sync import FilaClient

    rng = random.Random(2)
    started_at = time.monotonic()
    handled = 0
    with FilaClient(address) as client:
        consumer = client.consume(QUEUE, prefetch=_PREFETCH)
        while not over():
            due = int((time.monotonic() - started_at) * _WORK_PER_S) - handled
            if due < 1:
                time.sleep(0.01)
                continue
            messages = consumer.receive_many(min(due, _PREFETCH), 0.5)
            handled += len(messages)
            good = [one.id for one in messages if not _fails(one.headers["tenant"], rng)]
            bad = {one.id for one in messages} - set(good)
            if good:
                client.ack_many(QUEUE, good)
            for id in bad:
                client.nack(QUEUE, id, f"no answer from 10.0.0.{rng.randint(1, 9)} in 250 ms")


def _fails(tenant: str, rng: random.Random) -> bool:
    return tenant == "flaky" and rng.random() < 0.5


def _tell(home: Path, journal: Path) -> int:
    """What `fila pipeline report` says, and its page."""
    page = home / "report.html"
    words = ["report", "--journal", str(journal), "--queue", QUEUE, "--top", "7"]
    words += ["--output", "table", "--output", f"html:{page}"]
    print(f"\n$ fila pipeline {' '.join(words)}", flush=True)
    done = subprocess.run([sys.executable, "-m", "fila.cli.main", "pipeline", *words])
    print(f"\nThe journal is in {journal}, the page with pictures is {page}.")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
