"""Administration of many queues, and of queues with many keys."""

from __future__ import annotations

from collections.abc import Iterator

from fila.wire import bodies
from fila.wire import opcodes as op
from fila.wire.forms import ARROW
from tests.e2e.peer import Peer
from tests.isolation.scene import ROOT, Scene, case, enqueue_with

KEYS = 100_000
_DEAD = """
function on_failure(msg)
  return { action = "dlq" }
end
"""


def with_keys(scene: Scene, count: int = KEYS) -> Peer:
    peer = scene.peer()
    peer.create_queue("q")
    scene.fill("q", count, keys=[f"key-{at}" for at in range(count)], payload=b"x")
    return peer


def with_queues(scene: Scene, count: int = 4_999) -> Peer:
    """So many queues, each with its dead-letter queue."""
    peer = scene.peer()
    last = 0
    for at in range(count):
        last = peer.post(bodies.CreateQueue(f"queue-{at}"))
    peer.reply(last)
    return peer


def with_dead_letters(scene: Scene, count: int = KEYS) -> Peer:
    peer = scene.peer()
    peer.create_queue("q", on_failure=_DEAD)
    scene.fill("q", count, keys=[f"key-{at}" for at in range(count)], payload=b"x")
    stream = peer.consume("q", 10_000)
    done = 0
    while done < count:
        ids = [one.id for one in peer.take(stream, min(2_000, count - done))]
        peer.nack("q", *ids)
        done += len(ids)
    peer.cancel(stream)
    return peer


@case("ListQueues", "9,998 queues")
def list_queues(scene: Scene) -> Iterator[None]:
    peer = with_queues(scene)
    yield
    peer.queues()


@case("GetStats", "100,000 keys")
def get_stats(scene: Scene) -> Iterator[None]:
    peer = with_keys(scene)
    yield
    peer.stats("q")


@case("Explain", "100,000 keys")
def explain(scene: Scene) -> Iterator[None]:
    peer = with_keys(scene)
    yield
    peer.request(bodies.Explain("q", keys_max=1_000), bodies.ExplainResult)


@case("Explain", "all of 9,998 queues")
def explain_all(scene: Scene) -> Iterator[None]:
    peer = with_queues(scene)
    yield
    peer.request(bodies.Explain(""), bodies.ExplainResult)


@case("Explain", "one message among 100,000 keys")
def explain_message(scene: Scene) -> Iterator[None]:
    peer = scene.peer()
    peer.create_queue("q")
    (id,) = peer.enqueue("q", b"first")
    scene.fill("q", KEYS, payload=b"x", keys=[f"key-{at}" for at in range(KEYS)])
    yield
    peer.request(bodies.Explain("q", None, id), bodies.ExplainResult)


@case("Redrive", "100,000 dead letters of as many keys")
def redrive(scene: Scene) -> Iterator[None]:
    peer = with_dead_letters(scene)
    yield
    peer.redrive("q.dlq", timeout_s=120)


@case("Purge", "100,000 keys")
def purge(scene: Scene) -> Iterator[None]:
    peer = with_keys(scene)
    yield
    peer.request(bodies.Purge("q"), bodies.PurgeResult)


@case("DeleteQueue", "100,000 keys")
def delete_queue(scene: Scene) -> Iterator[None]:
    peer = with_keys(scene)
    yield
    peer.delete_queue("q")


@case("DeleteQueue", "160,000 messages held")
def delete_held(scene: Scene) -> Iterator[None]:
    scene.peer().create_queue("q")
    scene.fill("q", 160_000)
    scene.hold("q", 160_000, 40_000)
    peer = scene.peer()
    yield
    peer.delete_queue("q")


@case("Browse", "100,000 keys in 1,000 parts")
def browse(scene: Scene) -> Iterator[None]:
    peer = with_keys(scene)
    yield
    peer.request(bodies.Browse("q", None, 1_000), bodies.BrowseResult)


@case("BrowsePage", "as many messages as it may have")
def browse_page(scene: Scene) -> Iterator[None]:
    scene.peer().create_queue("q")
    scene.fill("q", KEYS)
    peer = scene.peer()
    opened = peer.request(bodies.Browse("q"), bodies.BrowseResult)
    start, end = opened.ranges[0]
    wanted = bodies.BrowsePage(opened.snapshot, start, end, 7, 1_000_000, 64 << 20)
    yield
    peer.request(wanted, bodies.BrowsePageResult)


