"""An S3 server of this machine: moto's, a program of its own kind, not a stand-in for our code."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator

from pyarrow.fs import S3FileSystem

BUCKET = "lake"


def bucket() -> Iterator[str]:
    """The address of an empty bucket; the environment names the server, as a user's would."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.WARNING)  # a line for each request
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    names = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(names)
    system = S3FileSystem(
        endpoint_override=f"{host}:{port}", scheme="http", allow_bucket_creation=True
    )
    system.create_dir(BUCKET)
    yield f"s3://{BUCKET}"
    for name, value in before.items():
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value
    server.stop()
