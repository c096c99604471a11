"""Which broker to talk to, and how.

Owns the order of precedence: options, then the environment, then the current context, then
localhost:5555. Never speaks the protocol; that is the SDK's part.
"""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, NamedTuple

from fila.cli import context
from fila.cli.failure import Failure, usage
from fila.cli.options import DEFAULT_ADDR
from fila.cli.output import note

if TYPE_CHECKING:
    from fila.client.sync import FilaClient


class Target(NamedTuple):
    addr: str
    tls: bool
    tls_ca: str | None
    tls_cert: str | None
    tls_key: str | None
    api_key: str | None

    @property
    def speaks_tls(self) -> bool:
        return bool(self.tls or self.tls_ca or self.tls_cert)


def target(args: argparse.Namespace) -> Target:
    """The broker these arguments, this environment and the current context name."""
    if args.api_key == "":
        raise usage("--api-key is empty; leave it out to connect without a key")
    environment = os.environ.get
    given = args.addr or environment("FILA_ADDR")
    # A context belongs to its address: its key and certificates go to no other broker.
    saved = {} if given else context.current_settings()
    addr = given or saved.get("addr") or DEFAULT_ADDR
    bare = _without_scheme(addr)
    found = Target(
        bare,
        bool(args.tls or _switch("FILA_TLS") or saved.get("tls")),
        args.tls_ca_cert or environment("FILA_TLS_CA_CERT") or saved.get("tls_ca_cert"),
        args.tls_cert or environment("FILA_TLS_CERT") or saved.get("tls_cert"),
        args.tls_key or environment("FILA_TLS_KEY") or saved.get("tls_key"),
        args.api_key or environment("FILA_API_KEY") or saved.get("api_key"),
    )
    if bool(found.tls_cert) != bool(found.tls_key):
        raise usage("--tls-cert and --tls-key belong together: give both or neither")
    if addr.startswith("https://") and not found.speaks_tls:
        note("Note: https:// does not encrypt the connection; add --tls")
    return found


def open_client(
    args: argparse.Namespace, *, reconnect: bool = False, connect_timeout_s: float = 10.0
) -> FilaClient:
    """A connected client for use in a `with` statement."""
    # The SDK costs more to import than all of the CLI; --help must not pay for it.
    from fila.client.address import parse_address
    from fila.client.errors import ConnectFailedError
    from fila.client.sync import FilaClient

    where = target(args)
    try:
        (where.api_key or "").encode()
    except UnicodeEncodeError as error:
        raise usage("the API key is not valid UTF-8") from error
    try:
        parse_address(where.addr)
    except ValueError as error:
        raise usage(str(error)) from error
    try:
        return FilaClient(
            where.addr,
            tls=where.tls,
            tls_ca=where.tls_ca,
            tls_cert=where.tls_cert,
            tls_key=where.tls_key,
            api_key=where.api_key,
            reconnect=reconnect,
            connect_timeout=connect_timeout_s,
        )
    except ConnectFailedError as error:
        raise _unreachable(where, str(error)) from error
    except ValueError as error:  # a TLS file that cannot be used
        raise Failure(str(error)) from error


def _unreachable(where: Target, text: str) -> Failure:
    if "WRONG_VERSION_NUMBER" in text:
        return Failure(text, f"{where.addr} speaks no TLS: leave --tls and its files out")
    if "TLS:" in text:
        return Failure(text, "check --tls, --tls-ca-cert and the names in the broker's certificate")
    if "connection refused" in text:
        return Failure(
            text.partition(";")[0],
            f"is fila-server running on {where.addr}? --addr or FILA_ADDR names another broker",
        )
    if "closed the connection" in text and not where.speaks_tls:
        return Failure(text, "does it speak TLS? Add --tls, or --tls-ca-cert with its authority")
    if "closed the connection" in text and not where.tls_cert:
        return Failure(text, "does it ask for certificates? Add --tls-cert and --tls-key")
    return Failure(text)


def _switch(name: str) -> bool:
    """Whether a variable of the environment says yes."""
    text = os.environ.get(name, "").lower()
    if text not in ("", "0", "1", "false", "true", "no", "yes"):
        raise usage(f"{name}={text} is neither yes nor no; use 1 or 0")
    return text in ("1", "true", "yes")


def _without_scheme(addr: str) -> str:
    for scheme in ("http://", "https://"):
        if addr.lower().startswith(scheme):
            return addr[len(scheme) :].rstrip("/")
    return addr
