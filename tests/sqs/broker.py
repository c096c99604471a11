"""A broker with the SQS endpoint on, and boto3 clients of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import boto3
from botocore.config import Config

from fila import FilaClient
from fila.wire import signing
from tests.e2e.process import Broker

ROOT = "the-bootstrap-key"
REGION = "eu-central-1"


class Pair(NamedTuple):
    """An API key as SQS clients need it."""

    key_id: str
    access_key_id: str
    secret: str


ANYBODY = Pair("", "anybody", "anything")


class SqsBroker(Broker):
    def __init__(self, data_dir: Path, settings: Mapping[str, object] | None = None) -> None:
        super().__init__(data_dir, {"sqs.listen_addr": "127.0.0.1:0", **(settings or {})})
        self._sqs_file = data_dir.absolute().with_name(data_dir.name + ".sqs")
        self.settings["sqs_port_file"] = str(self._sqs_file)

    @property
    def sqs_address(self) -> tuple[str, int]:
        host, _, port = self._sqs_file.read_text().rpartition(":")
        return host, int(port)

    @property
    def url(self) -> str:
        host, port = self.sqs_address
        return f"http://{host}:{port}"

    def client(self, pair: Pair = ANYBODY, **options: Any) -> Any:
        """boto3's, with nothing of the environment and no retries."""
        config = Config(retries={"max_attempts": 0}, **options)
        return boto3.client(
            "sqs",
            endpoint_url=self.url,
            region_name=REGION,
            aws_access_key_id=pair.access_key_id,
            aws_secret_access_key=pair.secret,
            config=config,
        )

    def fila(self, api_key: str | None = None) -> FilaClient:
        host, port = self.address
        return FilaClient(f"{host}:{port}", api_key=api_key)

    def key(self, *permissions: str, superadmin: bool = False, expires_at_ms: int = 0) -> Pair:
        """A key with these permissions, `kind:pattern` each, made by the bootstrap key."""
        with self.fila(ROOT) as root:
            made = root.create_api_key("sqs", expires_at_ms=expires_at_ms, is_superadmin=superadmin)
            if permissions:
                pairs = [one.partition(":") for one in permissions]
                root.set_acl(made.key_id, [(kind, pattern) for kind, _, pattern in pairs])
        secret = signing.secret_access_key(signing.digest_of(made.key))
        return Pair(made.key_id, signing.access_key_id(made.key_id), secret)


os.environ.setdefault("AWS_EC2_METADATA_DISABLED", "true")  # boto3 asks nobody for credentials
