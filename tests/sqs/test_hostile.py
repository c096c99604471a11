"""Requests to the SQS endpoint from somebody who means no good, or knows no better."""

from __future__ import annotations

import json
import socket
import urllib.parse
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.process import wait_until
from tests.http.test_hostile import exchange
from tests.sqs.broker import SqsBroker
from tests.sqs.test_messages import receive

JSON = "application/x-amz-json-1.0"
FORM = "application/x-www-form-urlencoded"


def request(body: bytes, kind: str = JSON, action: str = "", method: str = "POST") -> bytes:
    target = f"X-Amz-Target: AmazonSQS.{action}\r\n" if action else ""
    head = (
        f"{method} / HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n{target}"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body


def answer(broker: SqsBroker, data: bytes) -> tuple[int, bytes]:
    got = exchange(broker.sqs_address, data, 30)
    return int(got[9:12]), got.partition(b"\r\n\r\n")[2]


@pytest.mark.parametrize(
    ("data", "status", "code"),
    [
        (request(b"[", action="SendMessage"), 400, b"SerializationException"),
        (request(b"[]", action="SendMessage"), 400, b"SerializationException"),
        (request(b"[" * 100_000, action="SendMessage"), 400, b"SerializationException"),
        (request(b"{}", action="Nonsense"), 400, b"InvalidAction"),
        (request(b"{}", action="../etc"), 400, b"InvalidAction"),
        (request(b"{}", action="SendMessage"), 400, b"MissingParameter"),
        (request(b"", kind="text/plain"), 400, b"InvalidAction"),
        (request(b"", kind=FORM), 400, b"InvalidAction"),
        (request(b"Action=ListQueues&MaxResults=%ff", kind=FORM), 400, b"MalformedQueryString"),
        (request(b"Action=ListQueues" + b"&a=1" * 2_000, kind=FORM), 400, b"MalformedQueryString"),
        (request(b"Action=ListQueues&Attribute.x.Name=1", kind=FORM), 400, b"MalformedQueryString"),
        (request(b"Action=ListQueues&Nothing.1=1", kind=FORM), 400, b"MalformedQueryString"),
        (request(b"", kind=FORM, method="GET"), 405, b"MethodNotAllowed"),
        (
            b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000000\r\n\r\n",
            413,
            b"TooLarge",
        ),
        (
            request(b'{"QueueUrl": "\\ud800", "MessageBody": "x"}', action="SendMessage"),
            400,
            b"InvalidParameterValue",
        ),
        (
            request(b'{"QueueUrl": ["a"], "MessageBody": "x"}', action="SendMessage"),
            400,
            b"InvalidParameterValue",
        ),
        (
            request(b'{"QueueUrl": "a", "MessageBody": "\\ud800"}', action="SendMessage"),
            400,
            b"InvalidMessageContents",
        ),
    ],
    ids=range(17),
)
def test_what_is_no_request_is_refused(
    broker: SqsBroker, data: bytes, status: int, code: bytes
) -> None:
    got, body = answer(broker, data)
    assert got == status and code in body, body[:300]


def test_the_query_form_by_hand_and_its_queue_in_the_path(
    broker: SqsBroker, sqs: Any, queue: str
) -> None:
    body = urllib.parse.urlencode({"Action": "SendMessage", "MessageBody": "<&>\t"}).encode()
    path = urllib.parse.urlsplit(queue).path.encode()
    status, told = answer(broker, request(body, FORM).replace(b"POST /", b"POST " + path, 1))
    assert status == 200 and b"<SendMessageResult>" in told
    (got,) = receive(sqs, queue)
    assert got["Body"] == "<&>\t"


def test_connections_are_limited_and_a_waiting_request_keeps_its_place(tmp_path: Path) -> None:
    with SqsBroker(tmp_path / "data", {"sqs.max_connections": 2}) as broker:
        queue = broker.client().create_queue(QueueName="jobs")["QueueUrl"]
        fields = json.dumps({"QueueUrl": queue, "WaitTimeSeconds": 20}).encode()
        polls = [socket.create_connection(broker.sqs_address) for _ in range(2)]
        try:
            for poll in polls:
                poll.sendall(request(fields, action="ReceiveMessage"))
            with broker.fila() as client:
                wait_until(lambda: client.get_stats("jobs").active_consumers == 2, 30, "the polls")
                assert answer(broker, request(b"{}", action="ListQueues"))[0] == 503
                client.enqueue("jobs", {}, b"for one of them")
                wait_until(lambda: client.get_stats("jobs").active_consumers == 1, 30, "an answer")
            assert answer(broker, request(b"{}", action="ListQueues"))[0] == 200
        finally:
            for poll in polls:
                poll.close()
