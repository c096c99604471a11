"""Messages over SQS with boto3: what is sent comes back, one by one and in batches."""

from __future__ import annotations

import hashlib
import time
from typing import Any

import pytest
from botocore.exceptions import ClientError

from fila.edges.sqs.message import digest_of
from tests.sqs.broker import SqsBroker

MiB = 1 << 20
WAIT_S = 20


def receive(sqs: Any, queue: str, count: int = 1, wait_s: int = WAIT_S, **more: Any) -> list[Any]:
    found = sqs.receive_message(
        QueueUrl=queue, MaxNumberOfMessages=count, WaitTimeSeconds=wait_s, **more
    )
    return list(found.get("Messages", []))


def refused(call: Any, **parameters: Any) -> tuple[str, str]:
    """The code of the query form and the message of what is refused."""
    with pytest.raises(ClientError) as told:
        call(**parameters)
    error = told.value.response["Error"]
    return error["Code"].removeprefix("AWS.SimpleQueueService."), error["Message"]


def with_attribute(name: str, kind: str, value: str) -> dict[str, Any]:
    attribute = {"DataType": kind, "StringValue": value}
    return {"MessageBody": "x", "MessageAttributes": {name: attribute}}


@pytest.mark.parametrize(
    "text", ["x", "héllo wörld", "日本語 🐘", "\t\n\r", "</a>&\"'", '"' * 10_000]
)
def test_a_message_comes_back_as_it_was_sent(sqs: Any, queue: str, text: str) -> None:
    sent = sqs.send_message(QueueUrl=queue, MessageBody=text)
    assert sent["MD5OfMessageBody"] == hashlib.md5(text.encode()).hexdigest()
    (got,) = receive(sqs, queue)
    assert got["Body"] == text and got["MessageId"] == sent["MessageId"]
    assert got["MD5OfBody"] == sent["MD5OfMessageBody"]
    assert "Attributes" not in got and "MessageAttributes" not in got
    sqs.delete_message(QueueUrl=queue, ReceiptHandle=got["ReceiptHandle"])
    figures = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["All"])["Attributes"]
    assert figures["ApproximateNumberOfMessages"] == "0"
    assert figures["ApproximateNumberOfMessagesNotVisible"] == "0"


def test_attributes_of_every_type_come_back_with_their_digest(sqs: Any, queue: str) -> None:
    attributes = {
        "tenant": {"DataType": "String", "StringValue": "Zürich"},
        "price.eur": {"DataType": "Number.float", "StringValue": "-1.5e3"},
        "picture": {"DataType": "Binary.png", "BinaryValue": bytes(range(256))},
    }
    trace = {"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1-5759e988"}}
    sent = sqs.send_message(
        QueueUrl=queue,
        MessageBody="x",
        MessageAttributes=attributes,
        MessageSystemAttributes=trace,
        MessageGroupId="acme",
    )
    (got,) = receive(sqs, queue, MessageAttributeNames=["All"], MessageSystemAttributeNames=["All"])
    assert got["MessageAttributes"] == attributes
    assert got["MD5OfMessageAttributes"] == sent["MD5OfMessageAttributes"]
    assert got["Attributes"]["AWSTraceHeader"] == "Root=1-5759e988"
    assert got["Attributes"]["MessageGroupId"] == "acme"
    assert got["Attributes"]["ApproximateReceiveCount"] == "1"
    age_ms = time.time() * 1000 - int(got["Attributes"]["SentTimestamp"])
    assert -60_000 < age_ms < 600_000


def test_the_digest_of_attributes_is_the_one_that_is_written_down_elsewhere() -> None:
    # By hand, as Amazon describes it: name, type, 1 for text, value, each with its length.
    found = hashlib.md5()
    for part in (b"a", b"String"):
        found.update(len(part).to_bytes(4, "big") + part)
    found.update(b"\x01" + (1).to_bytes(4, "big") + b"b")
    assert digest_of({"a": {"DataType": "String", "StringValue": "b"}}) == found.hexdigest()


