"""The SQS endpoint: `python -m bench.sqs [--full]`.

sends      SendMessage, one message of 256 bytes each, over 16 connections
batches    SendMessageBatch of ten
receives   ReceiveMessage of ten, and DeleteMessageBatch of what came

Every request is signed with an API key, and every signature is checked. The load comes from a
program that signs each request once and then sends the same bytes, so that the broker's time is
measured and not a client's; what boto3 does is measured beside it. What the broker needs of the
processor for a message does not depend on what else the machine does.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.sqs.broker import REGION, ROOT, Pair, SqsBroker

from bench import command
from bench.record import Findings, Row, Target

CONNECTIONS = 16
BODY = "x" * 256
JSON = "application/x-amz-json-1.0"


def signed(broker: SqsBroker, pair: Pair, action: str, fields: object) -> bytes:
    """A whole request, as it is sent."""
    body = json.dumps(fields, separators=(",", ":")).encode()
    host, port = broker.sqs_address
    at = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    headers = {
        "content-type": JSON,
        "host": f"{host}:{port}",
        "x-amz-date": at,
        "x-amz-target": f"AmazonSQS.{action}",
    }
    names = ";".join(headers)
    lines = [f"{name}:{value}\n" for name, value in headers.items()]
    whole = f"POST\n/\n\n{''.join(lines)}\n{names}\n{hashlib.sha256(body).hexdigest()}"
    scope = f"{at[:8]}/{REGION}/sqs/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{at}\n{scope}\n{hashlib.sha256(whole.encode()).hexdigest()}"
    key = b"AWS4" + pair.secret.encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    credential = f"Credential={pair.access_key_id}/{scope}"
    headers["authorization"] = (
        f"AWS4-HMAC-SHA256 {credential}, SignedHeaders={names}, Signature={signature}"
    )
    headers["content-length"] = str(len(body))
    head = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    return f"POST / HTTP/1.1\r\n{head}\r\n".encode() + body


class Line:
    """One connection with one request under way."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def ask(self, request: bytes) -> bytes:
        self._writer.write(request)
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        size = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        body = await self._reader.readexactly(size)
        assert head.startswith(b"http/1.1 200"), body
        return body


async def lines(broker: SqsBroker) -> list[Line]:
    return [
        Line(*await asyncio.open_connection(*broker.sqs_address, limit=1 << 22))
        for _ in range(CONNECTIONS)
    ]


def measured(broker: SqsBroker, what: str, messages: int, work: Any) -> Row:
    """Let every connection do its share; messages a second, and the broker's time for one."""

    async def run() -> float:
        own = await lines(broker)
        begin = time.monotonic()
        await asyncio.gather(*[work(one) for one in own])
        return time.monotonic() - begin

    cpu = broker.cpu_s()
    seconds = asyncio.run(run())
    used_us = (broker.cpu_s() - cpu) / messages * 1e6
    return {
        "what": what,
        "messages/s": round(messages / seconds),
        "broker's CPU, µs a message": round(used_us, 1),
        "messages a second of CPU": round(1e6 / used_us),
    }


def run(full: bool) -> Findings:
    count = 40_000 if full else 4_000  # messages sent one by one, and so many of the others
    load = os.getloadavg()[0]
    with (
        tempfile.TemporaryDirectory() as place,
        SqsBroker(Path(place) / "data", {"auth.bootstrap_apikey": ROOT}) as broker,
    ):
        pair = broker.key(superadmin=True)
        sqs = broker.client(pair)
        url = sqs.create_queue(QueueName="bench")["QueueUrl"]
        group = {"MessageGroupId": "acme"}
        single = signed(
            broker, pair, "SendMessage", {"QueueUrl": url, "MessageBody": BODY, **group}
        )
        entries = [{"Id": str(n), "MessageBody": BODY, **group} for n in range(10)]
        ten = signed(broker, pair, "SendMessageBatch", {"QueueUrl": url, "Entries": entries})
        take = signed(broker, pair, "ReceiveMessage", {"QueueUrl": url, "MaxNumberOfMessages": 10})
        each = count // CONNECTIONS

        async def send_one(line: Line) -> None:
            for _ in range(each):
                await line.ask(single)

        async def send_ten(line: Line) -> None:
            for _ in range(each // 10):
                await line.ask(ten)

        async def receive_ten(line: Line) -> None:
            got = 0
            while got < each // 10 * 10:
                found = json.loads(await line.ask(take)).get("Messages", [])
                got += len(found)
                done = [
                    {"Id": str(at), "ReceiptHandle": one["ReceiptHandle"]}
                    for at, one in enumerate(found)
                ]
                if done:
                    fields = {"QueueUrl": url, "Entries": done}
                    await line.ask(signed(broker, pair, "DeleteMessageBatch", fields))

        sends = measured(broker, "sends", each * CONNECTIONS, send_one)
        batched = each // 10 * 10 * CONNECTIONS
        batches = measured(broker, "sends, ten in a batch", batched, send_ten)
        received = measured(broker, "receives and deletes of ten", batched, receive_ten)
        began, asked = time.monotonic(), count // 20
        for _ in range(asked):
            sqs.send_message(QueueUrl=url, MessageBody=BODY)
        boto3 = asked / (time.monotonic() - began)
    return Findings(
        "The SQS endpoint with signed requests: JSON form, messages of 256 bytes.",
        {"a second": [sends, batches, received]},
        [
            _target("single sends/s", 3_000, sends),
            _target("batched messages/s", 10_000, batches),
        ],
        [
            f"{CONNECTIONS} connections with one request under way each; load {load:.0f} at the "
            "beginning.",
            f"One boto3 client, one send after the other: {boto3:.0f} a second.",
        ],
    )


def _target(what: str, limit: int, row: Row) -> Target:
    rate = int(row["messages/s"])
    return Target(what, f">= {limit:,}", f"{rate:,}", rate >= limit)


if __name__ == "__main__":
    sys.exit(0 if command.main("sqs", run) else 1)
