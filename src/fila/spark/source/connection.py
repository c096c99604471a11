"""A client for the options of a source: secrets come from the environment of the process that uses
them, never from options, which show in plans.

Owns nothing but turning options into a client, and the check that a queue is there. A broker that
is being restarted is waited for, `timeoutSeconds` long: who starts the query anew gains nothing.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Final

from fila.client.errors import ConnectionLostError, FilaError, UnauthorizedError
from fila.client.sync import FilaClient
from fila.spark.source.options import Options, SourceError

_PAUSE_S: Final = 0.1
_PAUSE_S_MAX: Final = 2.0


def connect(options: Options) -> FilaClient:
    """A connected client; SourceError says why there is none."""
    began = time.monotonic()
    pause_s = _PAUSE_S
    while True:
        try:
            return _client(options)
        except ConnectionLostError as error:
            left_s = began + options.timeout_s - time.monotonic()
            if left_s <= 0:
                raise SourceError(
                    f"no broker answers: {error}; tried for {options.timeout_s:g} s "
                    "(option timeoutSeconds)"
                ) from error
            if pause_s == _PAUSE_S:
                sys.stderr.write(f"fila: {error}; tried again for {left_s:.0f} s\n")
            time.sleep(min(pause_s, left_s))
            pause_s = min(2 * pause_s, _PAUSE_S_MAX)


def _client(options: Options) -> FilaClient:
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
    except ConnectionLostError:
        raise
    except UnauthorizedError as error:
        told = "is not accepted" if api_key else "is not set"
        raise SourceError(
            f"the broker at {options.address} wants an API key, and {options.api_key_env} {told} "
            f"here: {error}. Set it in the environment of the driver before Spark starts, and of "
            f"the workers (spark.executorEnv.{options.api_key_env})"
        ) from error
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
