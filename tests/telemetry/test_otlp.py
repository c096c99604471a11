"""What arrives at a real OTLP collector after a load whose outcome is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fila.telemetry.instruments import COUNTER, INSTRUMENTS
from tests.e2e.peer import Peer
from tests.e2e.process import Broker, wait_until
from tests.grpc.client import Client
from tests.telemetry.collector import Collector, collecting

HOOK = """
function on_enqueue(msg)
  local keys = {}
  if msg.headers["via"] then keys = { "via:" .. msg.headers["via"] } end
  return { fairness_key = msg.headers["tenant"] or "none", weight = 1, throttle_keys = keys }
end
"""
FAILURE = 'function on_failure(msg) return { action = "dlq" } end'
TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"


@pytest.fixture
def collector() -> Iterator[tuple[Collector, str]]:
    with collecting() as found:
        yield found


@pytest.fixture
def start(
    tmp_path: Path, collector: tuple[Collector, str]
) -> Iterator[Callable[[dict[str, object]], Broker]]:
    started: list[Broker] = []

    def make(settings: dict[str, object]) -> Broker:
        own = {"telemetry.otlp_endpoint": collector[1], "telemetry.metrics_interval_ms": 300}
        broker = Broker(tmp_path / f"data{len(started)}", settings={**own, **settings})
        started.append(broker)
        return broker.start()

    yield make
    for broker in started:
        broker.__exit__(None, None, None)


def tenant(name: str, **more: str) -> dict[str, str]:
    return {"tenant": name, **more}


def scripted_load(peer: Peer) -> None:
    """Two tenants of 20; one message dead-lettered and redriven; ten behind a bucket of four."""
    peer.create_queue("q", on_enqueue=HOOK, on_failure=FAILURE)
    peer.set_config("throttle.via:x", "0.001,4")
    for name in ("a", "b"):
        peer.enqueue("q", *[b"m"] * 20, headers=tenant(name))
    stream = peer.consume("q", prefetch=100)
    got = peer.take(stream, 40)
    peer.ack("q", *(one.id for one in got[:39]))
    peer.nack("q", got[39].id, error="boom 42")
    wait_until(lambda: peer.queues()["q.dlq"].depth == 1, 5, "a dead letter")
    assert peer.redrive("q.dlq") == 1
    [again] = peer.take(stream, 1)
    peer.ack("q", again.id)
    peer.enqueue("q", *[b"m"] * 10, headers=tenant("c", via="x"))
    peer.take(stream, 4)  # stay leased; the others wait for tokens


def test_every_instrument_arrives_with_the_right_value(
    start: Callable[[dict[str, object]], Broker], collector: tuple[Collector, str]
) -> None:
    found, _ = collector
    broker = start({"journal.enabled": "true", "telemetry.service_name": "orders-broker"})
    with broker.peer() as peer:
        scripted_load(peer)
        wait_until(
            lambda: (
                "fila.fairness.throughput" in found.metrics
                and found.points("fila.fairness.throughput").get(
                    frozenset({("queue", "q"), ("fairness_key", "c")})
                )
                is not None
            ),
            10,
            "the last tenant's series",
        )
        found.fresh()
        assert found.resource["service.name"] == "orders-broker"
        for one in INSTRUMENTS:
            if one.name.startswith("fila.tls."):
                continue  # absent without TLS; tests/security looks at it
            assert one.name in found.metrics, f"{one.name} did not arrive"
            metric = found.metrics[one.name]
            kind = "sum" if one.kind == COUNTER else one.kind
            assert metric.WhichOneof("data") == kind
            assert metric.unit == one.unit
            for labels in found.points(one.name):
                assert {name for name, _ in labels} == set(one.labels)
        value = found.value
        for what, count in {
            "enqueued": 50,
            "delivered": 45,
            "acked": 40,
            "nacked": 1,
            "expired": 0,
            "requeued": 0,
            "released": 0,
            "dead_lettered": 1,
        }.items():
            assert value(f"fila.messages.{what}", queue="q") == count, what
        assert value("fila.messages.redriven", queue="q.dlq") == 1 or (
            value("fila.messages.redriven", queue="q") == 1
        )
        assert value("fila.queue.depth", queue="q") == 6
        assert value("fila.queue.in_flight", queue="q") == 4
        assert value("fila.queue.consumers", queue="q") == 1
        assert value("fila.queue.fairness_keys", queue="q") == 1
        assert value("fila.queue.throttled", queue="q") == 6
        latency = found.points("fila.delivery.latency")[frozenset({("queue", "q")})]
        assert latency.count == 45 and sum(latency.bucket_counts) == 45
        assert 0 < latency.sum < 45 * 20
        throughput = {
            dict(labels)["fairness_key"]: point.as_int
            for labels, point in found.points("fila.fairness.throughput").items()
            if dict(labels)["queue"] == "q"
        }
        assert throughput["c"] == 4 and throughput["a"] + throughput["b"] == 41
        assert value("fila.fairness.pending", queue="q", fairness_key="c") == 6
        waited = value("fila.fairness.wait", queue="q", fairness_key="a", cause="no_consumer")
        assert waited > 0
        assert value("fila.scheduler.drr.keys_processed", queue="q") >= 41
        assert (
            24 <= value("fila.scheduler.drr.rounds", queue="q") <= 26
        )  # 20 of two, 1 and 4 of one
        assert value("fila.scheduler.drr.active_keys", queue="q") == 0
        assert value("fila.throttle.decisions", throttle_key="via:x", result="pass") == 4
        assert value("fila.throttle.decisions", throttle_key="via:x", result="hit") >= 1
        assert 0 <= value("fila.throttle.tokens_remaining", throttle_key="via:x") < 1
        assert value("fila.lua.executions", queue="q", hook="on_enqueue", outcome="ok") == 51
        assert value("fila.lua.executions", queue="q", hook="on_failure", outcome="ok") == 1
        assert value("fila.lua.errors", queue="q", hook="on_enqueue", kind="error") == 0
        assert value("fila.lua.circuit_breaker.activations", queue="q", hook="on_enqueue") == 0
        hook = found.points("fila.lua.execution_duration_us")
        assert hook[frozenset({("queue", "q"), ("hook", "on_enqueue")})].count == 51
        assert found.points("fila.commit.latency")[frozenset()].count > 5
        assert found.points("fila.commit.batch_size")[frozenset()].sum > 50
        assert value("fila.connections.open") == 1
        assert value("fila.journal.dropped") == 0
        wait_until(lambda: value("fila.journal.written") > 100, 10, "the journal")


def test_a_failing_hook_and_its_breaker_are_counted(
    start: Callable[[dict[str, object]], Broker], collector: tuple[Collector, str]
) -> None:
    found, _ = collector
    with start({}).peer() as peer:
        peer.create_queue("q", on_enqueue="function on_enqueue(msg) error('no') end")
        for _ in range(5):
            peer.enqueue("q", b"m")
        found.fresh()
        labels = {"queue": "q", "hook": "on_enqueue"}
        assert found.value("fila.lua.errors", kind="error", **labels) == 3
        assert found.value("fila.lua.executions", outcome="failed", **labels) == 3
        assert found.value("fila.lua.executions", outcome="bypassed", **labels) == 2
        assert found.value("fila.lua.circuit_breaker.activations", **labels) == 1
        assert found.value("fila.lua.circuit_breaker.open", **labels) == 1


def ratios(found: Collector) -> dict[str, float]:
    points = found.points("fila.fairness.fair_share_ratio")
    return {dict(labels)["fairness_key"]: point.as_double for labels, point in points.items()}


def consume_all(peer: Peer, stream: int, count: int) -> None:
    while count > 0:
        got = peer.take(stream, min(count, 50))
        peer.ack("q", *(one.id for one in got))
        count -= len(got)


def test_every_key_of_a_fair_run_gets_its_due(
    start: Callable[[dict[str, object]], Broker], collector: tuple[Collector, str]
) -> None:
    found, _ = collector
    with start({}).peer() as peer:
        peer.create_queue("q", on_enqueue=HOOK)
        for name, count in (("noisy", 4000), ("b", 1000), ("c", 1000)):
            for _ in range(count // 500):
                peer.enqueue("q", *[b"m"] * 500, headers=tenant(name))
        stream = peer.consume("q", prefetch=50)
        consume_all(peer, stream, 2700)  # all three have messages all the time
        wait_until(
            lambda: "fila.fairness.fair_share_ratio" in found.metrics, 10, "the first ratios"
        )
        found.fresh()
        shown = ratios(found)
        assert set(shown) == {"noisy", "b", "c"}
        assert all(0.95 <= ratio <= 1.05 for ratio in shown.values()), shown


def test_an_unfair_run_shows_its_victim(
    start: Callable[[dict[str, object]], Broker], collector: tuple[Collector, str]
) -> None:
    """A quantum this coarse lets the noisy key send everything before the others' turn."""
    found, _ = collector
    with start({"scheduler.quantum": 100_000}).peer() as peer:
        peer.create_queue("q", on_enqueue=HOOK)
        for _ in range(8):
            peer.enqueue("q", *[b"m"] * 500, headers=tenant("noisy"))
        peer.enqueue("q", *[b"m"] * 500, headers=tenant("victim"))
        stream = peer.consume("q", prefetch=50)
        consume_all(peer, stream, 1000)
        wait_until(
            lambda: "fila.fairness.fair_share_ratio" in found.metrics, 10, "the first ratios"
        )
        found.fresh()
        shown = ratios(found)
        assert shown["victim"] < 0.05
        assert shown["noisy"] > 1.9


