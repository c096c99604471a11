"""Queues over SQS with boto3: made, found, described, changed, redriven, deleted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.process import wait_until
from tests.sqs.broker import REGION, SqsBroker
from tests.sqs.test_messages import receive, refused
from tests.sqs.test_receiving import figures


def arn(name: str) -> str:
    return f"arn:aws:sqs:{REGION}:000000000000:{name}"


def attributes_of(sqs: Any, queue: str, *names: str) -> dict[str, str]:
    wanted = list(names) or ["All"]
    found = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=wanted)
    return dict(found.get("Attributes", {}))


def test_a_queue_is_what_it_was_told_to_be(broker: SqsBroker, sqs: Any, name: str) -> None:
    wanted = {
        "VisibilityTimeout": "45",
        "DelaySeconds": "3",
        "ReceiveMessageWaitTimeSeconds": "7",
        "MaximumMessageSize": "2048",
        "MessageRetentionPeriod": "3600",
        "RedrivePolicy": json.dumps(
            {"deadLetterTargetArn": arn(f"{name}.dlq"), "maxReceiveCount": 4}
        ),
    }
    url = sqs.create_queue(QueueName=name, Attributes=wanted)["QueueUrl"]
    found = attributes_of(sqs, url)
    policy = json.loads(found.pop("RedrivePolicy"))
    assert policy == {"deadLetterTargetArn": arn(f"{name}.dlq"), "maxReceiveCount": 4}
    del wanted["RedrivePolicy"]
    assert wanted.items() <= found.items()
    assert found["QueueArn"] == arn(name)
    assert attributes_of(sqs, url, "DelaySeconds") == {"DelaySeconds": "3"}
    assert sqs.get_queue_url(QueueName=name)["QueueUrl"] == url
    # The same once more is the same queue; something else is refused.
    assert sqs.create_queue(QueueName=name, Attributes={"DelaySeconds": "3"})["QueueUrl"] == url
    for other in ({"DelaySeconds": "4"}, {"VisibilityTimeout": "46"}):
        code, why = refused(sqs.create_queue, QueueName=name, Attributes=other)
        assert code == "QueueAlreadyExists" and next(iter(other)) in why
    # It is a queue of Fila's, for everybody.
    with broker.fila() as client:
        assert {name, f"{name}.dlq"} <= {one.name for one in client.list_queues()}


def test_what_only_sqs_knows_goes_with_the_queue(broker: SqsBroker, sqs: Any, name: str) -> None:
    url = sqs.create_queue(QueueName=name, Attributes={"DelaySeconds": "9"})["QueueUrl"]
    with broker.fila() as client:
        client.delete_queue(name)  # behind the endpoint's back
        client.create_queue(name)
    assert attributes_of(sqs, url, "DelaySeconds") == {"DelaySeconds": "0"}
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"DelaySeconds": "2"})
    sqs.delete_queue(QueueUrl=url)
    with broker.fila() as client:
        assert client.list_config(f"sqs:{name}") == {}


@pytest.mark.parametrize(
    ("attributes", "code"),
    [
        ({"DelaySeconds": "901"}, "InvalidAttributeValue"),
        ({"DelaySeconds": "-1"}, "InvalidAttributeValue"),
        ({"VisibilityTimeout": "0"}, "InvalidAttributeValue"),
        ({"MaximumMessageSize": "1023"}, "InvalidAttributeValue"),
        ({"ReceiveMessageWaitTimeSeconds": "21"}, "InvalidAttributeValue"),
        ({"QueueArn": "x"}, "InvalidAttributeName"),
        ({"FifoQueue": "true"}, "UnsupportedOperation"),
        ({"Policy": "{}"}, "UnsupportedOperation"),
        ({"KmsMasterKeyId": "alias/aws/sqs"}, "UnsupportedOperation"),
        ({"RedrivePolicy": "{"}, "InvalidAttributeValue"),
        (
            {"RedrivePolicy": '{"deadLetterTargetArn": "arn:aws:sqs:x:0:other", '
             '"maxReceiveCount": "3"}'},
            "UnsupportedOperation",
        ),
        (
            {"RedrivePolicy": '{"deadLetterTargetArn": "arn:aws:sqs:x:0:q", '
             '"maxReceiveCount": 0}'},
            "InvalidAttributeValue",
        ),
    ],
)  # fmt: skip
def test_attributes_that_cannot_be_are_refused(
    sqs: Any, name: str, attributes: dict[str, str], code: str
) -> None:
    assert refused(sqs.create_queue, QueueName=name, Attributes=attributes)[0] == code
    assert refused(sqs.get_queue_url, QueueName=name)[0] == "NonExistentQueue"


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("orders.fifo", "UnsupportedOperation"),
        ("with space", "InvalidParameterValue"),
        ("ü", "InvalidParameterValue"),
        ("x" * 81, "InvalidParameterValue"),
        ("a/b", "InvalidParameterValue"),
    ],
)
def test_names_that_cannot_be_are_refused(sqs: Any, name: str, code: str) -> None:
    assert refused(sqs.create_queue, QueueName=name)[0] == code


def test_queues_are_listed_in_pages_by_prefix(sqs: Any, name: str) -> None:
    names = [f"{name}-page-{n}" for n in range(3)]
    for one in names:
        sqs.create_queue(QueueName=one)
    found, token = [], ""
    while True:
        more = {"NextToken": token} if token else {}
        page = sqs.list_queues(QueueNamePrefix=f"{name}-page-", MaxResults=4, **more)
        found += [url.rpartition("/")[2] for url in page["QueueUrls"]]
        token = page.get("NextToken", "")
        if not token:
            break
    assert found == sorted([*names, *(f"{one}.dlq" for one in names)])


def test_a_message_that_is_received_too_often_is_dead_and_can_be_moved_back(
    sqs: Any, name: str
) -> None:
    policy = {"deadLetterTargetArn": arn(f"{name}.dlq"), "maxReceiveCount": "2"}
    queue = sqs.create_queue(
        QueueName=name, Attributes={"RedrivePolicy": json.dumps(policy)}
    )["QueueUrl"]  # fmt: skip
    dead = sqs.get_queue_url(QueueName=f"{name}.dlq")["QueueUrl"]
    assert sqs.list_dead_letter_source_queues(QueueUrl=dead)["queueUrls"] == [queue]
    sqs.send_message(QueueUrl=queue, MessageBody="poison", MessageGroupId="acme")
    for _ in range(2):
        (got,) = receive(sqs, queue)
        handle = {"QueueUrl": queue, "ReceiptHandle": got["ReceiptHandle"]}
        sqs.change_message_visibility(**handle, VisibilityTimeout=0)
    assert figures(sqs, queue) == (0, 0)
    (got,) = receive(sqs, dead, AttributeNames=["All"], VisibilityTimeout=0)
    assert got["Body"] == "poison"
    assert got["Attributes"]["DeadLetterQueueSourceArn"] == arn(name)
    sqs.start_message_move_task(SourceArn=arn(f"{name}.dlq"))
    wait_until(lambda: figures(sqs, queue) == (1, 0), 20, "the move")
    tasks = sqs.list_message_move_tasks(SourceArn=arn(f"{name}.dlq"))["Results"]
    assert (tasks[0]["Status"], tasks[0]["ApproximateNumberOfMessagesMoved"]) == ("COMPLETED", 1)
    (got,) = receive(sqs, queue, AttributeNames=["All"])
    assert got["Body"] == "poison" and got["Attributes"]["MessageGroupId"] == "acme"


def test_visibility_and_the_redrive_policy_can_be_changed(
    broker: SqsBroker, sqs: Any, queue: str, name: str
) -> None:
    policy = json.dumps({"deadLetterTargetArn": arn(f"{name}.dlq"), "maxReceiveCount": 7})
    changed = {"VisibilityTimeout": "90", "RedrivePolicy": policy, "DelaySeconds": "0"}
    sqs.set_queue_attributes(QueueUrl=queue, Attributes=changed)
    found = attributes_of(sqs, queue)
    assert found["VisibilityTimeout"] == "90"
    assert json.loads(found["RedrivePolicy"])["maxReceiveCount"] == 7
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"RedrivePolicy": ""})
    assert "RedrivePolicy" not in attributes_of(sqs, queue)
    other = json.dumps({"deadLetterTargetArn": arn("elsewhere"), "maxReceiveCount": 7})
    change = sqs.set_queue_attributes
    code, why = refused(change, QueueUrl=queue, Attributes={"RedrivePolicy": other})
    assert code == "UnsupportedOperation" and f"{name}.dlq" in why


def test_a_move_that_cannot_be_is_refused(sqs: Any, queue: str, name: str) -> None:
    move = sqs.start_message_move_task
    assert refused(move, SourceArn=arn(name))[0] == "ResourceNotFoundException"
    assert refused(move, SourceArn=arn("nobody.dlq"))[0] == "NonExistentQueue"
    assert refused(move, SourceArn="nonsense")[0] == "InvalidParameterValue"
    more = {"SourceArn": arn(f"{name}.dlq")}
    assert refused(move, **more, DestinationArn=arn("other"))[0] == "UnsupportedOperation"
    assert refused(move, **more, MaxNumberOfMessagesPerSecond=1)[0] == "UnsupportedOperation"


def test_a_purge_drops_what_waits(sqs: Any, queue: str) -> None:
    entries = [{"Id": str(n), "MessageBody": "x"} for n in range(10)]
    sqs.send_message_batch(QueueUrl=queue, Entries=entries)
    receive(sqs, queue, VisibilityTimeout=600)
    sqs.purge_queue(QueueUrl=queue)
    assert figures(sqs, queue) == (0, 1)


def test_what_fila_has_nothing_for_says_so(sqs: Any, queue: str) -> None:
    for call, parameters in (
        (sqs.tag_queue, {"QueueUrl": queue, "Tags": {"a": "b"}}),
        (sqs.list_queue_tags, {"QueueUrl": queue}),
        (sqs.untag_queue, {"QueueUrl": queue, "TagKeys": ["a"]}),
        (sqs.remove_permission, {"QueueUrl": queue, "Label": "x"}),
        (sqs.cancel_message_move_task, {"TaskHandle": "x"}),
        (sqs.create_queue, {"QueueName": "tagged", "tags": {"a": "b"}}),
    ):
        assert refused(call, **parameters)[0] == "UnsupportedOperation"
