"""The load tool, small: a real broker, processes of its own, queues that are gone afterwards."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila import FilaClient
from fila.cli.bench import CATEGORIES
from fila.cli.bench.histogram import Histogram, added
from fila.cli.bench.report import latency, shares
from fila.cli.bench.work import NOISY

from .conftest import COMMAND

SMALL = ("bench", "--duration", "300ms", "--warmup", "100ms", "--messages", "600", "--batch", "20")


def of_bench(broker: str) -> list[str]:
    with FilaClient(broker) as client:
        names = [one.name for one in client.list_queues()]
    return [one for one in names if re.fullmatch(r"bench-\w+-\d+", one)]


def test_every_category_is_measured_and_no_queue_is_left(shell, broker):
    found = shell(*SMALL, "--duration", "1s", "--json", timeout_s=120)

    assert found.code == 0, found.err
    results = {one["category"]: one for one in found.document["results"]}
    assert list(results) == list(CATEGORIES)
    for name in CATEGORIES[:4]:
        assert results[name]["messages"] > 0
        assert results[name]["messages_per_s"] > 0
    latency_of = results["enqueue_latency"]["latency"]
    assert 0 < latency_of["p50_ms"] <= latency_of["p99_ms"] <= latency_of["max_ms"]
    counted = sum(row["messages"] for row in latency_of["histogram"])
    assert counted == results["enqueue_latency"]["messages"]
    assert found.document["settings"]["batch"] == 20
    assert of_bench(broker) == []


def test_consumers_end_when_the_queue_is_empty(shell):
    told = (*SMALL, "--category", "consume_throughput", "--consumers", "2", "--duration", "60s")
    (result,) = shell(*told, "--json", timeout_s=120).document["results"]

    assert result["messages"] == 600
    assert result["emptied"]
    assert result["seconds"] < 60


def test_the_quiet_keys_do_not_wait_for_the_noisy_one(shell):
    (result,) = shell(*SMALL, "--category", "fairness", "--json").document["results"]

    assert result["messages"] == 600
    # 33 messages of each of nine keys: ten deliveries a round, and what was under way.
    assert result["quiet_served_after"] <= 10 * 33 + 10
    assert result["oldest_first_would_need"] == 600
    assert result["jain_index"] > 0.99


def test_people_get_lines_and_a_picture(shell):
    found = shell(*SMALL, "--category", "enqueue_latency", "--category", "enqueue_throughput")

    assert found.code == 0, found.err
    assert re.search(r"^enqueue_latency\n  [\d,]+ messages/s, ", found.out, re.MULTILINE)
    assert re.search(r"p50 \S+ ms  p90 ", found.out)
    assert re.search(r"below +[\d.]+ ms +[\d,]+  █", found.out)
    assert found.out.index("enqueue_latency") < found.out.index("enqueue_throughput")


def test_a_rate_is_kept(shell):
    told = (*SMALL, "--category", "enqueue_latency", "--rate", "50", "--duration", "2s", "--json")
    (result,) = shell(*told).document["results"]

    assert 20 <= result["messages"] <= 102


def test_no_more_is_stored_than_allowed(shell):
    told = (*SMALL, "--category", "enqueue_throughput", "--size", "1K", "--stored-max", "100K")
    (result,) = shell(*told, "--duration", "20s", "--json").document["results"]

    assert result["ended_early"]
    assert 0 < result["messages"] <= 100
    assert result["seconds"] < 20


def test_processes_take_the_addresses_and_the_queues_in_turn(shell, broker):
    told = (*SMALL, "--category", "enqueue_consume_mixed", "--queues", "2", "--producers", "2")
    found = shell(*told, "--addr", f"{broker},{broker}", "--json")

    assert found.document["addresses"] == [broker, broker]
    (result,) = found.document["results"]
    assert result["messages"] > 0


def test_queues_are_kept_when_asked(shell, broker):
    found = shell(*SMALL, "--category", "enqueue_throughput", "--keep")

    (name,) = of_bench(broker)
    assert f"kept: {name}" in found.err
    with FilaClient(broker) as client:
        assert client.get_stats(name).depth > 0
        client.delete_queue(name)


def test_an_interrupted_run_removes_its_queues(broker):
    process = subprocess.Popen(
        [*COMMAND, "bench", "--addr", broker, "--category", "enqueue_consume_mixed",
         "--duration", "10m"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not of_bench(broker) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert of_bench(broker)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)

    # Python may end by the signal itself, after all is cleaned up; a shell shows the same for both.
    ended = process.returncode if process.returncode >= 0 else 128 - process.returncode
    assert (ended, err) == (130, b"")
    assert of_bench(broker) == []


@pytest.mark.parametrize(
    ("told", "why"),
    [
        (("--size", "4"), "is too small"),
        (("--size", "many"), "is not a size"),
        (("--category", "speed"), "invalid choice"),
        (("--producers", "0"), "is not a number of at least 1"),
    ],
)
def test_what_makes_no_sense_is_refused(shell, told, why):
    found = shell("bench", *told)

    assert found.code == 2
    assert why in found.err


def test_a_broker_that_is_not_there_is_named(shell):
    found = shell("bench", "--addr", "127.0.0.1:1")

    assert found.code == 1
    assert "127.0.0.1:1" in found.err


@given(st.lists(st.integers(0, 10**8), min_size=1), st.floats(1, 100))
def test_a_percentile_is_wrong_by_three_per_cent_at_most(values, percent):
    halves = [Histogram(), Histogram()]
    for at, value in enumerate(values):
        halves[at % 2].add(value)
    whole = added(halves)
    found = whole.percentile_us(percent)
    reached = [one for one in sorted(values) if one <= found]

    assert whole.total() == len(values)
    assert whole.largest_us == max(values)
    assert len(reached) >= len(values) * percent / 100
    # The bucket's upper limit lies at most 1/32 above a value that was measured.
    assert any(found <= one * (1 + 1 / 32) + 1 for one in values if one <= found)
    assert sum(count for _, count in whole.by_power()) == len(values)


def test_nothing_measured_has_no_percentiles_and_no_picture():
    figures = latency(Histogram())

    assert figures["p50_ms"] == 0
    assert figures["histogram"] == []


def test_shares_tell_an_unfair_order_from_a_fair_one():
    quiet = Counter({"a": 3, "b": 3})
    turns = shares([NOISY, "a", "b"] * 3 + [NOISY] * 3, quiet)
    oldest_first = shares([NOISY] * 6 + ["a", "b"] * 3, quiet)

    assert turns["quiet_served_after"] == 9
    assert oldest_first["quiet_served_after"] == 12
    assert turns["jain_index"] > 0.95 > oldest_first["jain_index"]
    assert turns["largest_share_error"] < 0.5 < oldest_first["largest_share_error"]