def test_only_the_attributes_somebody_asks_for_are_told(sqs: Any, queue: str) -> None:
    text = {"DataType": "String", "StringValue": "x"}
    names = ["app.a", "app.b", "other"]
    sqs.send_message(QueueUrl=queue, MessageBody="x", MessageAttributes=dict.fromkeys(names, text))
    for wanted, expected in (
        ([], set()),
        (["other"], {"other"}),
        (["app.*"], {"app.a", "app.b"}),
        ([".*"], set(names)),
        (["nothing"], set()),
    ):
        (got,) = receive(sqs, queue, MessageAttributeNames=wanted, VisibilityTimeout=0)
        assert got.get("MessageAttributes", {}).keys() == expected


def test_a_group_is_a_fairness_key_and_groups_take_turns(
    broker: SqsBroker, sqs: Any, queue: str
) -> None:
    for number in range(20):
        sqs.send_message(QueueUrl=queue, MessageBody=f"{number}", MessageGroupId="noisy")
    sqs.send_message(QueueUrl=queue, MessageBody="quiet", MessageGroupId="quiet")
    first = receive(sqs, queue, 2)
    assert {one["Body"] for one in first} == {"0", "quiet"}


def test_what_fibp_enqueues_is_received_over_sqs_and_the_other_way_round(
    broker: SqsBroker, sqs: Any, queue: str, name: str
) -> None:
    with broker.fila() as client:
        client.enqueue(name, {"kind": "mail"}, b"from fibp")
        (got,) = receive(sqs, queue, MessageAttributeNames=["All"])
        assert got["Body"] == "from fibp"
        assert got["MessageAttributes"] == {"kind": {"DataType": "String", "StringValue": "mail"}}
        sqs.delete_message(QueueUrl=queue, ReceiptHandle=got["ReceiptHandle"])
        client.enqueue(name, {}, b"\xff\x00")
        (got,) = receive(sqs, queue, MessageAttributeNames=["All"])
        assert (got["Body"], got["MessageAttributes"]["fila.encoding"]["StringValue"]) == (
            "/wA=",
            "base64",
        )
        sqs.delete_message(QueueUrl=queue, ReceiptHandle=got["ReceiptHandle"])
        sqs.send_message(
            QueueUrl=queue,
            MessageBody="from sqs",
            MessageAttributes={"n": {"DataType": "Number", "StringValue": "7"}},
        )
        with client.consume(name) as messages:
            message = next(messages)
            assert message.payload == b"from sqs" and message.headers["n"] == "7"
            message.ack()


@pytest.mark.parametrize(
    ("parameters", "code"),
    [
        ({"MessageBody": ""}, "InvalidParameterValue"),
        ({"MessageBody": "\x01"}, "InvalidMessageContents"),
        ({"MessageBody": "\ufffe"}, "InvalidMessageContents"),
        ({"MessageBody": "x" * (MiB + 1)}, "InvalidParameterValue"),
        ({"MessageBody": "x", "DelaySeconds": 901}, "InvalidParameterValue"),
        ({"MessageBody": "x", "MessageGroupId": "a b"}, "InvalidParameterValue"),
        ({"MessageBody": "x", "MessageDeduplicationId": "1"}, "UnsupportedOperation"),
        (
            with_attribute("AWS.x", "String", "1"),
            "InvalidParameterValue",
        ),
        (
            with_attribute("a", "Number", "one"),
            "InvalidParameterValue",
        ),
        (
            with_attribute("a", "Text", "1"),
            "InvalidParameterValue",
        ),
        (
            {
                "MessageBody": "x",
                "MessageAttributes": {
                    f"a{n}": {"DataType": "String", "StringValue": "1"} for n in range(11)
                },
            },
            "InvalidParameterValue",
        ),
    ],
)
def test_what_cannot_be_a_message_is_refused(
    sqs: Any, queue: str, parameters: dict[str, Any], code: str
) -> None:
    assert refused(sqs.send_message, QueueUrl=queue, **parameters)[0] == code


def test_a_message_of_a_mebibyte_goes_through_and_a_queue_may_allow_less(
    sqs: Any, queue: str
) -> None:
    text = "ü" * (MiB // 2)
    sqs.send_message(QueueUrl=queue, MessageBody=text)
    (got,) = receive(sqs, queue)
    assert got["Body"] == text
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"MaximumMessageSize": str(256 * 1024)})
    sqs.send_message(QueueUrl=queue, MessageBody="x" * 256 * 1024)
    code, why = refused(sqs.send_message, QueueUrl=queue, MessageBody="x" * (256 * 1024 + 1))
    assert code == "InvalidParameterValue" and "262144" in why