def spans(found: Collector, name: str) -> list[Any]:
    with found.lock:
        return [span for span in found.spans if span.name == name]


def test_batches_are_traced_and_belong_to_their_callers_trace(
    start: Callable[[dict[str, object]], Broker], collector: tuple[Collector, str]
) -> None:
    found, _ = collector
    broker = start({"telemetry.trace_ratio": "1"})
    with broker.peer() as peer:
        peer.create_queue("q")
        peer.enqueue("q", b"1", b"2", headers={"traceparent": TRACEPARENT})
        stream = peer.consume("q")
        got = peer.take(stream, 2)
        peer.ack("q", got[0].id)
        peer.nack("q", got[1].id, error="no")
        for name in ("enqueue q", "deliver q", "ack q", "nack q"):
            wait_until(lambda name=name: spans(found, name), 10, name)  # type: ignore[misc]
    [enqueue] = spans(found, "enqueue q")
    assert enqueue.trace_id.hex() == TRACE
    assert enqueue.parent_span_id.hex() == PARENT
    assert enqueue.end_time_unix_nano > enqueue.start_time_unix_nano
    attributes = {one.key: one.value for one in enqueue.attributes}
    assert attributes["messaging.destination.name"].string_value == "q"
    assert attributes["messaging.batch.message_count"].int_value == 2
    deliver = spans(found, "deliver q")[0]
    assert deliver.trace_id.hex() == TRACE
    assert spans(found, "ack q")[0].trace_id.hex() != TRACE  # FIBP's Ack carries no headers


