"""A client for the options of a source: secrets come from the environment of the process that uses
them, never from options, which show in plans.

Owns nothing but turning options into a client, and the check that a queue is there.
"""

from __future__ import annotations

import os

from fila.client.errors import ConnectFailedError, FilaError, UnauthorizedError
from fila.client.sync import FilaClient
from fila.spark.source.options import Options, SourceError


def connect(options: Options) -> FilaClient:
    """A connected client; SourceError says why there is none."""
    api_key = os.environ.get(options.api_key_env) or None
    try:
        return FilaClient(
            options.address,
            api_key=api_key,
            tls=options.tls,
            tls_ca=options.tls_ca or None,
            tls_cert=options.tls_cert or None,
            tls_key=options.tls_key or None,
            timeout=options.timeout_s,
        )
    except UnauthorizedError as error:
        told = "is not accepted" if api_key else "is not set"
        raise SourceError(
            f"the broker at {options.address} wants an API key, and {options.api_key_env} {told} "
            f"here: {error}. Set it in the environment of the driver before Spark starts, and of "
            f"the workers (spark.executorEnv.{options.api_key_env})"
        ) from error
    except ConnectFailedError as error:
        raise SourceError(f"no broker answers: {error}") from error
    except (FilaError, ValueError) as error:
        raise SourceError(f"cannot talk to the broker at {options.address}: {error}") from error


def waiting(client: FilaClient, queue: str) -> int:
    """How many messages of the queue wait to be delivered; SourceError if it is not there."""
    queues = client.list_queues()
    for one in queues:
        if one.name == queue:
            return one.depth
    from difflib import get_close_matches

    near = get_close_matches(queue, [one.name for one in queues], 1)
    hint = f'did you mean "{near[0]}"?' if near else "`fila queue create` makes one"
    raise SourceError(f'queue "{queue}" does not exist, or this API key may not see it; {hint}')
