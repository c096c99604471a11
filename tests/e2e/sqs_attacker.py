"""Hostile requests to the SQS endpoint: nearly right, lying, and noise, signed by nobody."""

from __future__ import annotations

import json
import random
import time
from typing import Any
from urllib.parse import urlencode

from tests.e2e.hostile import QUEUES

ACTIONS = (
    "CreateQueue", "GetQueueUrl", "GetQueueAttributes", "SetQueueAttributes", "ListQueues",
    "PurgeQueue", "SendMessage", "SendMessageBatch", "ReceiveMessage", "DeleteMessage",
    "DeleteMessageBatch", "ChangeMessageVisibility", "ChangeMessageVisibilityBatch",
    "StartMessageMoveTask", "ListMessageMoveTasks", "ListDeadLetterSourceQueues", "TagQueue",
    "DeleteQueue", "Nonsense",
)  # fmt: skip
FIELDS = (
    "QueueName", "Attributes", "AttributeNames", "QueueNamePrefix", "NextToken", "MaxResults",
    "MessageBody", "DelaySeconds", "MessageAttributes", "MessageSystemAttributes",
    "MessageGroupId", "MessageDeduplicationId", "Entries", "MaxNumberOfMessages",
    "VisibilityTimeout", "MessageAttributeNames", "ReceiptHandle", "SourceArn", "DestinationArn",
    "tags",
)  # fmt: skip
QUERY_STEMS = (
    "Attribute", "AttributeName", "MessageAttribute", "SendMessageBatchRequestEntry",
    "DeleteMessageBatchRequestEntry", "Tag", "Value", "Nonsense",
)  # fmt: skip
DATE = "%Y%m%dT%H%M%SZ"


class SqsGenerator:
    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def next(self) -> tuple[bytes, str]:
        """The bytes of a request, or of something like it, and what it is."""
        chance = self._chance
        made, kind = chance.choice((self._json, self._json, self._query, self._raw))()
        dice = chance.random()
        if dice < 0.1:
            return made[: chance.randrange(1, len(made))], "SQS: cut"
        if dice < 0.2:
            at = chance.randrange(len(made))
            return made[:at] + chance.randbytes(chance.randrange(1, 9)) + made[at:], "SQS: noise"
        return made, kind

    def _json(self) -> tuple[bytes, str]:
        action = self._chance.choice(ACTIONS)
        body = json.dumps(self._fields()).encode()
        target = ("X-Amz-Target", f"AmazonSQS.{action}")
        return self._request(body, "application/x-amz-json-1.0", target), "SQS: JSON"

    def _query(self) -> tuple[bytes, str]:
        chance = self._chance
        pairs = [("Action", chance.choice(ACTIONS))]
        for name, value in self._fields().items():
            pairs.append((name, value if isinstance(value, str) else json.dumps(value)))
        for _ in range(chance.randrange(6)):
            parts = [chance.choice(QUERY_STEMS), str(chance.choice((1, 2, 99999, "x", "")))]
            parts += chance.choices(("Name", "Value", "StringValue", "1", "Id"), k=2)
            pairs.append((".".join(parts), chance.choice(("x", "", "All", "-1"))))
        kind = "application/x-www-form-urlencoded"
        return self._request(urlencode(pairs, errors="surrogatepass").encode(), kind), "SQS: query"

    def _raw(self) -> tuple[bytes, str]:
        chance = self._chance
        body = chance.choice(
            (b"", b"[]", b"null", b"[" * 100_000, b'{"a":' * 50_000, b"%ff%fe=%", b"a=1&" * 5_000,
             b'{"QueueUrl": 1e999}', b'{"QueueUrl": "\\ud800"}', chance.randbytes(500))
        )  # fmt: skip
        target = ("X-Amz-Target", chance.choice(("AmazonSQS.SendMessage", "AmazonSQS.", "x" * 999)))
        kind = chance.choice(("application/x-www-form-urlencoded", "application/json", ""))
        return self._request(body, kind, *([target] * chance.randrange(2))), "SQS: bodies"

    def _fields(self) -> dict[str, Any]:
        chance = self._chance
        fields = {name: self._value() for name in chance.sample(FIELDS, chance.randrange(6))}
        if chance.random() < 0.9:
            fields["QueueUrl"] = f"http://localhost/000000000000/f{chance.randrange(QUEUES)}"
        if chance.random() < 0.5:
            fields["QueueName"] = f"f{chance.randrange(QUEUES)}"
            fields["MessageBody"] = "x" * chance.choice((1, 100, 100_000))
        if chance.random() < 0.5:
            fields["Entries"] = [
                {"Id": str(number % 9), "MessageBody": "x", "ReceiptHandle": self._value()}
                for number in range(chance.choice((0, 1, 3, 10, 11, 500)))
            ]
        fields["WaitTimeSeconds"] = chance.choice((0, 0, 0, 1, -1, "20", "x"))
        return fields

    def _value(self) -> Any:
        chance = self._chance
        return chance.choice(
            (None, True, -1, 0, 1, 30, 10**30, 1.5, "", "x", "All", "1", "9" * 500, "\ud800",
             "\x00", "ü🐘", "A" * 48, "arn:aws:sqs:x:0:f0.dlq", [], ["All"], [1], {}, {"a": 1},
             {"a": {"DataType": "String", "StringValue": "x"}}, {"DelaySeconds": "1"},
             {"a": {"DataType": "Binary", "BinaryValue": "="}}, {"RedrivePolicy": "{}"},
             {"DelaySeconds": [[]]}, [[[]]])
        )  # fmt: skip

    def _request(self, body: bytes, kind: str, *more: tuple[str, str]) -> bytes:
        chance = self._chance
        now = time.strftime(DATE, time.gmtime(time.time() + chance.choice((0, 0, 5000))))
        key = chance.choice(("FILA0123456789ABCDEF", "AKIA", "", "FILA" + "é" * 16))
        names = chance.choice(("host;x-amz-date", "host", "x-amz-target;host", ";", ""))
        credential = f"Credential={key}/{now[:8]}/eu-west-1/sqs/aws4_request"
        signature = chance.choice(("0" * 64, "", "é", "x" * 5_000))
        claim = f"AWS4-HMAC-SHA256 {credential}, SignedHeaders={names}, Signature={signature}"
        headers = [
            ("Host", "localhost"),
            ("Content-Type", kind),
            ("X-Amz-Date", chance.choice((now, now, "never", ""))),
            ("Authorization", chance.choice((claim, claim, "Bearer x", ""))),
            ("Content-Length", str(len(body))),
            *more,
        ]
        head = "".join([f"{name}: {value}\r\n" for name, value in headers if value])
        method = chance.choice(("POST", "POST", "POST", "POST", "GET", "PUT"))
        return f"{method} / HTTP/1.1\r\n{head}\r\n".encode("latin-1", "replace") + body
