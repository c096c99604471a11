"""Receiving over SQS: waiting, visibility, handles, and clients that go away."""

from __future__ import annotations

import json
import socket
import threading
import time
from typing import Any

from tests.e2e.process import wait_until
from tests.sqs.broker import SqsBroker
from tests.sqs.test_messages import receive, refused


def figures(sqs: Any, queue: str) -> tuple[int, int]:
    """Pending and leased."""
    found = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["All"])["Attributes"]
    return (
        int(found["ApproximateNumberOfMessages"]),
        int(found["ApproximateNumberOfMessagesNotVisible"]),
    )


def test_a_long_poll_is_answered_when_a_message_comes(
    broker: SqsBroker, sqs: Any, queue: str
) -> None:
    got: list[Any] = []
    waiting = threading.Thread(target=lambda: got.extend(receive(broker.client(), queue)))
    waiting.start()
    time.sleep(0.5)
    assert not got and waiting.is_alive()
    sqs.send_message(QueueUrl=queue, MessageBody="at last")
    waiting.join(15)  # sooner than the twenty seconds it would wait
    assert [one["Body"] for one in got] == ["at last"]


def test_a_long_poll_ends_with_nothing_when_its_time_is_over(sqs: Any, queue: str) -> None:
    began = time.monotonic()
    assert receive(sqs, queue, wait_s=1) == []
    assert time.monotonic() - began >= 0.9
    began = time.monotonic()
    assert receive(sqs, queue, wait_s=0) == []


def test_the_waiting_time_of_the_queue_holds_where_a_request_has_none(sqs: Any, queue: str) -> None:
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"ReceiveMessageWaitTimeSeconds": "1"})
    began = time.monotonic()
    assert "Messages" not in sqs.receive_message(QueueUrl=queue)
    assert time.monotonic() - began >= 0.9


def test_a_client_that_goes_away_while_it_waits_gets_nothing(
    broker: SqsBroker, sqs: Any, queue: str
) -> None:
    body = json.dumps({"QueueUrl": queue, "WaitTimeSeconds": 20}).encode()
    with socket.create_connection(broker.sqs_address) as raw:
        raw.sendall(
            b"POST / HTTP/1.1\r\nHost: localhost\r\nX-Amz-Target: AmazonSQS.ReceiveMessage\r\n"
            b"Content-Type: application/x-amz-json-1.0\r\nContent-Length: %d\r\n\r\n%b"
            % (len(body), body)
        )
        name = queue.rpartition("/")[2]
        with broker.fila() as client:
            wait_until(lambda: client.get_stats(name).active_consumers == 1, 20, "the poll")
    with broker.fila() as client:
        wait_until(lambda: client.get_stats(name).active_consumers == 0, 20, "its end")
    sqs.send_message(QueueUrl=queue, MessageBody="for somebody else")
    assert figures(sqs, queue) == (1, 0)
    (got,) = receive(sqs, queue, AttributeNames=["All"])
    assert got["Attributes"]["ApproximateReceiveCount"] == "1"


def test_a_queue_that_is_deleted_ends_the_polls_on_it(
    broker: SqsBroker, sqs: Any, queue: str
) -> None:
    codes: list[str] = []

    def poll() -> None:
        client = broker.client()
        codes.append(refused(client.receive_message, QueueUrl=queue, WaitTimeSeconds=20)[0])

    waiting = threading.Thread(target=poll)
    waiting.start()
    with broker.fila() as client:
        name = queue.rpartition("/")[2]
        wait_until(lambda: client.get_stats(name).active_consumers == 1, 20, "the poll")
    sqs.delete_queue(QueueUrl=queue)
    waiting.join(15)
    assert codes == ["NonExistentQueue"]


def test_only_so_many_requests_may_wait(tmp_path: Any) -> None:
    with SqsBroker(tmp_path / "data", {"sqs.max_polls": 1}) as broker:
        sqs = broker.client()
        queue = sqs.create_queue(QueueName="jobs")["QueueUrl"]
        waiting = threading.Thread(target=lambda: receive(broker.client(), queue, wait_s=20))
        waiting.start()
        with broker.fila() as client:
            wait_until(lambda: client.get_stats("jobs").active_consumers == 1, 20, "the poll")
            code, why = refused(sqs.receive_message, QueueUrl=queue, WaitTimeSeconds=1)
            assert code == "RequestThrottled" and "sqs.max_polls" in why
            assert client.get_stats("jobs").active_consumers == 1
            used = {one.name: one for one in client.get_limits()}
            assert used["sqs.max_polls"].used == 1 and used["sqs.max_polls"].reached == 1
        assert receive(sqs, queue, wait_s=0) == []  # who does not wait is served
        sqs.send_message(QueueUrl=queue, MessageBody="x")
        waiting.join(15)
        assert not waiting.is_alive()


