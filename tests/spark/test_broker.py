"""A real broker, real clients, real Spark: the reports say what happened, on a cluster too."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from fila.client.sync import FilaClient
from fila.spark import demo
from fila.spark.events import read_events
from fila.spark.fairness import fairness, summary
from fila.spark.funnel import totals
from tests.spark.cluster import SETTINGS, cluster

SECONDS = 7.0


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> tuple[Path, Mapping[str, object]]:
    """The demo's trouble on a broker of its own, and what the broker says about it at the end."""
    home = tmp_path_factory.mktemp("recorded")
    with demo.running_broker(home, home / "journal") as address:
        demo.trouble(address, SECONDS)
        with FilaClient(address) as client:
            stats = {name: client.get_stats(name) for name in ("jobs", "jobs.dlq")}
    return home / "journal", stats


def test_a_real_run_with_trouble_is_fair(spark, recorded) -> None:
    shares = fairness(read_events(spark, str(recorded[0]), queue="jobs"), window_s=1).persist()
    found = {row.queue: row for row in summary(shares).collect()}["jobs"]
    assert (found.verdict, found.failed) == ("PASS", 0)
    assert found.judged >= 2
    rows = shares.collect()
    assert {"noisy", "gold", "mailer", "flaky"} <= {row.fairness_key for row in rows}
    for window in {row.window_start for row in rows}:
        own = [row for row in rows if row.window_start == window]
        assert sum(row.fair_share for row in own) == pytest.approx(sum(r.delivered for r in own))


def test_totals_equal_the_brokers_stats(spark, recorded) -> None:
    root, stats = recorded
    found: Counter[tuple[str, str, str]] = Counter()
    for row in totals(read_events(spark, str(root))).collect():
        found[row.queue, row.fairness_key, row.event] += row["count"]
    keys = {key for queue, key, _ in found if queue == "jobs"}
    pending = {}
    leased = 0
    for key in keys:
        count = {event: found["jobs", key, event] for _, _, event in list(found)}
        stored = count["enqueued"] + count.get("requeued", 0) + count.get("released", 0)
        if stored > count["delivered"]:
            pending[key] = stored - count["delivered"]
        ended = sum(count.get(event, 0) for event in ("acked", "nacked", "expired", "released"))
        leased += count["delivered"] - ended
    assert pending == {one.key: one.pending for one in stats["jobs"].fairness_keys}
    # What the last consumer still held was handed back when it said goodbye, or is in flight.
    assert leased == stats["jobs"].in_flight
    dead = sum(count for (queue, _, event), count in found.items()
               if (queue, event) == ("jobs", "dead_lettered"))  # fmt: skip
    assert dead == stats["jobs.dlq"].depth > 0


def test_a_broker_with_a_quantum_of_a_hundred_thousand_fails(spark, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    with (
        demo.running_broker(tmp_path, journal, scheduler__quantum=100_000) as address,
        FilaClient(address) as client,
    ):
        client.create_queue("jobs", on_enqueue=demo.ON_ENQUEUE)
        for tenant in ("a", "b"):
            client.enqueue_many(("jobs", {"tenant": tenant}, "x") for _ in range(2_000))
        consumer = client.consume("jobs", prefetch=20)
        ends_at = time.monotonic() + 4
        while time.monotonic() < ends_at:
            messages = consumer.receive_many(20, 1.0)
            client.ack_many("jobs", [one.id for one in messages])
            time.sleep(0.05)
    shares = fairness(read_events(spark, str(journal), queue="jobs"), window_s=1)
    assert summary(shares).collect()[0].verdict == "FAIL"
    starved = shares.where("fairness_key = 'b' and delivered = 0 and fair_share > 0")
    assert starved.count() >= 1


def test_a_standalone_cluster_from_the_wheel_runs_the_fairness_job(recorded, tmp_path) -> None:
    """Through the command line, as a user would: no code differs from the embedded form."""
    with cluster(tmp_path) as (master, environ, _):
        words = ["pipeline", "fairness", "--journal", str(recorded[0]), "--queue", "jobs"]
        words += ["--window", "1s", "--json", "--master", master, *SETTINGS]
        done = subprocess.run(
            [sys.executable, "-m", "fila.cli.main", *words],
            env=environ, capture_output=True, text=True, timeout=240,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["queues"][0]["verdict"] == "PASS"