def test_a_delay_of_the_message_or_of_the_queue_is_kept(sqs: Any, queue: str) -> None:
    sqs.send_message(QueueUrl=queue, MessageBody="late", DelaySeconds=2)
    sqs.send_message(QueueUrl=queue, MessageBody="now")
    assert [one["Body"] for one in receive(sqs, queue, 10)] == ["now"]
    began = time.monotonic()
    (got,) = receive(sqs, queue)
    assert got["Body"] == "late" and time.monotonic() - began > 0.5
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"DelaySeconds": "900"})
    sqs.send_message(QueueUrl=queue, MessageBody="much later")
    assert receive(sqs, queue, wait_s=0) == []


def test_a_batch_takes_what_is_right_and_tells_what_is_not(sqs: Any, queue: str) -> None:
    result = sqs.send_message_batch(
        QueueUrl=queue,
        Entries=[
            {"Id": "good", "MessageBody": "one", "MessageGroupId": "a"},
            {"Id": "bad", "MessageBody": "\x02"},
            {"Id": "late", "MessageBody": "x", "DelaySeconds": 5000},
            {"Id": "two", "MessageBody": "two", "MessageGroupId": "b"},
        ],
    )
    assert [one["Id"] for one in result["Successful"]] == ["good", "two"]
    failed = {one["Id"]: (one["Code"], one["SenderFault"]) for one in result["Failed"]}
    assert failed == {
        "bad": ("InvalidMessageContents", True),
        "late": ("InvalidParameterValue", True),
    }
    got = receive(sqs, queue, 10)
    assert {one["Body"] for one in got} == {"one", "two"}
    entries = [{"Id": "n0", "ReceiptHandle": "nonsense"}] + [
        {"Id": f"n{n}", "ReceiptHandle": one["ReceiptHandle"]} for n, one in enumerate(got, 1)
    ]
    result = sqs.delete_message_batch(QueueUrl=queue, Entries=entries)
    assert [one["Id"] for one in result["Successful"]] == ["n1", "n2"]
    assert [one["Code"] for one in result["Failed"]] == ["ReceiptHandleIsInvalid"]


@pytest.mark.parametrize(
    ("entries", "code"),
    [
        ([], "EmptyBatchRequest"),
        ([{"Id": str(n), "MessageBody": "x"} for n in range(11)], "TooManyEntriesInBatchRequest"),
        ([{"Id": "a", "MessageBody": "x"}] * 2, "BatchEntryIdsNotDistinct"),
        ([{"Id": "a b", "MessageBody": "x"}], "InvalidBatchEntryId"),
        (
            [{"Id": str(n), "MessageBody": "x" * (MiB // 2)} for n in range(3)],
            "BatchRequestTooLong",
        ),
    ],
)
def test_a_batch_that_is_wrong_as_a_whole_stores_nothing(
    sqs: Any, queue: str, entries: list[Any], code: str
) -> None:
    assert refused(sqs.send_message_batch, QueueUrl=queue, Entries=entries)[0] == code
    assert receive(sqs, queue, wait_s=0) == []


def test_a_queue_that_is_not_there_is_told_by_every_operation(sqs: Any, queue: str) -> None:
    gone = queue + "-gone"
    handle = "A" * 48
    for call, parameters in (
        (sqs.send_message, {"MessageBody": "x"}),
        (sqs.send_message_batch, {"Entries": [{"Id": "a", "MessageBody": "x"}]}),
        (sqs.receive_message, {}),
        (sqs.delete_message, {"ReceiptHandle": handle}),
        (sqs.change_message_visibility, {"ReceiptHandle": handle, "VisibilityTimeout": 1}),
        (sqs.purge_queue, {}),
        (sqs.delete_queue, {}),
        (sqs.get_queue_attributes, {}),
        (sqs.set_queue_attributes, {"Attributes": {"DelaySeconds": "1"}}),
    ):
        assert refused(call, QueueUrl=gone, **parameters)[0] == "NonExistentQueue", call
