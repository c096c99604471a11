"""Those who watch: scrapes, the dashboard, the journal."""

from __future__ import annotations

import time
from collections.abc import Iterator

from tests.isolation.queues import with_keys, with_queues
from tests.isolation.scene import Scene, case


@case("GET /metrics", "40,000 keys in 2,000 queues of 20")
def metrics_keys(scene: Scene) -> Iterator[None]:
    with_queues(scene, 2_000)
    keys = [f"key-{at}" for at in range(20)]
    for at in range(2_000):
        scene.fill(f"queue-{at}", 20, keys=keys, payload=b"x")
    time.sleep(2)
    yield
    scene.broker.visitor().get("/metrics")


@case("GET /metrics", "9,998 queues")
def metrics_queues(scene: Scene) -> Iterator[None]:
    with_queues(scene)
    time.sleep(2)
    yield
    scene.broker.visitor().get("/metrics")


@case("the pulse", "9,998 queues, for 3 s")
def pulse_queues(scene: Scene) -> Iterator[None]:
    with_queues(scene)
    yield
    time.sleep(3)


@case("the pulse", "100,000 keys, for 12 s")
def pulse_keys(scene: Scene) -> Iterator[None]:
    with_keys(scene)
    yield
    time.sleep(12)


@case("the pulse", "10,000 buckets and 50,000 lanes that wait, for 3 s")
def pulse_buckets(scene: Scene) -> Iterator[None]:
    peer = scene.peer()
    peer.create_queue("q")
    for at in range(10_000):
        peer.set_config(f"throttle.t-{at}", "0.001,1")
    stream = peer.consume("q", 65_535)
    keys = [f"key-{at}" for at in range(50_000)]
    scene.fill("q", 50_000, keys=keys, payload=b"x", throttle_keys=lambda at: (f"t-{at % 10_000}",))
    peer.take(stream, 10_000)
    yield
    time.sleep(3)


@case("dashboard: overview", "9,998 queues")
def overview(scene: Scene) -> Iterator[None]:
    with_queues(scene)
    time.sleep(2)
    yield
    scene.broker.visitor().api("overview", history=300)


@case("dashboard: keys of a queue", "100,000 keys, five orders")
def keys_page(scene: Scene) -> Iterator[None]:
    with_keys(scene)
    time.sleep(2)
    yield
    visitor = scene.broker.visitor()
    for order in ("pending", "share", "name", "weight", "delivered"):
        visitor.get("/api/v1/keys", queue="q", sort=order)


@case("dashboard: a queue", "100,000 keys")
def queue_page(scene: Scene) -> Iterator[None]:
    with_keys(scene)
    time.sleep(2)
    yield
    visitor = scene.broker.visitor()
    visitor.api("queue", name="q", history=300)
    visitor.api("explain", queue="q")


@case(
    "the journal's snapshot",
    "100,000 keys, for 4 s",
    journal__enabled=True,
    journal__snapshot_interval_ms=1_000,
)
def journal_snapshot(scene: Scene) -> Iterator[None]:
    with_keys(scene)
    yield
    time.sleep(4)
