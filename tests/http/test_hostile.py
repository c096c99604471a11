"""HTTP from somebody who means no good: too large, too slow, too many, malformed, misdirected."""

from __future__ import annotations

import socket
import time

import pytest

from tests.http.visitor import HttpBroker, Visitor


def exchange(address: tuple[str, int], data: bytes, wait_s: float = 5) -> bytes:
    """What comes back until the server closes."""
    with socket.create_connection(address, wait_s) as raw:
        raw.sendall(data)
        got = b""
        try:
            while part := raw.recv(65536):
                got += part
        except (TimeoutError, ConnectionResetError):
            pass
        return got


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 40_000 + b"\r\n\r\n", b"431"),
        (b"GET /" + b"a" * 40_000, b"431"),
        (b"NONSENSE\r\n\r\n", b"400"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", b"400"),
        (
            b"POST /api/v1/login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            b"400",
        ),
        (
            b"POST /api/v1/login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n"
            b"Content-Length: 6\r\n\r\nhello!",
            b"400",
        ),
        (
            b"POST /api/v1/login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n",
            b"413",
        ),
        (
            b"POST /api/v1/login HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
            + b"8000\r\n"
            + b"x" * 0x8000
            + b"\r\n8000\r\n"
            + b"x" * 0x8000
            + b"\r\n8000\r\n"
            + b"x" * 0x8000,
            b"413",
        ),
        (b"GET /?" + b"a=1&" * 100 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", b"400"),
    ],
    ids=[
        *("long header", "long path", "no HTTP", "TLS", "no host", "two hosts", "two framings"),
        *("two lengths", "long body", "long chunks", "many parameters"),
    ],
)
def test_what_cannot_be_served_is_refused(site: HttpBroker, data: bytes, status: bytes) -> None:
    got = exchange(site.http_address, data)
    assert got.startswith(b"HTTP/1.1 " + status), got[:200]
    assert site.visitor().get("/healthz").status == 200


@pytest.mark.parametrize(
    "path", ["/../../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/static/..%2findex.html.py"]
)
def test_no_path_leads_out_of_the_dashboards_files(site: HttpBroker, path: str) -> None:
    head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    got = exchange(site.http_address, head.encode())
    assert b"root:" not in got
    assert got.startswith((b"HTTP/1.1 404", b"HTTP/1.1 200"))
    if got.startswith(b"HTTP/1.1 200"):
        assert b"<title>" in got  # the dashboard's own page


def test_a_name_that_was_made_to_point_here_is_not_served(visitor: Visitor) -> None:
    assert visitor.request("GET", "/", headers={"Host": "evil.example"}).status == 421
    assert visitor.request("GET", "/", headers={"Host": "localhost:1"}).status == 200
    assert visitor.request("GET", "/", headers={"Host": "[::1]:80"}).status == 200


