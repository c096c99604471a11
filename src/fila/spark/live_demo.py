"""`make pipeline`: a broker, load, the pipeline beside it, and its live page in the browser.

Owns the scene and its order: first the page's address, then the page itself once the pipeline has
told of a batch. All ends with Ctrl-C, or after the time that was given; the tables stay.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Final

from fila.spark import demo
from fila.spark.tables.live import EXPORTED

_PER_TICK: Final = {"noisy": 70, "gold": 70, "mailer": 3}
_TICK_S: Final = 0.1
_PORT: Final = 8080
_START_S: Final = 600.0  # Spark on a slow machine
# Batches are small here: compiling their plans costs more than it saves.
_FAST: Final = (
    "--conf", "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "--conf", "spark.sql.codegen.wholeStage=false",
)  # fmt: skip


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make pipeline", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--home", type=Path, default=Path("build") / "demo-pipeline")
    parser.add_argument("--no-browser", action="store_true")
    parser.add_argument("--until-shown", action="store_true", help="end when there is a page")
    args = parser.parse_args(argv)
    home: Path = args.home.absolute()
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    journal, tables = home / "journal", home / "tables"
    gui = f"127.0.0.1:{_free_port()}"
    page = f"http://{gui}/pipeline"
    print(f"A broker with seven tenants, and a pipeline on Spark beside it: {page}", flush=True)
    with demo.running_broker(home, journal, **{"gui.listen_addr": gui}) as address:
        done = threading.Event()
        load = threading.Thread(target=_trouble, args=(address, done), daemon=True)
        load.start()
        job = _pipeline(journal, tables, home / "pipeline.log")
        try:
            ends_at = time.monotonic() + args.minutes * 60
            _wait_for_page(job, journal / EXPORTED, home / "pipeline.log")
            print(f"The page is live. `fila pipeline watch --tables {tables}` shows the same in a "
                  "terminal; Ctrl-C ends it all.", flush=True)  # fmt: skip
            if not args.no_browser:
                webbrowser.open(page)
            while not args.until_shown and time.monotonic() < ends_at and job.poll() is None:
                time.sleep(0.5)
        except KeyboardInterrupt:
            pass
        finally:
            done.set()
            job.send_signal(signal.SIGTERM)
            job.wait(60)
            load.join(10)
    print(f"The journal is in {journal}, the tables are in {tables}.")
    return 0


def _pipeline(journal: Path, tables: Path, log: Path) -> subprocess.Popen[bytes]:
    words = ["run", "--journal", str(journal), "--tables", str(tables), "--trigger", "3s", *_FAST]
    with log.open("w") as said:
        return subprocess.Popen(
            [sys.executable, "-m", "fila.cli.main", "pipeline", *words],
            stdout=said,
            stderr=said,
            start_new_session=True,  # Ctrl-C is ours to pass on
        )


def _wait_for_page(job: subprocess.Popen[bytes], exported: Path, log: Path) -> None:
    until = time.monotonic() + _START_S
    while not exported.exists():
        if job.poll() is not None or time.monotonic() > until:
            raise SystemExit(f"the pipeline did not start:\n{log.read_text()[-2_000:]}")
        time.sleep(0.2)


def _trouble(address: str, done: threading.Event) -> None:
    """Tenants send more than the worker can do, a little each time, until it is over."""
    from fila.client.sync import FilaClient

    ended: Callable[[], bool] = done.is_set
    with FilaClient(address) as client:
        demo.prepare(client)
        worker = threading.Thread(target=demo.work, args=(address, ended), daemon=True)
        worker.start()
        rng = random.Random(1)
        while not done.wait(_TICK_S):
            for tenant, count in _PER_TICK.items():
                headers = {"weight": "3"} if tenant == "gold" else {}
                headers |= {"provider": demo.PROVIDER} if tenant == "mailer" else {}
                demo.send(client, tenant, count, **headers)
            demo.trickle(client, rng)
        worker.join(5)


def _free_port() -> int:
    for port in (_PORT, 0):
        with socket.socket() as found:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                found.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(found.getsockname()[1])
    raise SystemExit("no port of 127.0.0.1 is free")


if __name__ == "__main__":
    sys.exit(main())