def test_visibility_runs_out_is_extended_and_given_up(sqs: Any, queue: str) -> None:
    sqs.send_message(QueueUrl=queue, MessageBody="x")
    (first,) = receive(sqs, queue, VisibilityTimeout=1)
    (second,) = receive(sqs, queue, AttributeNames=["All"], VisibilityTimeout=600)
    assert second["Attributes"]["ApproximateReceiveCount"] == "2"
    assert second["ReceiptHandle"] != first["ReceiptHandle"]
    # The handle of a delivery that is over names nothing: it neither deletes nor extends.
    sqs.delete_message(QueueUrl=queue, ReceiptHandle=first["ReceiptHandle"])
    assert figures(sqs, queue) == (0, 1)
    old = {"QueueUrl": queue, "ReceiptHandle": first["ReceiptHandle"]}
    assert refused(sqs.change_message_visibility, **old, VisibilityTimeout=1)[0] == (
        "MessageNotInflight"
    )
    now = {"QueueUrl": queue, "ReceiptHandle": second["ReceiptHandle"]}
    sqs.change_message_visibility(**now, VisibilityTimeout=1200)
    assert figures(sqs, queue) == (0, 1)
    sqs.change_message_visibility(**now, VisibilityTimeout=0)
    assert figures(sqs, queue) == (1, 0)
    (third,) = receive(sqs, queue, AttributeNames=["ApproximateReceiveCount"])
    assert third["Attributes"] == {"ApproximateReceiveCount": "3"}
    assert refused(sqs.change_message_visibility, **now, VisibilityTimeout=43_201)[0] == (
        "InvalidParameterValue"
    )


def test_visibility_of_several_is_changed_each_by_itself(sqs: Any, queue: str) -> None:
    for number in range(3):
        sqs.send_message(QueueUrl=queue, MessageBody=str(number))
    got = receive(sqs, queue, 10, VisibilityTimeout=600)
    assert len(got) == 3
    entries = [
        {"Id": "back", "ReceiptHandle": got[0]["ReceiptHandle"], "VisibilityTimeout": 0},
        {"Id": "longer", "ReceiptHandle": got[1]["ReceiptHandle"], "VisibilityTimeout": 1200},
        {"Id": "too-long", "ReceiptHandle": got[2]["ReceiptHandle"], "VisibilityTimeout": 99_999},
        {"Id": "no-handle", "ReceiptHandle": "x", "VisibilityTimeout": 1},
    ]
    result = sqs.change_message_visibility_batch(QueueUrl=queue, Entries=entries)
    assert {one["Id"] for one in result["Successful"]} == {"back", "longer"}
    assert {one["Id"]: one["Code"] for one in result["Failed"]} == {
        "too-long": "InvalidParameterValue",
        "no-handle": "ReceiptHandleIsInvalid",
    }
    assert figures(sqs, queue) == (1, 2)
    # After its neighbours parted with it, every handle still names its own message.
    done = [{"Id": str(n), "ReceiptHandle": one["ReceiptHandle"]} for n, one in enumerate(got[1:])]
    sqs.delete_message_batch(QueueUrl=queue, Entries=done)
    assert figures(sqs, queue) == (1, 0)


def test_a_handle_survives_a_restart_and_a_changed_visibility(tmp_path: Any) -> None:
    with SqsBroker(tmp_path / "data") as broker:
        sqs = broker.client()
        queue = sqs.create_queue(QueueName="jobs")["QueueUrl"]
        for number in range(2):
            sqs.send_message(QueueUrl=queue, MessageBody=str(number))
        got = receive(sqs, queue, 10, VisibilityTimeout=600)
        handles = [one["ReceiptHandle"] for one in got]
        assert len(handles) == 2
        sqs.change_message_visibility(
            QueueUrl=queue, ReceiptHandle=handles[0], VisibilityTimeout=1200
        )
        broker.restart()
        sqs = broker.client()
        queue = sqs.get_queue_url(QueueName="jobs")["QueueUrl"]
        assert figures(sqs, queue) == (0, 2)
        for handle in handles:
            sqs.delete_message(QueueUrl=queue, ReceiptHandle=handle)
        assert figures(sqs, queue) == (0, 0)


def test_a_handle_of_a_queue_that_was_made_again_deletes_nothing(sqs: Any, name: str) -> None:
    queue = sqs.create_queue(QueueName=name)["QueueUrl"]
    sqs.send_message(QueueUrl=queue, MessageBody="old")
    (old,) = receive(sqs, queue)
    sqs.delete_queue(QueueUrl=queue)
    sqs.create_queue(QueueName=name)
    sqs.send_message(QueueUrl=queue, MessageBody="new")
    receive(sqs, queue)
    sqs.delete_message(QueueUrl=queue, ReceiptHandle=old["ReceiptHandle"])
    assert figures(sqs, queue) == (0, 1)


def test_many_that_wait_share_what_comes_and_nothing_is_lost_or_told_twice(
    broker: SqsBroker, sqs: Any, queue: str
) -> None:
    count, seen, lock = 200, [], threading.Lock()
    stop = threading.Event()

    def work() -> None:
        client = broker.client()
        while not stop.is_set():
            for one in receive(client, queue, 10, wait_s=1, VisibilityTimeout=600):
                with lock:
                    seen.append(one["Body"])
                client.delete_message(QueueUrl=queue, ReceiptHandle=one["ReceiptHandle"])

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for start in range(0, count, 10):
        entries = [{"Id": str(n), "MessageBody": str(n)} for n in range(start, start + 10)]
        sqs.send_message_batch(QueueUrl=queue, Entries=entries)
    wait_until(lambda: len(seen) >= count, 60, "all messages")
    stop.set()
    for worker in workers:
        worker.join(30)
    assert sorted(seen, key=int) == [str(n) for n in range(count)]
    assert figures(sqs, queue) == (0, 0)
