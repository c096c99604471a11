"""Clients that are not the tests' own boto3: one of the query form, the AWS CLI, Node's."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.sqs import clients
from tests.sqs.broker import REGION, Pair, SqsBroker

HERE = Path(__file__).parent
WAIT_S = 300


@pytest.fixture(scope="module")
def pair(locked: SqsBroker) -> Pair:
    return locked.key(superadmin=True)


def test_a_boto3_of_the_query_form_does_all_of_it(locked: SqsBroker, pair: Pair, name: str) -> None:
    program = [clients.query_python(), str(HERE / "query_lifecycle.py")]
    done = subprocess.run(
        [*program, locked.url, pair.access_key_id, pair.secret, name],
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_aws_cli_does_what_the_page_shows(
    locked: SqsBroker, pair: Pair, name: str, tmp_path: Path
) -> None:
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "AWS_ACCESS_KEY_ID": pair.access_key_id,
        "AWS_SECRET_ACCESS_KEY": pair.secret,
        "AWS_DEFAULT_REGION": REGION,
    }
    program = [clients.aws(), "--endpoint-url", locked.url, "sqs"]

    def aws(*words: str) -> Any:
        done = subprocess.run(
            [*program, *words],
            env=environ,
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) if done.stdout.strip() else None

    url = aws("create-queue", "--queue-name", name)["QueueUrl"]
    attributes = '{"tenant": {"DataType": "String", "StringValue": "Zürich"}}'
    body = ("--message-body", "grüße", "--message-attributes", attributes)
    aws("send-message", "--queue-url", url, *body)
    wanted = ("--wait-time-seconds", "20", "--message-attribute-names", "All")
    (got,) = aws("receive-message", "--queue-url", url, *wanted)["Messages"]
    assert got["Body"] == "grüße"
    assert got["MessageAttributes"]["tenant"]["StringValue"] == "Zürich"
    aws("delete-message", "--queue-url", url, "--receipt-handle", got["ReceiptHandle"])
    figures = aws("get-queue-attributes", "--queue-url", url, "--attribute-names", "All")
    assert figures["Attributes"]["ApproximateNumberOfMessages"] == "0"
    assert url in aws("list-queues")["QueueUrls"]
    aws("delete-queue", "--queue-url", url)


def test_nodes_client_does_a_lifecycle_and_finds_the_digests_right(
    locked: SqsBroker, pair: Pair, name: str, tmp_path: Path
) -> None:
    modules = clients.node_modules() / "node_modules"
    shutil.copy(HERE / "lifecycle.mjs", tmp_path)
    (tmp_path / "node_modules").symlink_to(modules)
    done = subprocess.run(
        ["node", "lifecycle.mjs", locked.url, pair.access_key_id, pair.secret, name],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert done.returncode == 0 and done.stdout.strip() == "done", done.stderr
