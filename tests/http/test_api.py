"""The JSON API shows what is there, pages ten thousand keys, and does what it is asked to."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from fila.telemetry.instruments import BY_NAME, prometheus_name
from tests.e2e.peer import Peer
from tests.http.visitor import HttpBroker, Visitor

HOOK = """
function on_enqueue(msg)
  local keys = {}
  if msg.headers["via"] then keys = { "via:" .. msg.headers["via"] } end
  return { fairness_key = msg.headers["tenant"] or "none", throttle_keys = keys }
end
"""
DEAD = 'function on_failure(msg) return { action = "dlq" } end'
HOSTILE = '<img src=x onerror="alert(1)">\u202e🦀'


def test_health_and_readiness_are_open(visitor: Visitor) -> None:
    assert visitor.get("/healthz").body == b"ok\n"
    assert visitor.get("/readyz").body == b"ready\n"
    assert visitor.request("HEAD", "/healthz").body == b""
    assert visitor.request("POST", "/healthz").status == 405


def test_the_page_may_load_nothing_from_elsewhere(visitor: Visitor) -> None:
    answer = visitor.get("/")
    assert answer.status == 200
    assert "<title>" in answer.body.decode()
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "http" not in policy
    assert visitor.get("/queues/deep/link").body == answer.body
    assert visitor.get("/assets/no-such-file.js").status == 404


def test_the_overview_lists_queues_with_their_rates_and_past(
    visitor: Visitor, peer: Peer, queue: str
) -> None:
    peer.create_queue(queue)
    peer.enqueue(queue, *[b"m"] * 7)

    def row(_: Visitor) -> object:
        found = visitor.api("overview", history=60)["queues"]
        return next((one for one in found if one["name"] == queue and one["depth"] == 7), None)

    visitor.wait(row, "the queue to be seen")
    visitor.beats()
    [shown] = [one for one in visitor.api("overview", history=60)["queues"] if one["name"] == queue]
    assert shown["dlq"] == {"name": f"{queue}.dlq", "depth": 0}
    assert shown["admin"] is True and shown["is_dlq"] is False
    points = shown["series"]["points"]
    assert points["depth"][-1] == 7
    # Rates over beats of about a second; what exactly they are the pulse's own tests tell.
    assert 0 < sum(points["enqueued"]) <= 14
    assert len({len(values) for values in points.values()}) == 1


def test_a_queue_shows_consumers_hooks_buckets_and_waits(
    visitor: Visitor, peer: Peer, queue: str
) -> None:
    peer.create_queue(queue, on_enqueue=HOOK)
    peer.set_config(f"throttle.via:{queue}", "0.001,2")
    stream = peer.consume(queue, prefetch=10)
    peer.enqueue(queue, *[b"m"] * 5, headers={"tenant": HOSTILE, "via": queue})
    peer.take(stream, 2)
    visitor.wait(lambda _: visitor.get("/api/v1/queue", name=queue).status == 200, "the queue")
    visitor.beats()
    shown = visitor.api("queue", name=queue, history=300)
    assert shown["depth"] == 3 and shown["in_flight"] == 2 and shown["throttled"] == 3
    [consumer] = shown["consumers"]
    assert consumer["prefetch"] == 10 and consumer["in_flight"] == 2
    assert consumer["peer"].startswith("127.0.0.1:")
    assert shown["hooks"]["on_enqueue"]["breaker"] == "closed"
    assert shown["hooks"]["on_enqueue"]["executions"] == 5
    [bucket] = shown["buckets"]
    assert bucket["name"] == f"via:{queue}" and bucket["waiting_messages"] == 3
    assert bucket["passed"] == 2 and bucket["tokens"] < 1
    [busiest] = shown["top"]
    assert busiest["name"] == HOSTILE and busiest["pending"] == 3 and busiest["weight"] == 1
    points = busiest["series"]["points"]
    assert points.keys() == {"share", "fair_share"}
    assert len(points["share"]) == len(points["fair_share"]) >= 1
    assert shown["latency_ms"]["p50"] is not None
    page = visitor.api("keys", queue=queue)
    assert page["rows"][0]["name"] == HOSTILE and page["rows"][0]["state"] == "throttled"
    key = visitor.api("key", queue=queue, key=page["rows"][0]["ref"], history=300)
    assert key["key"]["pending"] == 3 and key["key"]["delivered"] == 2
    assert key["tracked"] is True and key["series"]["points"]["pending"][-1] == 3
    assert [one["name"] for one in key["buckets"]] == [f"via:{queue}"]


def test_ten_thousand_keys_are_sorted_paged_and_filtered(own_site: HttpBroker) -> None:
    own_site.start()
    visitor = own_site.visitor()
    with own_site.peer() as peer:
        peer.create_queue("q", on_enqueue=HOOK)
        for start in range(0, 10_000, 500):
            pending = [
                peer.post_enqueue(
                    "q", [b"m"] * (3 if at % 1000 == 7 else 1), {"tenant": f"t{at:05}"}
                )
                for at in range(start, start + 500)
            ]
            for request in pending:
                peer.enqueue_results(request)
        visitor.wait(lambda _: visitor.get("/api/v1/queue", name="q").status == 200, "the queue")
        visitor.beats()
        page = visitor.api("keys", queue="q", limit=10)
        assert page["total"] == page["matched"] == 10_000
        assert [row["pending"] for row in page["rows"]] == [3] * 10
        names = [
            row["name"] for row in visitor.api("keys", queue="q", sort="name", limit=3)["rows"]
        ]
        assert names == ["t00000", "t00001", "t00002"]
        page = visitor.api("keys", queue="q", sort="name", order="desc", limit=2, offset=9_000)
        assert [row["name"] for row in page["rows"]] == ["t00999", "t00998"]
        page = visitor.api("keys", queue="q", sort="name", q="T0420")
        assert page["matched"] == 10 and page["rows"][0]["name"] == "t04200"
        assert visitor.get("/api/v1/keys", queue="q", sort="colour").status == 400
        assert visitor.get("/api/v1/keys", queue="q", limit=1_000).status == 400
        series = visitor.get("/metrics").body.decode()
        assert series.count('fila_fairness_pending{queue="q"') == 20


def test_dead_letters_are_grouped_by_error_and_redriven(
    visitor: Visitor, peer: Peer, queue: str
) -> None:
    peer.create_queue(queue, on_failure=DEAD)
    peer.enqueue(queue, *[b"m"] * 3)
    stream = peer.consume(queue)
    got = peer.take(stream, 3)
    for at, message in enumerate(got):
        peer.nack(queue, message.id, error=f"smtp 55{at} refused" if at else "time out")
    visitor.wait(
        lambda _: visitor.get("/api/v1/dead-letters", queue=queue).status == 200, "the queue"
    )
    shown = visitor.api("dead-letters", queue=queue)
    assert shown["dlq"] == f"{queue}.dlq"
    assert [(one["error"], one["count"]) for one in shown["groups"]] == [
        ("smtp # refused", 2),
        ("time out", 1),
    ]
    assert shown["groups"][0]["message"] in {message.id for message in got}
    assert visitor.post("redrive", {"queue": f"{queue}.dlq"}).code == "CsrfMissing"
    visitor.allow_posts()
    assert visitor.post("redrive", {"queue": f"{queue}.dlq", "count": 2}).json() == {"redriven": 2}
    assert len(peer.take(stream, 2)) == 2
    assert visitor.post("redrive", {"queue": queue}).code == "NotADLQ"
    assert visitor.post("redrive", {"queue": f"{queue}.dlq", "count": -1}).status == 400


def test_pausing_resuming_and_purging(visitor: Visitor, peer: Peer, queue: str) -> None:
    peer.create_queue(queue, on_enqueue=HOOK)
    for name in ("a", "b"):
        peer.enqueue(queue, b"1", b"2", headers={"tenant": name})
    visitor.wait(lambda _: visitor.get("/api/v1/queue", name=queue).status == 200, "the queue")
    visitor.allow_posts()
    [ref] = [row["ref"] for row in visitor.api("keys", queue=queue)["rows"] if row["name"] == "a"]
    answer = visitor.post("pause", {"queue": queue, "key": ref, "reason": "too loud"}).json()
    assert answer["paused"]["reason"] == "too loud" and answer["paused"]["since_ms"] > 0
    stream = peer.consume(queue)
    assert len(peer.take(stream, 2)) == 2
    peer.expect_quiet(stream, 0.2)
    visitor.beats()
    row = visitor.api("key", queue=queue, key=ref)["key"]
    assert row["state"] == "paused" and row["paused"]["reason"] == "too loud"
    assert visitor.post("resume", {"queue": queue, "key": ref}).json() == {"paused": None}
    assert len(peer.take(stream, 2)) == 2
    assert visitor.post("pause", {"queue": queue, "reason": "maintenance"}).status == 200
    peer.enqueue(queue, *[b"m"] * 3)
    visitor.beats()
    assert visitor.api("queue", name=queue)["paused"]["reason"] == "maintenance"
    assert visitor.post("purge", {"queue": queue}).json() == {"purged": 3}
    assert visitor.post("resume", {"queue": queue}).json() == {"paused": None}
    assert visitor.post("purge", {"queue": "nowhere"}).code == "QueueNotFound"


def test_a_wait_is_explained(visitor: Visitor, peer: Peer, queue: str) -> None:
    peer.create_queue(queue, on_enqueue=HOOK)
    [id] = peer.enqueue(queue, b"m", headers={"tenant": "a"})
    shown = visitor.api("explain", queue=queue, message=id)
    assert "Nobody consumes the queue" in shown["sentence"]
    visitor.wait(lambda _: visitor.get("/api/v1/keys", queue=queue).status == 200, "the queue")
    [row] = visitor.api("keys", queue=queue)["rows"]
    assert visitor.api("explain", queue=queue, key=row["ref"])["key"]["key"] == "a"
    assert visitor.get("/api/v1/explain", queue="nowhere").code == "QueueNotFound"


def test_metrics_parse_as_prometheus_text(visitor: Visitor, peer: Peer, queue: str) -> None:
    name = f'{queue}"\\\n'.strip() + "{é}"
    peer.create_queue(name)
    peer.enqueue(name, b"m")
    stream = peer.consume(name)
    peer.take(stream, 1)
    visitor.beats()
    answer = visitor.get("/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    families = {one.name: one for one in text_string_to_metric_families(answer.body.decode())}
    known = {prometheus_name(one).removesuffix("_total") for one in BY_NAME.values()}
    assert set(families) <= known
    delivered = {
        sample.labels["queue"]: sample.value
        for sample in families["fila_messages_delivered"].samples
    }
    assert delivered[name] == 1
    latency = families["fila_delivery_latency_seconds"]
    counts = [
        sample.value
        for sample in latency.samples
        if sample.name.endswith("_bucket") and sample.labels["queue"] == name
    ]
    assert counts == sorted(counts) and counts[-1] == 1


def test_a_stream_is_live(visitor: Visitor, peer: Peer, queue: str) -> None:
    peer.create_queue(queue)
    visitor.wait(lambda _: visitor.get("/api/v1/queue", name=queue).status == 200, "the queue")
    stream = visitor.events(view=["overview", "queue", "keys"], name=queue, queue=queue)
    kinds = [next(stream)[0] for _ in range(3)]
    assert kinds == ["overview", "queue", "keys"]
    peer.enqueue(queue, *[b"m"] * 4)
    for kind, data in stream:
        if kind == "queue" and data["depth"] == 4:
            assert data["point"]["depth"] == 4 and "series" not in data
            break
    peer.delete_queue(queue)
    for kind, data in stream:
        if kind == "error":
            assert data["error"]["code"] == "QueueNotFound"
            break
    else:
        pytest.fail("the stream ended without saying why")
    assert list(stream) == []


def test_names_that_do_not_exist_and_parameters_that_make_no_sense(visitor: Visitor) -> None:
    assert visitor.get("/api/v1/queue", name="nowhere").code == "QueueNotFound"
    assert visitor.get("/api/v1/queue").code == "QueueNotFound"
    assert visitor.get("/api/v1/nothing").code == "NotFound"
    assert visitor.get("/api/v1/overview", history="-1").code == "BadRequest"
    assert visitor.get("/api/v1/stream", view="weather").code == "BadRequest"
    assert visitor.get("/api/v1/stream").code == "BadRequest"
    assert visitor.get("/api/v1/redrive").status == 405


def test_a_port_that_is_taken_is_said_or_replaced(own_site: HttpBroker, tmp_path: Path) -> None:
    own_site.start()
    host, port = own_site.http_address
    taken = {"gui.listen_addr": f"{host}:{port}"}
    second = HttpBroker(tmp_path / "second", settings=taken)
    second.launch()
    assert second.wait() == 1
    assert f"gui: cannot listen on {host}:{port}: Address already in use" in second.log()
    with HttpBroker(tmp_path / "third", settings={**taken, "gui.fallback": "true"}) as third:
        assert third.http_address[1] != port
        assert third.visitor().get("/readyz").status == 200
        assert "instead" in third.log()


def test_open_streams_do_not_hold_up_a_stop(own_site: HttpBroker) -> None:
    own_site.start()
    streams = [own_site.visitor().events(view="overview") for _ in range(5)]
    for stream in streams:
        next(stream)
    assert own_site.stop() == 0
    for stream in streams:
        list(stream)  # it ends


def test_without_the_port_nothing_is_measured(tmp_path: Path) -> None:
    with HttpBroker(tmp_path / "data", settings={"gui.listen_addr": ""}) as broker:
        with pytest.raises(FileNotFoundError):
            _ = broker.http_address
        assert "dashboard" not in broker.log()


def test_what_the_pipeline_left_is_shown_and_nothing_else(visitor: Visitor, tmp_path: Path) -> None:
    assert visitor.api("pipeline") == {"journal": False, "found": None}
    settings = {"journal.enabled": True, "journal.path": str(tmp_path / "journal")}
    with HttpBroker(tmp_path / "data", settings=settings) as broker:
        assert isinstance(broker, HttpBroker)
        asked = broker.visitor()
        left = tmp_path / "journal" / "_live.json"
        for text, found in (
            ("", None),
            ("{half", None),
            ('"' + "x" * 300_000 + '"', None),
            ('{"fairness": []}', {"fairness": []}),
        ):
            left.write_text(text)
            asked.beats()  # documents are made once a beat
            assert asked.api("pipeline") == {"journal": True, "found": found}
