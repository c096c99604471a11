"""Everything between the broker and its tables is killed, again and again; the tables are exact.

    python -m tests.spark.storm --minutes 60 --seed 7

A broker under load with its journal on; `fila journal ship` to an S3 server; `fila pipeline run`
over the journal; compaction of what is sealed. A seed says who is killed (SIGKILL) when: the
broker, the driver with its JVM, a Python worker of Spark's, the shipper, the compaction. At the end
all that was written is read to its end, and

- the events table has every row of the journal once, and no other;
- so has what was shipped, and tables made of that from the beginning are the same, products too;
- facts and open cells count what the events do; of the broker's last run they are its own counters,
  and what is pending and leased then is what the broker says.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from fila.client.errors import FilaError
from fila.spark import demo
from fila.testing.process import RealBroker
from tests.object_store import bucket

COUNTED: Final = ("enqueued", "delivered", "acked", "nacked", "expired", "requeued", "released",
                  "dead_lettered")  # fmt: skip
_FAST: Final = ["--conf", "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
                "--conf", "spark.sql.codegen.wholeStage=false", "--master", "local[1]"]  # fmt: skip
_COMPACT: Final = """
import sys, time
from datetime import date
from fila.spark.compact import compact
from fila.spark.session import get_spark
spark = get_spark("local[1]", conf={"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"})
while True:
    compact(spark, sys.argv[1], date(2100, 1, 1), grace_s=5)
    time.sleep(2)
"""


class Storm:
    def __init__(self, home: Path, address: str, seed: int, every_s: float) -> None:
        self.home = home
        self.journal, self.tables = home / "journal", home / "tables"
        self.address = address
        self.kills: Counter[str] = Counter()
        self._rng = random.Random(seed)
        self._every_s = every_s
        self._over = threading.Event()
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self._broker = RealBroker(
            home / "data",
            {
                "journal.enabled": True, "journal.path": self.journal,
                "journal.seal_interval_ms": 2_000, "journal.snapshot_interval_ms": 5_000,
                "gui.listen_addr": f"127.0.0.1:{self._port}",
            },
        )  # fmt: skip
        self._commands = {
            "driver": self.pipeline("run", "--trigger", "1s", *_FAST),
            "shipper": self.fila("journal", "ship", str(self.journal), "--to", address,
                                 "--every", "3s"),
            "compaction": [sys.executable, "-c", _COMPACT, str(self.journal)],
        }  # fmt: skip
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def fila(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "fila.cli.main", *words]

    def pipeline(self, verb: str, *words: str, journal: str = "", tables: str = "") -> list[str]:
        return self.fila("pipeline", verb, "--journal", journal or str(self.journal), "--tables",
                         tables or str(self.tables), *words)  # fmt: skip

    def run(self, seconds: float) -> dict[str, Any]:
        """The storm, and what the broker said at its end."""
        with self._broker:
            with self._broker.client() as client:
                demo.prepare(client)
            load = [threading.Thread(target=self._load), threading.Thread(target=self._work)]
            for thread in load:
                thread.start()
            for name in self._commands:
                self._start(name)
            try:
                self._rage(time.monotonic() + seconds)
            finally:
                self._over.set()
                for thread in load:
                    thread.join()
                for process in self._running.values():
                    _end(process)
            said = self._said()
            self._broker.stop()
        self._finish(
            self.fila("journal", "ship", str(self.journal), "--to", self.address, "--once")
        )
        self._finish(self.pipeline("run", "--available-now", *_FAST))
        again = self.pipeline("run", "--available-now", *_FAST, journal=self.address,
                              tables=str(self.home / "again"))  # fmt: skip
        self._finish(again)
        return said

    # --- load that outlives its broker

    def _load(self) -> None:
        rng = random.Random(1)
        while not self._over.is_set():
            try:
                with self._broker.client() as client:
                    while not self._over.is_set():
                        demo.send(client, "noisy", rng.randint(1, 60))
                        demo.send(client, "gold", rng.randint(1, 60), weight="3")
                        demo.trickle(client, rng)
                        time.sleep(0.1)
            except (FilaError, OSError):
                time.sleep(0.1)

    def _work(self) -> None:
        while not self._over.is_set():
            try:
                demo.work(self._broker.address, self._over.is_set)
            except (FilaError, OSError):
                time.sleep(0.1)

    # --- kills

    def _rage(self, until: float) -> None:
        while time.monotonic() < until:
            time.sleep(self._rng.uniform(0.2, 2 * self._every_s))
            self._kill(self._rng.choice(("broker", "worker", *self._commands)))

    def _start(self, name: str) -> None:
        with (self.home / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                self._commands[name], stdout=log, stderr=log, start_new_session=True
            )

    def _kill(self, name: str) -> None:
        if name == "broker":
            self._broker.restart()
        elif name == "worker":
            workers = _python_workers(self._running["driver"].pid)
            if not workers:
                return  # none has been started yet
            os.kill(self._rng.choice(workers), signal.SIGKILL)
        else:
            process = self._running[name]
            code = process.poll()
            log = (self.home / f"{name}.log").read_text(errors="replace")[-4_000:]
            assert code in (None, -signal.SIGKILL), f"{name} ended by itself ({code}): {log}"
            _end(process)
            self._start(name)
        self.kills[name] += 1

    def _said(self) -> dict[str, Any]:
        """The broker's own counters of this run, and what it holds."""
        with self._broker.client() as client:
            stats = client.get_stats(demo.QUEUE)
        counters = self._counters()
        before: dict[str, int] = {}
        while counters != before:  # they are read once a second
            time.sleep(2.5)
            counters, before = self._counters(), counters
        return {"depth": stats.depth, "in_flight": stats.in_flight, "counters": counters}

    def _counters(self) -> dict[str, int]:
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/metrics", timeout=10) as answer:
            text = answer.read().decode()
        counters = {}
        for name in COUNTED:
            start = f'fila_messages_{name}_total{{queue="{demo.QUEUE}"}} '
            lines = [line for line in text.splitlines() if line.startswith(start)]
            counters[name] = round(float(lines[0].rpartition(" ")[2])) if lines else 0
        return counters

    def _finish(self, command: list[str]) -> None:
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}: {done.stderr[-4_000:]}"


