"""Who may do what over SQS: signatures, clocks, keys that end, permissions."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from tests.sqs.broker import REGION, ROOT, Pair, SqsBroker
from tests.sqs.test_messages import receive, refused


@pytest.fixture(scope="module")
def everything(locked: SqsBroker) -> Pair:
    return locked.key(superadmin=True)


@pytest.fixture
def queue(locked: SqsBroker, everything: Pair, name: str) -> Iterator[str]:
    sqs = locked.client(everything)
    url = sqs.create_queue(QueueName=name)["QueueUrl"]
    yield url
    sqs.delete_queue(QueueUrl=url)


def post(broker: SqsBroker, headers: dict[str, str], body: bytes) -> tuple[int, Any]:
    """The status, and the JSON of the answer."""
    wanted = urllib.request.Request(broker.url + "/", body, headers, method="POST")
    try:
        with urllib.request.urlopen(wanted, timeout=30) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def signed(broker: SqsBroker, pair: Pair, body: bytes = b"{}", **more: str) -> dict[str, str]:
    """The headers of a signed ListQueues; `more` ones are there to be signed."""
    headers = {
        "Content-Type": "application/x-amz-json-1.0",
        "X-Amz-Target": "AmazonSQS.ListQueues",
        **more,
    }
    request = AWSRequest("POST", broker.url + "/", headers, body)
    SigV4Auth(Credentials(pair.access_key_id, pair.secret), "sqs", REGION).add_auth(request)
    return dict(request.headers.items())


def code_of(answer: tuple[int, Any]) -> str:
    status, body = answer
    assert status in (400, 403), answer
    kind = body["__type"]
    assert isinstance(kind, str)
    return kind.removeprefix("com.amazonaws.sqs#")


def test_a_signed_request_is_served(locked: SqsBroker, everything: Pair, queue: str) -> None:
    status, body = post(locked, signed(locked, everything), b"{}")
    assert status == 200 and queue in body["QueueUrls"]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda pair: pair._replace(secret="x" * 40), "SignatureDoesNotMatch"),
        (lambda pair: pair._replace(access_key_id="FILA0000000000000000"), "InvalidClientTokenId"),
        (lambda pair: pair._replace(access_key_id="AKIAIOSFODNN7EXAMPLE"), "InvalidClientTokenId"),
        (lambda pair: pair._replace(access_key_id="ключ"), "InvalidClientTokenId"),
    ],
)
def test_a_wrong_pair_is_refused(
    locked: SqsBroker, everything: Pair, change: Any, code: str
) -> None:
    with pytest.raises((ClientError, UnicodeError)) as told:
        locked.client(change(everything)).list_queues()
    if isinstance(told.value, ClientError):
        assert told.value.response["Error"]["Code"] == code


def test_what_is_changed_after_it_was_signed_is_refused(
    locked: SqsBroker, everything: Pair
) -> None:
    headers = signed(locked, everything)
    assert code_of(post(locked, headers, b'{"MaxResults": 1}')) == "SignatureDoesNotMatch"
    other = {**headers, "X-Amz-Target": "AmazonSQS.PurgeQueue"}
    assert code_of(post(locked, other, b"{}")) == "SignatureDoesNotMatch"
    added = {**headers, "X-Amz-Security-Token": "x"}
    assert code_of(post(locked, added, b"{}")) == "SignatureDoesNotMatch"
    later = {**headers, "X-Amz-Date": time.strftime("%Y%m%dT000000Z", time.gmtime())}
    assert code_of(post(locked, later, b"{}")) in ("SignatureDoesNotMatch", "RequestExpired")
    without = {name: value for name, value in headers.items() if name != "Authorization"}
    assert code_of(post(locked, without, b"{}")) == "MissingAuthenticationToken"


@pytest.mark.parametrize(
    "authorization",
    [
        "Bearer abc",
        "AWS4-HMAC-SHA256",
        "AWS4-HMAC-SHA256 Credential=a, SignedHeaders=b, Signature=c",
        "AWS4-HMAC-SHA256 Credential=a/b/c/sqs/aws4_request, SignedHeaders=b;a, Signature=c",
        "AWS4-HMAC-SHA256 Credential=a/b/c/s3/aws4_request, SignedHeaders=a;b, Signature=c",
        "AWS4-HMAC-SHA256 Credential=a/b/c/sqs/aws4_request, SignedHeaders="
        + ";".join(f"h{n:03}" for n in range(200))
        + ", Signature=c",
        "\xff" * 100,
    ],
)
def test_an_authorization_that_is_none_is_refused(
    locked: SqsBroker, everything: Pair, authorization: str
) -> None:
    headers = {**signed(locked, everything), "Authorization": authorization}
    assert code_of(post(locked, headers, b"{}")) == "IncompleteSignature"


@pytest.mark.parametrize("minutes", [-20, 20])
def test_a_clock_that_is_wrong_is_told(
    locked: SqsBroker, everything: Pair, minutes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    import datetime

    import botocore.auth

    now = datetime.datetime.now(datetime.UTC) + datetime.timedelta(minutes=minutes)
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda: now)
    headers = signed(locked, everything)
    monkeypatch.undo()
    answer = post(locked, headers, b"{}")
    assert code_of(answer) == "RequestExpired" and "set the clock" in answer[1]["message"]


def test_a_small_difference_of_clocks_is_fine(
    locked: SqsBroker, everything: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    import datetime

    import botocore.auth

    now = datetime.datetime.now(datetime.UTC) - datetime.timedelta(minutes=10)
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda: now)
    headers = signed(locked, everything)
    monkeypatch.undo()
    assert post(locked, headers, b"{}")[0] == 200


def test_permissions_are_those_of_every_other_door(
    locked: SqsBroker, queue: str, name: str
) -> None:
    producer = locked.client(locked.key(f"produce:{name}"))
    consumer = locked.client(locked.key(f"consume:{name}"))
    stranger = locked.client(locked.key("produce:other"))
    producer.send_message(QueueUrl=queue, MessageBody="x")
    entries = [{"Id": "a", "MessageBody": "x"}]
    for sqs in (consumer, stranger):
        assert refused(sqs.send_message, QueueUrl=queue, MessageBody="x")[0] == "AccessDenied"
        assert refused(sqs.send_message_batch, QueueUrl=queue, Entries=entries)[0] == "AccessDenied"
    for sqs in (producer, stranger):
        assert refused(sqs.receive_message, QueueUrl=queue)[0] == "AccessDenied"
    (got,) = receive(consumer, queue)
    handle = {"QueueUrl": queue, "ReceiptHandle": got["ReceiptHandle"]}
    for sqs in (producer, stranger):
        assert refused(sqs.delete_message, **handle)[0] == "AccessDenied"
        change = sqs.change_message_visibility
        assert refused(change, **handle, VisibilityTimeout=0)[0] == "AccessDenied"
    for sqs in (producer, consumer, stranger):
        assert refused(sqs.purge_queue, QueueUrl=queue)[0] == "AccessDenied"
        assert refused(sqs.delete_queue, QueueUrl=queue)[0] == "AccessDenied"
        assert refused(sqs.create_queue, QueueName=name)[0] == "AccessDenied"
        attributes = {"DelaySeconds": "1"}
        change = sqs.set_queue_attributes
        assert refused(change, QueueUrl=queue, Attributes=attributes)[0] == "AccessDenied"
        arn = f"arn:aws:sqs:x:000000000000:{name}.dlq"
        assert refused(sqs.start_message_move_task, SourceArn=arn)[0] == "AccessDenied"
        assert refused(sqs.list_message_move_tasks, SourceArn=arn)[0] == "AccessDenied"
    assert producer.list_queues()["QueueUrls"] == [queue]
    assert "QueueUrls" not in stranger.list_queues()
    # Who may not see a queue is told the same of one that is not there.
    assert refused(stranger.get_queue_url, QueueName=name)[0] == "AccessDenied"
    assert refused(stranger.get_queue_url, QueueName=name + "-gone")[0] == "AccessDenied"
    assert refused(stranger.get_queue_attributes, QueueUrl=queue)[0] == "AccessDenied"
    consumer.delete_message(**handle)


def test_a_key_that_is_revoked_or_runs_out_ends_a_poll(
    locked: SqsBroker, queue: str, name: str
) -> None:
    pair = locked.key(f"consume:{name}", expires_at_ms=int(time.time() * 1000) + 3_000)
    began = time.monotonic()
    poll = locked.client(pair).receive_message
    code, why = refused(poll, QueueUrl=queue, WaitTimeSeconds=20)
    assert code == "InvalidClientTokenId" and "expired" in why
    assert time.monotonic() - began < 15
    code, why = refused(poll, QueueUrl=queue)
    assert code == "InvalidClientTokenId" and "expired" in why
    pair = locked.key(f"consume:{name}")
    with locked.fila(ROOT) as root:
        root.revoke_api_key(pair.key_id)
    code, _ = refused(locked.client(pair).receive_message, QueueUrl=queue)
    assert code == "InvalidClientTokenId"


def test_many_wrong_signatures_are_answered_with_a_pause(tmp_path: Any) -> None:
    settings = {"auth.bootstrap_apikey": ROOT, "auth.max_wrong_keys": 2}
    with SqsBroker(tmp_path / "data", settings) as broker:
        pair = broker.key(superadmin=True)
        wrong = broker.client(pair._replace(secret="x" * 40))
        codes = [refused(wrong.list_queues)[0] for _ in range(4)]
        assert codes == ["SignatureDoesNotMatch"] * 2 + ["RequestThrottled"] * 2
        broker.client(pair).list_queues()  # the right one opens at any time
        assert "x" * 40 not in broker.log()


def test_a_page_in_a_browser_is_not_served(broker: SqsBroker) -> None:
    headers = {
        "Content-Type": "application/x-www-form-urlencoded",
        "X-Amz-Target": "AmazonSQS.ListQueues",
        "Origin": "http://elsewhere.example",
    }
    assert code_of(post(broker, headers, b"{}")) == "AccessDenied"