def test_a_caller_that_traces_is_traced_whatever_the_ratio(
    start: Callable[[dict[str, object]], Broker], collector: tuple[Collector, str]
) -> None:
    found, _ = collector
    broker = start({"telemetry.trace_ratio": "0"})
    with broker.peer() as peer:
        peer.create_queue("q")
        peer.enqueue("q", b"untraced", headers={"traceparent": TRACEPARENT})
    with Client(broker.address) as client:
        client.metadata = [("traceparent", TRACEPARENT)]
        client.enqueue("q", b"traced")
        client.metadata = [("traceparent", TRACEPARENT.removesuffix("01") + "00")]
        client.enqueue("q", b"its caller does not trace")
        wait_until(lambda: spans(found, "enqueue q"), 10, "a span")
        found.fresh()
    [span] = spans(found, "enqueue q")
    assert span.trace_id.hex() == TRACE
    assert span.parent_span_id.hex() == PARENT


def test_a_collector_that_is_away_costs_one_line_and_no_delay(
    start: Callable[[dict[str, object]], Broker],
) -> None:
    broker = start(
        {"telemetry.otlp_endpoint": "http://127.0.0.1:9", "telemetry.metrics_interval_ms": 100}
    )
    with broker.peer() as peer:
        peer.create_queue("q")
        peer.enqueue("q", b"m")
        wait_until(lambda: "cannot be sent" in broker.log(), 20, "the complaint")
    assert broker.stop() == 0
    assert broker.log().count("cannot be sent") == 1
