"""TLS for everything on the port: certificates checked at start, reloaded without a restart."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Final, NamedTuple

ALPN_FIBP: Final = "fila/1"
ALPN_GRPC: Final = "h2"
ALPN_HTTP: Final = "http/1.1"


class TlsError(Exception):
    """A certificate that cannot be used: which file, and why."""


class TlsFiles(NamedTuple):
    cert: str
    key: str
    ca: str  # empty: clients need no certificate
    crl: str = ""  # empty: revocation is not looked at


def server_context(
    files: TlsFiles, now_s: float, protocols: tuple[str, ...] = (ALPN_GRPC, ALPN_FIBP)
) -> ssl.SSLContext:
    """A context for a listener of these protocols, from the files as they are now.

    With a CA, clients must show a certificate it signed, which no revocation list names.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    context.set_alpn_protocols(list(protocols))
    _load_pair(context, files, now_s)
    if files.ca:
        _load_trusted(context, files)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _load_pair(context: ssl.SSLContext, files: TlsFiles, now_s: float) -> None:
    _readable("cert_file", files.cert)
    _readable("key_file", files.key)
    _begun(files.cert, now_s)
    try:
        context.load_cert_chain(files.cert, files.key, password=_no_password)
    except ssl.SSLError as error:
        if "KEY_VALUES_MISMATCH" in str(error):
            raise TlsError(f"tls.key_file: {files.key} does not belong to {files.cert}") from error
        raise TlsError(f"tls.cert_file: {files.cert} with {files.key}: {error}") from error
    except ValueError as error:
        raise TlsError(f"tls.key_file: {files.key} is encrypted; decrypt it first") from error


def _load_trusted(context: ssl.SSLContext, files: TlsFiles) -> None:
    _readable("ca_file", files.ca)
    try:
        context.load_verify_locations(files.ca)
    except ssl.SSLError as error:
        raise TlsError(f"tls.ca_file: {files.ca} holds no certificate") from error
    if not files.crl:
        return
    _readable("crl_file", files.crl)
    try:
        context.load_verify_locations(files.crl)
    except ssl.SSLError as error:
        raise TlsError(f"tls.crl_file: {files.crl} holds no revocation list") from error
    if not context.cert_store_stats()["crl"]:
        raise TlsError(f"tls.crl_file: {files.crl} holds no revocation list")
    context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


def _readable(setting: str, path: str) -> None:
    try:
        with Path(path).open("rb"):
            pass
    except OSError as error:
        raise TlsError(f"tls.{setting}: {path}: {error.strerror}") from error


def expiry_s(path: str) -> float:
    """When the certificate in this file ends, in seconds since 1970."""
    return float(ssl.cert_time_to_seconds(_decoded(path)["notAfter"]))


def _begun(path: str, now_s: float) -> None:
    """A certificate of the future is a mistake, or the clock is wrong: no client could connect. An
    expired one is reported by the callers of `expiry_s`."""
    begins = _decoded(path)["notBefore"]
    if ssl.cert_time_to_seconds(begins) > now_s + 300:
        raise TlsError(f"tls.cert_file: {path} is not valid before {begins}")


def _decoded(path: str) -> dict[str, str]:
    decode = ssl._ssl._test_decode_cert  # type: ignore[attr-defined]  # the only reader in the stdlib
    try:
        certificate: dict[str, str] = decode(path)
    except Exception as error:
        raise TlsError(f"tls.cert_file: {path} holds no certificate") from error
    return certificate


def _no_password() -> str:
    raise ValueError("encrypted")