def check(spark: Any, storm: Storm, said: dict[str, Any]) -> dict[str, int]:
    """Compare everything with everything; what there was."""
    from pyspark.sql import functions as fn

    from fila.spark.events import read_events
    from fila.spark.tables.schemas import schemas
    from fila.spark.tables.store import ParquetStore
    from tests.spark.tables.test_tables import same

    one = ParquetStore(spark, str(storm.tables), schemas())
    again = ParquetStore(spark, str(storm.home / "again"), schemas())

    def rows(store: Any, table: str) -> Any:
        return store.read(table, store.contents().of(table)).drop("date", "hour")

    recorded, events = read_events(spark, str(storm.journal)), rows(one, "events")
    number = ["broker", "epoch", "seq"]
    count = events.count()
    assert count == recorded.count() == events.select(*number).distinct().count()
    assert same(events, recorded), "the events table is not the journal"
    for table in schemas():
        assert same(rows(one, table), rows(again, table)), f"{table}: not the same from the store"
        stored = {file.path for file in one.place.files(table)}
        assert stored == {file.path for file in one.contents().of(table)}, f"{table}: left over"

    last = one.contents().last
    assert last is not None
    cells = rows(one, "facts").select(*schemas_cells()).unionByName(
        spark.read.parquet(one.place.address(f"{last.state}/cells"))
    )  # fmt: skip
    newest = recorded.agg(fn.max("epoch")).collect()[0][0]
    own = cells.where(f"queue = '{demo.QUEUE}'")
    sums = [fn.coalesce(fn.sum(name), fn.lit(0)).alias(name) for name in COUNTED]
    counted = own.where(f"epoch = {newest}").agg(*sums).collect()[0].asDict()
    assert counted == said["counters"], (counted, said["counters"])
    lost = recorded.where("event = 'journal_gap'").agg(fn.sum("events")).collect()[0][0] or 0
    held = (
        own.where(f"epoch = {newest} and fairness_key != ''")
        .groupBy("fairness_key")
        .agg(fn.max_by("pending", "window").alias("pending"))
        .agg(fn.sum("pending"))
        .collect()[0][0]
    )
    assert held == said["depth"], (held, said["depth"])
    return {"events": count, "lost with a killed broker": lost,
            "facts": rows(one, "facts").count(), "batches": last.batch + 1}  # fmt: skip


def schemas_cells() -> list[str]:
    from fila.spark.tables.cells import COLUMNS

    return list(COLUMNS)


def _end(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL to it and all it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def _python_workers(driver: int) -> list[int]:
    """Spark's Python workers below a driver, by what the kernel says."""
    children: dict[int, list[int]] = {}
    names: dict[int, bytes] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(status.read_text().rpartition(")")[2].split()[1])
            names[int(status.parent.name)] = (status.parent / "cmdline").read_bytes()
        except (OSError, ValueError):
            continue
        children.setdefault(parent, []).append(int(status.parent.name))
    found, looked_at = [], [driver]
    while looked_at:
        for child in children.get(looked_at.pop(), []):
            looked_at.append(child)
            # `python -m pyspark.daemon` and the like; the script that starts the JVM is none.
            if b"\0-m\0pyspark." in names.get(child, b""):
                found.append(child)
    return found


def storm(
    minutes: float, seed: int, every_s: float, spark: Any = None
) -> tuple[Storm, dict[str, int]]:
    """One storm with its checks; a session of its own unless one is given."""
    with tempfile.TemporaryDirectory(prefix="fila-storm-") as home, contextmanager(bucket)() as at:
        made = Storm(Path(home), f"{at}/storm-{seed}", seed, every_s)
        said = made.run(minutes * 60)
        if spark is None:
            from fila.spark.session import get_spark

            spark = get_spark("local[2]", app="fila storm")
        return made, check(spark, made, said)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.spark.storm",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--minutes", type=float, default=60.0, help="how long (default 60)")
    parser.add_argument("--seed", type=int, default=0, help="who is killed when")
    parser.add_argument("--every", type=float, default=6.0, help="mean seconds between kills")
    args = parser.parse_args()
    made, found = storm(args.minutes, args.seed, args.every)
    kills = ", ".join(f"{name} {count}" for name, count in sorted(made.kills.items()))
    told = ", ".join(f"{count:,} {name}" for name, count in found.items())
    print(f"{sum(made.kills.values())} kills ({kills}); {told}")
    print("every row once, the same tables from the store, the broker's own counters")
    return 0


if __name__ == "__main__":
    sys.exit(main())
