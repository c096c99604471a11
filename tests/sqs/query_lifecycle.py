"""One lifecycle with a boto3 that speaks the query form: run by the environment that has it.

python query_lifecycle.py ENDPOINT ACCESS_KEY_ID SECRET QUEUE
"""

import sys

import boto3
import botocore
from botocore.config import Config
from botocore.exceptions import ClientError


def main() -> None:
    endpoint, access_key, secret, name = sys.argv[1:]
    config = Config(retries={"max_attempts": 0})
    sqs = boto3.client(
        "sqs", endpoint_url=endpoint, region_name="eu-west-1", aws_access_key_id=access_key,
        aws_secret_access_key=secret, config=config,
    )  # fmt: skip
    assert sqs.meta.service_model.protocol == "query", botocore.__version__
    queue = sqs.create_queue(QueueName=name, Attributes={"DelaySeconds": "0"})["QueueUrl"]
    attributes: dict[str, dict[str, str | bytes]] = {
        "Ä": {"DataType": "String", "StringValue": "ü"},
    }
    code = "none: the name of an attribute is of ASCII"
    try:
        sqs.send_message(QueueUrl=queue, MessageBody="x", MessageAttributes=attributes)
    except ClientError as error:
        code = error.response["Error"]["Code"]
    assert code == "InvalidParameterValue"
    attributes = {
        "tenant": {"DataType": "String", "StringValue": "Zürich <&> \r\n 🐘"},
        "n": {"DataType": "Number", "StringValue": "7"},
        "raw": {"DataType": "Binary", "BinaryValue": b"\x00\xff"},
    }
    text = "grüße & <b>\"'\r\n\t日本"
    sqs.send_message(
        QueueUrl=queue, MessageBody=text, MessageAttributes=attributes,
    )  # fmt: skip
    received = sqs.receive_message(
        QueueUrl=queue, AttributeNames=["All"], MessageAttributeNames=["All"], WaitTimeSeconds=20
    )
    (got,) = received["Messages"]
    assert got["Body"] == text, got
    assert got["MessageAttributes"] == attributes, got
    assert got["Attributes"]["ApproximateReceiveCount"] == "1"
    handle = {"QueueUrl": queue, "ReceiptHandle": got["ReceiptHandle"]}
    sqs.change_message_visibility(**handle, VisibilityTimeout=0)
    (got,) = sqs.receive_message(QueueUrl=queue)["Messages"]
    try:
        sqs.change_message_visibility(**handle, VisibilityTimeout=1)
        raise AssertionError("the handle of a delivery that is over")
    except sqs.exceptions.MessageNotInflight:
        pass
    sqs.delete_message(QueueUrl=queue, ReceiptHandle=got["ReceiptHandle"])
    batch = sqs.send_message_batch(
        QueueUrl=queue,
        Entries=[
            {"Id": "a", "MessageBody": "one", "MessageAttributes": attributes},
            {"Id": "b", "MessageBody": "two", "DelaySeconds": 901},
            {"Id": "c", "MessageBody": "three"},
        ],
    )
    assert [one["Id"] for one in batch["Successful"]] == ["a", "c"], batch
    assert batch["Failed"][0]["SenderFault"] is True, batch
    got = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10)["Messages"]
    entries = [
        {"Id": str(n), "ReceiptHandle": one["ReceiptHandle"], "VisibilityTimeout": 60}
        for n, one in enumerate(got)
    ]
    changed = sqs.change_message_visibility_batch(QueueUrl=queue, Entries=entries)
    assert len(changed["Successful"]) == 2, changed
    done = [{"Id": one["Id"], "ReceiptHandle": one["ReceiptHandle"]} for one in entries]
    assert len(sqs.delete_message_batch(QueueUrl=queue, Entries=done)["Successful"]) == 2
    found = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["All"])["Attributes"]
    assert found["ApproximateNumberOfMessages"] == "0", found
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"DelaySeconds": "5"})
    assert queue in sqs.list_queues(QueueNamePrefix=name)["QueueUrls"]
    assert sqs.get_queue_url(QueueName=name)["QueueUrl"] == queue
    dead = sqs.get_queue_url(QueueName=name + ".dlq")["QueueUrl"]
    assert sqs.list_dead_letter_source_queues(QueueUrl=dead)["queueUrls"] == [queue]
    sqs.purge_queue(QueueUrl=queue)
    sqs.delete_queue(QueueUrl=queue)
    try:
        sqs.get_queue_url(QueueName=name)
        raise AssertionError("it is deleted")
    except sqs.exceptions.QueueDoesNotExist:
        pass
    try:
        sqs.tag_queue(QueueUrl=queue, Tags={"a": "b"})
        raise AssertionError("there are no tags")
    except sqs.exceptions.UnsupportedOperation:
        pass


main()