@case("BrowsePage", "the same, as Arrow", browse__preload_arrow=True)
def browse_page_arrow(scene: Scene) -> Iterator[None]:
    scene.peer().create_queue("q")
    scene.fill("q", KEYS)
    peer = scene.peer()
    opened = peer.request(bodies.Browse("q"), bodies.BrowseResult)
    start, end = opened.ranges[0]
    wanted = bodies.BrowsePage(opened.snapshot, start, end, 7, 1_000_000, 64 << 20, ARROW)
    yield
    peer.request(wanted, bodies.BrowsePageResult)


@case("SetConfig", "a limit on, changed and off again, 50,000 lanes")
def set_limit(scene: Scene) -> Iterator[None]:
    peer = scene.peer()
    peer.create_queue("q")
    keys = [f"key-{at}" for at in range(50_000)]
    scene.fill("q", 50_000, keys=keys, payload=b"x", throttle_keys=lambda at: ("shared",))
    stream = peer.consume("q", 65_535)
    peer.take(stream, 50_000)
    scene.fill("q", 50_000, keys=keys, payload=b"x", throttle_keys=lambda at: ("shared",))
    yield
    peer.set_config("throttle.shared", "10,10")
    peer.set_config("throttle.shared", "1000,1000")
    peer.set_config("throttle.shared", "")


@case("a bucket fills", "50,000 lanes wait for 60,000 tokens")
def bucket(scene: Scene) -> Iterator[None]:
    peer = scene.peer()
    peer.create_queue("q")
    peer.set_config("throttle.shared", "1,1")
    keys = [f"key-{at}" for at in range(50_000)]
    stream = peer.consume("q", 65_535)
    scene.fill("q", 50_000, keys=keys, payload=b"x", throttle_keys=lambda at: ("shared",))
    peer.take(stream, 1)
    yield
    peer.set_config("throttle.shared", "60000,60000")
    peer.take(stream, 40_000)


@case("PauseKey and ResumeKey", "a key with 50,000 lanes")
def pause_key(scene: Scene) -> Iterator[None]:
    peer = scene.peer()
    peer.create_queue("q")
    scene.fill(
        "q", 50_000, keys=["one"], payload=b"x", throttle_keys=lambda at: (f"throttle-{at}",)
    )
    yield
    peer.request(bodies.PauseKey("q", "one"), bodies.PauseKeyResult)
    peer.request(bodies.ResumeKey("q", "one"), bodies.ResumeKeyResult)


@case("ListConfig", "10,000 settings")
def list_config(scene: Scene) -> Iterator[None]:
    peer = scene.peer()
    last = 0
    for at in range(10_000):
        last = peer.post(bodies.SetConfig(f"name-{at}", "value" * 10))
    peer.reply(last)
    yield
    peer.list_config("")


@case("SetAcl", "1,000 permissions, 50 connections with 100 consumers", auth__bootstrap_apikey=ROOT)
def set_acl(scene: Scene) -> Iterator[None]:
    root = scene.peer()
    made = root.request(bodies.CreateApiKey("many"), bodies.CreateApiKeyResult)
    grants = tuple([bodies.Permission("consume", f"team-{at}.*") for at in range(999)])
    grants = (*grants, bodies.Permission("consume", "z.*"))
    root.request(bodies.SetAcl(made.key_id, grants), bodies.SetAclResult)
    root.create_queue("z.q")
    for _ in range(50):
        peer = scene.peer(made.key)
        for _ in range(100):
            peer.consume("z.q")
    yield
    root.request(bodies.SetAcl(made.key_id, grants), bodies.SetAclResult)


@case("ListQueues", "9,998 queues, a key with 1,000 permissions", auth__bootstrap_apikey=ROOT)
def list_queues_limited(scene: Scene) -> Iterator[None]:
    root = with_queues(scene)
    made = root.request(bodies.CreateApiKey("many"), bodies.CreateApiKeyResult)
    grants = [bodies.Permission("consume", f"team-{at}.*") for at in range(1_000)]
    root.request(bodies.SetAcl(made.key_id, tuple(grants)), bodies.SetAclResult)
    peer = scene.peer(made.key)
    yield
    peer.queues()


@case("forgetting keys", "100,000 keys run empty, then others come")
def forget_keys(scene: Scene) -> Iterator[None]:
    peer = with_keys(scene)
    stream = peer.consume("q", 10_000)
    yield
    done = 0
    while done < KEYS:
        ids = [one.id for one in peer.take(stream, 2_000)]
        peer.ack("q", *ids)
        done += len(ids)
    body = enqueue_with("q", [(f"other-{at}", 0, "", b"x", ()) for at in range(20_000)])
    peer.reply(peer.send(op.ENQUEUE_WITH, body))