def test_bodies_that_are_no_json_objects_are_refused(visitor: Visitor) -> None:
    visitor.allow_posts()
    refused: list[object] = [[], "text", 1, None]
    for fields in refused:
        answer = visitor.request("POST", "/api/v1/redrive", {}, fields)
        assert answer.status == 400
    head = b"POST /api/v1/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    deep = b"[" * 60_000
    request = head + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(deep) + deep
    assert exchange(visitor.address, request).startswith(b"HTTP/1.1 400")


def test_many_requests_on_one_connection_are_answered_in_order(site: HttpBroker) -> None:
    one = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    last = b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    got = exchange(site.http_address, one * 20 + last)
    assert got.count(b"HTTP/1.1 200") == 21
    assert got.endswith(b"ready\n")


@pytest.mark.slow
def test_a_request_that_trickles_in_is_cut_off(site: HttpBroker) -> None:
    with socket.create_connection(site.http_address, 20) as raw:
        began = time.monotonic()
        raw.settimeout(0.2)
        closed = False
        for byte in b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: " + b"z" * 200:
            try:
                raw.sendall(bytes((byte,)))
                if raw.recv(1000):
                    closed = True
                    break
            except TimeoutError:
                pass
            except OSError:
                closed = True
                break
        assert closed and time.monotonic() - began > 5


def test_connections_and_streams_are_limited(own_site: HttpBroker) -> None:
    own_site.settings["gui.max_connections"] = 5
    own_site.settings["gui.max_streams"] = 2
    own_site.start()
    visitor = own_site.visitor()
    streams = [visitor.events(view="overview") for _ in range(2)]
    for stream in streams:
        next(stream)
    assert visitor.get("/api/v1/stream", view="overview").status == 503
    idle = [socket.create_connection(own_site.http_address) for _ in range(20)]
    # Who says nothing does not keep others out; streams, which are being answered, stay.
    for _ in range(20):
        assert visitor.get("/healthz").status == 200
    idle[0].settimeout(10)
    assert idle[0].recv(1) == b""
    for stream in streams:
        next(stream)
    for raw in idle:
        raw.close()
    for stream in streams:
        stream.close()  # type: ignore[attr-defined]

    def streams_again(one: Visitor) -> bool:
        try:
            return next(one.events(view="overview"))[0] == "overview"
        except AssertionError:
            return False

    visitor.wait(streams_again, "the streams to be given back")


def test_a_visitor_that_does_not_read_is_not_kept_data_for(site: HttpBroker) -> None:
    before = site.rss_bytes()
    raws = []
    for _ in range(20):
        raw = socket.socket()
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.connect(site.http_address)
        raw.sendall(b"GET /api/v1/stream?view=overview HTTP/1.1\r\nHost: localhost\r\n\r\n")
        raws.append(raw)
    site.visitor().beats(3)  # each of them makes an event for every stream
    assert site.rss_bytes() - before < 30 * 1024 * 1024
    assert site.visitor().get("/healthz").status == 200
    for raw in raws:
        raw.close()


def test_as_many_silent_connections_as_there_may_be_do_not_fail_a_health_check(
    site: HttpBroker,
) -> None:
    silent = [socket.create_connection(site.http_address, 10) for _ in range(300)]
    for raw in silent[::2]:
        raw.sendall(b"GET /healthz HTTP/1.1\r\nHost:")
    for _ in range(5):
        assert site.visitor().get("/healthz").status == 200
    for raw in silent:
        raw.close()


def test_connections_whose_answers_nobody_reads_do_not_fail_a_health_check(
    own_site: HttpBroker,
) -> None:
    own_site.settings["gui.max_connections"] = 8
    own_site.start()
    index = own_site.visitor().get("/").body.decode()
    script = next(part for part in index.split('"') if part.endswith(".js"))
    large = b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % script.encode()
    raws = []
    for _ in range(8):
        raw = socket.socket()
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.connect(own_site.http_address)
        raw.sendall(large * 200)
        raws.append(raw)
    before = own_site.rss_bytes()
    for _ in range(5):
        assert own_site.visitor().get("/healthz").status == 200
    # One answer at a time is made for who does not read, not two hundred.
    assert own_site.rss_bytes() - before < 20_000_000
    for raw in raws:
        raw.close()


def test_half_a_character_in_json_is_refused_and_the_broker_goes_on(
    site: HttpBroker, visitor: Visitor, queue: str
) -> None:
    with site.peer() as peer:
        peer.create_queue(queue)
    visitor.allow_posts()
    for action, fields in (
        ("pause", {"queue": queue, "reason": "a\ud800"}),
        ("pause", {"queue": "\udfff", "reason": ""}),
        ("purge", {"queue": queue + "\ud800"}),
        ("redrive", {"queue": "\ud83d"}),
        ("resume", {"queue": "\ud800", "key": "YQ"}),
    ):
        answer = visitor.post(action, fields)
        assert answer.status == 400, (action, fields)
        assert "half of a surrogate pair" in answer.json()["error"]["message"]
    assert visitor.get("/healthz").status == 200 and site.alive()


def test_a_query_that_is_no_utf8_is_refused(site: HttpBroker) -> None:
    head = b"GET /api/v1/explain?queue=%ff HTTP/1.1\r\nHost: localhost\r\n\r\n"
    assert b"the query is not valid UTF-8" in exchange(site.http_address, head)


def test_metrics_show_how_near_each_limit_is(own_site: HttpBroker) -> None:
    own_site.settings["connection.max_unauthenticated"] = 10
    own_site.settings["journal.enabled"] = True
    own_site.start()
    strangers = [socket.create_connection(own_site.address, 10) for _ in range(15)]
    visitor = own_site.visitor()

    def shown(one: Visitor) -> bool:
        text = one.get("/metrics").body.decode()
        return (
            'fila_limit_used{limit="connection.max_unauthenticated"} 10' in text
            and 'fila_limit_max{limit="connection.max_unauthenticated"} 10' in text
            and 'fila_limit_reached_total{limit="connection.max_unauthenticated"} 5' in text
        )

    visitor.wait(shown, "the limit")
    text = visitor.get("/metrics").body.decode()
    for name in (
        *("server.max_connections", "server.max_consumers", "connection.max_inbound_bytes"),
        *("connection.max_unread_bytes", "connection.max_unauthenticated_bytes"),
        *("journal.max_waiting_events", "journal.max_waiting_bytes"),
    ):
        assert f'fila_limit_max{{limit="{name}"}}' in text, name
    for one in strangers:
        one.close()
